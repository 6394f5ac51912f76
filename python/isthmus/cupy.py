# SPDX-License-Identifier: Apache-2.0
"""Isthmus as CuPy's allocator: ``use()``, or ``cupy.cuda.set_allocator(isthmus.cupy.allocator)``.

Memory is allocated on CuPy's current stream and device, and is returned in the order of that
stream, as in CuPy's own pool. An array that another stream uses too must therefore exist until the
first stream is ordered after that use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import Device, Queue, _frameworks

try:
    import cupy as _cupy
except ImportError as absent:
    raise ImportError(
        "isthmus.cupy needs CuPy: pip install cupy-cuda13x, or the package for your CUDA version",
        name="cupy",
    ) from absent

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from .memory import MemoryResource

__all__ = ["allocator", "allocator_of", "use"]

_MAX_STREAMS = 64  # cached for later arrays
_PER_THREAD = 2  # CU_STREAM_PER_THREAD, a different stream on each thread
_Target = tuple["MemoryResource", Queue, int]


def allocator_of(resource: MemoryResource | None = None) -> Callable[[int], Any]:
    """An allocator for ``cupy.cuda.set_allocator`` or ``using_allocator``.

    ``resource``, of device memory, serves its device. None: each device has a pool, which PyTorch
    and Numba also use by default. MemoryError if there is no memory left.
    """
    current_stream = _cupy.cuda.get_current_stream
    current_device = _cupy.cuda.runtime.getDevice
    unowned_memory, pointer_to = _cupy.cuda.UnownedMemory, _cupy.cuda.MemoryPointer
    block = _frameworks.BareBlock
    targets: dict[int, _Target] = {}
    has_one_device = _cupy.cuda.runtime.getDeviceCount() == 1

    def find(stream: Any, key: int) -> _Target:
        device = current_device()
        if resource is not None and resource.device != Device(f"cuda:{device}"):
            raise ValueError(
                f"CuPy's current device is {device}, but the resource is on "
                f"{resource.device.filter}: create an allocator for each device, or pass no "
                "resource"
            )
        pool = _frameworks.device_pool(device) if resource is None else resource
        target = (pool, Queue.from_stream(stream, f"cuda:{device}"), device)
        if stream.ptr == _PER_THREAD:
            return target
        if len(targets) >= _MAX_STREAMS:  # drops the oldest; its queue exists as long as its memory
            targets.pop(next(iter(targets)), None)
        targets[key] = target
        return target

    def allocate(nbytes: int) -> Any:
        stream = current_stream()
        # Each device has a different null stream.
        key = stream.ptr or (0 if has_one_device else ~current_device())
        pool, queue, device = targets.get(key) or find(stream, key)
        memory = block(pool, queue, nbytes)
        return pointer_to(unowned_memory(memory.ptr, nbytes, memory, device), 0)

    return allocate


allocator = allocator_of()


class use:  # noqa: N801 (called as a function, too)
    """Sets Isthmus as CuPy's allocator: permanently, or until the end of a ``with`` block."""

    def __init__(self, resource: MemoryResource | None = None) -> None:
        self._before = _cupy.cuda.get_allocator()
        _cupy.cuda.set_allocator(allocator if resource is None else allocator_of(resource))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        _cupy.cuda.set_allocator(self._before)
