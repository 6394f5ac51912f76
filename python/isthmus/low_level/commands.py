# SPDX-License-Identifier: Apache-2.0
"""Lists of operations that are submitted to a queue together, in order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from isthmus._byte_count import byte_count
from isthmus._core import Buffer, ClosedError, InvalidArgumentError, Queue

from .advice import Advice, checked_number, prefetch_on, prefetched
from .endpoint import Endpoint, endpoint, is_address, usm_endpoint
from .transfers import copy_on, elements_of, fill_on, raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from isthmus._byte_count import ByteCount
    from isthmus._core import Device, Event

    Operation = Callable[[Queue], "Event | None"]
    Events = Event | Sequence[Event]

__all__ = ["CommandList", "execute"]


class CommandList:
    """Collects operations for ``execute``; sizes are in bytes.

    Each operation is checked when it is appended. May be executed any number of times. Keeps the
    memory of its operations alive. Iterates over operations, which are functions that take a queue
    and return an event. One thread at a time may append.
    """

    def __init__(self) -> None:
        self._operations: list[Operation] = []

    def append_copy(
        self, dst: Any, src: Any, nbytes: ByteCount | None = None, *, after: Events = ()
    ) -> None:
        """A copy of ``nbytes`` bytes (None: all of ``src``), after the events ``after``.

        ``dst`` and ``src`` as in ``unsafe_copyto``, except addresses, which are TypeErrors. Raises
        OutOfRangeError past either end, ReadOnlyError, ClosedError.
        """
        destination, source = (
            _checked_endpoint(dst, "destination", writes=True),
            _checked_endpoint(src, "source"),
        )
        count = _count(nbytes, source)
        destination.check_bounds(count, "destination")
        source.check_bounds(count, "source")
        self._operations.append(
            partial(copy_on, dst=destination, src=source, nbytes=count, after=after)
        )

    def append_fill(
        self, ptr: Any, pattern: Any, nbytes: ByteCount | None = None, *, after: Events = ()
    ) -> None:
        """``pattern``, as in ``unsafe_fill``, over ``nbytes`` bytes (None: all from ``ptr`` on).

        Raises InvalidArgumentError if the size is not a multiple of the pattern's, OverflowError
        and TypeError for a value that the type cannot represent, ReadOnlyError, ClosedError.
        """
        destination = usm_endpoint(ptr, "destination", writes=True)
        _check_not_freed(destination)
        count = _count(nbytes, destination)
        destination.check_bounds(count, "destination")
        size = len(raw(pattern)) if destination.dtype is None else destination.dtype.itemsize
        if size == 0 or count % size:
            raise InvalidArgumentError(
                f"{count} bytes are not a multiple of the pattern's {size} bytes"
            )
        if destination.dtype is not None:
            elements_of(destination, 0).fill(pattern)  # fills nothing, but rejects the same values
        self._operations.append(
            partial(fill_on, dst=destination, pattern=pattern, nbytes=count, after=after)
        )

    def append_prefetch(
        self,
        ptr: Any,
        nbytes: ByteCount | None = None,
        device: Device | str | None = None,
        *,
        after: Events = (),
    ) -> None:
        """``prefetch`` of ``nbytes`` bytes (None: all from ``ptr`` on)."""
        target, to_host = prefetched(ptr, nbytes, device)
        self._operations.append(partial(prefetch_on, target=target, to_host=to_host, after=after))

    def append_advise(
        self,
        device: Device | str | None,
        ptr: Any,
        nbytes: ByteCount | None,
        advice: Advice | str,
        *,
        after: Events = (),
    ) -> None:
        """``advise`` on ``nbytes`` bytes (None: all from ``ptr`` on)."""
        target, number = checked_number(ptr, advice, device, nbytes)
        self._operations.append(
            lambda queue: target.holder.advise(
                number,
                offset=target.offset,
                nbytes=target.nbytes,
                queue=queue,
                after=after,
                blocking=False,
            )
        )

    def __iter__(self) -> Iterator[Operation]:
        return iter(tuple(self._operations))

    def __len__(self) -> int:
        return len(self._operations)


def execute(
    queue: Queue, operations: Callable[[CommandList], object] | Iterable[Operation]
) -> Event:
    """Submits operations to the queue, in order, and returns the event of the last one.

    ``operations``: a function, which is called with a ``CommandList`` and appends to it; such a
    list; or functions that take a queue and return an event. Exceptions of the function, and errors
    detected when operations are appended, are raised before anything is submitted. If a submission
    fails later, the operations before it are on the queue and run, and none after it is submitted.
    Does not wait. Without operations the event is that of all work on the queue.
    """
    if not isinstance(queue, Queue):
        raise TypeError(f"queue must be an isthmus.Queue, not {type(queue).__name__}")
    event = None
    for operation in _as_list(operations):
        event = operation(queue)
    return queue.fence() if event is None else event


def _as_list(operations: Any) -> list[Operation]:
    if callable(operations):
        commands = CommandList()
        operations(commands)
        return list(commands)
    listed = list(operations)
    for each in listed:
        if not callable(each):
            raise TypeError(
                f"an operation must be a function of a queue, not {type(each).__name__}"
            )
    return listed


def _checked_endpoint(obj: Any, name: str, *, writes: bool = False) -> Endpoint:
    if is_address(obj):
        raise TypeError(
            f"the {name} of a copy in a command list cannot be a bare address, which does not keep "
            "the memory alive: pass a pointer, an array or a buffer"
        )
    result = endpoint(obj, name, writes=writes)
    _check_not_freed(result)
    return result


def _check_not_freed(target: Endpoint) -> None:
    if isinstance(target.holder, Buffer) and target.holder.freed:
        raise ClosedError(f"the memory of {target.holder!r} was freed")


def _count(nbytes: ByteCount | None, target: Endpoint) -> int:
    if nbytes is None:
        if target.nbytes is None:
            raise TypeError(f"nbytes is required for memory of type {type(target.holder).__name__}")
        return target.nbytes
    count = byte_count("nbytes", nbytes)
    if count < 0:
        raise InvalidArgumentError(f"nbytes must be 0 or more, not {count}")
    return count
