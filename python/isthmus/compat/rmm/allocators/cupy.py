"""The current device's resource as CuPy's allocator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from isthmus.compat.rmm.mr import DeviceMemoryResource, get_current_device_resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus.memory import MemoryResource

__all__ = ["rmm_cupy_allocator"]

# Of each the resource behind it, too: add_bin() puts another in its place.
_allocators: WeakKeyDictionary[
    DeviceMemoryResource, tuple[MemoryResource, Callable[[int], Any]]
] = WeakKeyDictionary()


def rmm_cupy_allocator(nbytes: int) -> Any:
    """For ``cupy.cuda.set_allocator``: memory of the resource that is current then.

    On CuPy's current stream. ImportError where there is no CuPy, MemoryError where there is no
    memory left.
    """
    current = get_current_device_resource()
    resource = current.resource
    known = _allocators.get(current)
    if known is None or known[0] is not resource:
        from isthmus.cupy import allocator_of

        known = _allocators[current] = resource, allocator_of(resource)
    return known[1](nbytes)
