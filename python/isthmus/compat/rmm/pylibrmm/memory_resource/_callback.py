"""A resource of the program's own."""

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

__all__ = ["CallbackMemoryResource", "as_runtime_errors"]


@contextmanager
def as_runtime_errors() -> Iterator[None]:
    """What a program's function raises is a RuntimeError with its text, but for MemoryError."""
    try:
        yield
    except (MemoryError, RuntimeError):
        raise
    except BaseException as raised:
        raise RuntimeError(str(raised)) from raised


class CallbackMemoryResource(DeviceMemoryResource):
    """Functions that allocate and take back memory, on the current device.

    ``allocate_func(nbytes, stream)`` returns an address or raises: MemoryError where there is none
    left, which is raised by the allocation; all else is raised as a RuntimeError with the same
    text. ``deallocate_func(ptr, nbytes, stream)`` takes it back once no work uses it any more; what
    it raises goes to ``sys.unraisablehook``. Both are called on any thread. The memory may be of
    any kind, also of a different one each time. ``kind``, which RMM has not: "device", "shared" or
    "host", that of memory of which the driver knows nothing, and the one that pools over this
    resource have. TypeError for what cannot be called.
    """

    _is_mixed = True

    def __init__(
        self,
        allocate_func: Callable[[int, Stream], int],
        deallocate_func: Callable[[int, int, Stream], object],
        *,
        kind: str = "device",
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
            return count_of(self._allocate(nbytes, Stream(queue)), "what allocate_func returned")

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        self._deallocate(pointer, nbytes, DEFAULT_STREAM if queue is None else Stream(queue))
