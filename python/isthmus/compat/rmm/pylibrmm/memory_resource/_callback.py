# SPDX-License-Identifier: Apache-2.0
"""A resource that allocates with functions of the program."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from isthmus.compat.rmm import _device
from isthmus.compat.rmm._sizes import count_of
from isthmus.compat.rmm.pylibrmm.stream import DEFAULT_STREAM, Stream

from ._any_kind import any_kind
from ._base import DeviceMemoryResource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isthmus import Queue
    from isthmus._kinds import Kind

__all__ = ["CallbackMemoryResource", "as_runtime_errors"]


@contextmanager
def as_runtime_errors() -> Iterator[None]:
    """Turns exceptions other than MemoryError into a RuntimeError with the same text."""
    try:
        yield
    except (MemoryError, RuntimeError):
        raise
    except BaseException as raised:
        raise RuntimeError(str(raised)) from raised


class CallbackMemoryResource(DeviceMemoryResource):
    """Allocates and frees with functions of the program, on the current device.

    ``allocate_func(nbytes, stream)`` returns an address or raises. The allocation raises its
    MemoryError, for example if no memory is left, unchanged; other exceptions become a RuntimeError
    with the same text. ``deallocate_func(ptr, nbytes, stream)`` frees the memory after all work on
    it has completed; its exceptions go to ``sys.unraisablehook``. Both may be called on any thread.
    The memory may be of any kind, and of a different kind each time. ``kind`` ("device", "shared"
    or "host"), which RMM lacks, is the kind of memory unknown to the driver, and the nominal kind
    of this resource. TypeError if a function is not callable.
    """

    _is_mixed = True

    def __init__(
        self,
        allocate_func: Callable[[int, Stream], int],
        deallocate_func: Callable[[int, int, Stream], object],
        *,
        kind: Kind = "device",
    ) -> None:
        for name, function in (
            ("allocate_func", allocate_func),
            ("deallocate_func", deallocate_func),
        ):
            if not callable(function):
                raise TypeError(f"{name} must be callable, not {function!r}")
        functions = _Functions(allocate_func, deallocate_func)
        self._use(any_kind(functions, kind, _device.current()))


class _Functions:
    def __init__(
        self,
        allocate: Callable[[int, Stream], int],
        deallocate: Callable[[int, int, Stream], object],
    ) -> None:
        self._allocate, self._deallocate = allocate, deallocate

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:  # noqa: ARG002
        with as_runtime_errors():
            return count_of(self._allocate(nbytes, Stream(queue)), "the result of allocate_func")

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        self._deallocate(pointer, nbytes, DEFAULT_STREAM if queue is None else Stream(queue))
