"""A resource of the program's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus.compat.rmm import _device
from isthmus.compat.rmm.pylibrmm.stream import DEFAULT_STREAM, Stream
from isthmus.memory import CustomResource

from ._base import DeviceMemoryResource

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Queue

__all__ = ["CallbackMemoryResource"]


class CallbackMemoryResource(DeviceMemoryResource):
    """Functions that allocate and take back memory, on the current device.

    ``allocate_func(nbytes, stream)`` returns an address or raises, MemoryError where there is none
    left; what it raises is raised by who asked, whatever it is. ``deallocate_func(ptr, nbytes,
    stream)`` takes it back once no work uses it any more; what it raises goes to
    ``sys.unraisablehook``. Both are called on any thread. ``kind``, which RMM has not: what the
    memory is, "device", "shared" or "host". TypeError for what cannot be called.
    """

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
        self._use(CustomResource(functions, kind, _device.current()))


class _Functions:
    def __init__(
        self,
        allocate: Callable[[int, Stream], int],
        deallocate: Callable[[int, int, Stream], object],
    ) -> None:
        self._allocate, self._deallocate = allocate, deallocate

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:  # noqa: ARG002
        return self._allocate(nbytes, Stream(queue))

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        self._deallocate(pointer, nbytes, DEFAULT_STREAM if queue is None else Stream(queue))
