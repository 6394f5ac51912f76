"""The current device's resource as CuPy's allocator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from isthmus.compat.rmm.mr import DeviceMemoryResource, get_current_device_resource

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["rmm_cupy_allocator"]

_allocators: WeakKeyDictionary[DeviceMemoryResource, Callable[[int], Any]] = WeakKeyDictionary()


def rmm_cupy_allocator(nbytes: int) -> Any:
    """For ``cupy.cuda.set_allocator``: memory of the resource that is current then.

    On CuPy's current stream. ImportError where there is no CuPy, MemoryError where there is no
    memory left.
    """
    current = get_current_device_resource()
    allocator = _allocators.get(current)
    if allocator is None:
        from isthmus.cupy import allocator_of

        allocator = _allocators[current] = allocator_of(current.resource)
    return allocator(nbytes)
