"""USM memory by the names that SYCL users know from ``dpctl.memory``, resources and counts.

The three classes are Buffers with dpctl's constructors, properties and methods. They differ where
dpctl is weak: ``copy_from_host`` takes any type and shape, errors name the value and the limit,
memory can be sliced, and the flag in ``__sycl_usm_array_interface__`` means read-only.
"""

from __future__ import annotations

from ._core import (
    MemoryResource,
    MemoryUSMDevice,
    MemoryUSMHost,
    MemoryUSMShared,
    PoolResource,
    ProviderResource,
    USMAllocationError,
    as_usm_memory,
    live,
)

__all__ = [
    "MemoryResource",
    "MemoryUSMDevice",
    "MemoryUSMHost",
    "MemoryUSMShared",
    "PoolResource",
    "ProviderResource",
    "USMAllocationError",
    "as_usm_memory",
    "live",
]

for _public in (
    MemoryResource,
    MemoryUSMDevice,
    MemoryUSMHost,
    MemoryUSMShared,
    PoolResource,
    ProviderResource,
):
    _public.__module__ = __name__
