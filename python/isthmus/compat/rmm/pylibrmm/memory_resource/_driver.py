# SPDX-License-Identifier: Apache-2.0
"""Resources that allocate from the driver and cache nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from isthmus import Buffer, Device, UnsupportedError
from isthmus.compat.rmm import _device
from isthmus.compat.rmm._cuda.pools import DriverPool
from isthmus.compat.rmm._sizes import RefusedError, count_of
from isthmus.memory import CustomResource, MemoryResource, ProviderResource

from ._any_kind import any_kind
from ._base import DeviceMemoryResource

if TYPE_CHECKING:
    from isthmus import Queue
    from isthmus._kinds import Kind

__all__ = [
    "CudaAsyncViewMemoryResource",
    "CudaMemoryResource",
    "DriverMemoryResource",
    "ManagedMemoryResource",
    "PinnedHostMemoryResource",
    "SamHeadroomMemoryResource",
    "SystemMemoryResource",
]

_PREFERRED_LOCATION = 3  # CU_MEM_ADVISE_SET_PREFERRED_LOCATION


class DriverMemoryResource(DeviceMemoryResource):
    """Driver memory of one kind, on the current device. A pool over this resource calls the driver
    directly.
    """

    _kind: ClassVar[Kind]

    def __init__(self) -> None:
        self._use(self._on(_device.current()))

    @classmethod
    def of_device(cls, device: Device) -> DriverMemoryResource:
        """The resource for a device other than the current one."""
        resource = cls.__new__(cls)
        resource._use(cls._on(device))
        return resource

    @classmethod
    def _on(cls, device: Device) -> MemoryResource:
        return ProviderResource(cls._kind, device)


class CudaMemoryResource(DriverMemoryResource):
    """Device memory, of any backend's driver."""

    _kind = "device"


class ManagedMemoryResource(DriverMemoryResource):
    """Memory that migrates to the processor that uses it: Isthmus' shared kind."""

    _kind = "shared"


class PinnedHostMemoryResource(DriverMemoryResource):
    """Host memory that devices can access and copy at full speed: Isthmus' host kind."""

    _kind = "host"


class SystemMemoryResource(DriverMemoryResource):
    """Memory that host and device access by the same addresses, on any device: of shared kind.

    RMM uses malloc instead, whose memory few devices can access.
    """

    _kind = "shared"


class SamHeadroomMemoryResource(DeviceMemoryResource):
    """As ``SystemMemoryResource``, leaving ``headroom`` bytes of the device's memory free.

    The part of each allocation that fits into the remaining free memory is advised to reside on the
    device; the rest is placed on the host. If the driver does not support such advice, this is
    ordinary shared memory.
    """

    def __init__(self, headroom: int) -> None:
        headroom_bytes, device = count_of(headroom, "headroom"), _device.current()
        if "advise" in device.capabilities:
            self._use(CustomResource(_Headroom(headroom_bytes, device), "shared", device))
        else:
            self._use(ProviderResource("shared", device))


class _Headroom:
    """The allocator of ``SamHeadroomMemoryResource``."""

    def __init__(self, headroom: int, device: Device) -> None:
        self._headroom, self._device = headroom, device
        self._shared = ProviderResource("shared", device)
        self._buffers: dict[int, Buffer] = {}

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
        available = max(self._device.memory_info()[0] - self._headroom, 0)
        buffer = Buffer(nbytes, queue=queue, resource=self._shared, alignment=alignment)
        resident = min(available, nbytes)
        if resident:
            buffer.advise(_PREFERRED_LOCATION, nbytes=resident, blocking=False)
        if resident < nbytes and "prefetch" in self._device.capabilities:
            buffer.prefetch(offset=resident, to_host=True, blocking=False)
        self._buffers[buffer.ptr] = buffer
        return buffer.ptr

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:  # noqa: ARG002
        self._buffers.pop(pointer).free()


class CudaAsyncViewMemoryResource(DeviceMemoryResource):
    """Allocates from the caller's CUDA memory pool, which must outlive this resource.

    ``pool_handle``: a ``cudaMemPool_t`` or ``CUmemoryPool`` of cuda.bindings, otherwise ValueError.
    RuntimeError for a null handle, and if the current device is not a CUDA device. The memory may
    be of any kind. Allocations raise MemoryError for any failure of the driver.
    """

    _is_mixed = True

    def __init__(self, pool_handle: Any) -> None:
        if type(pool_handle).__name__ not in ("cudaMemPool_t", "CUmemoryPool"):
            raise ValueError(
                f"pool_handle must be a cudaMemPool_t or CUmemoryPool, not {pool_handle!r}"
            )
        self._handle, device = int(pool_handle), _device.current()
        if self._handle == 0:
            raise RefusedError("Unexpected null pool handle.")
        if device.backend != "cuda":
            raise UnsupportedError(
                f"pool_handle requires a CUDA device, but the current device is {device.filter}"
            )
        self._use(any_kind(DriverPool(self._handle, device), "device", device))

    def pool_handle(self) -> int:
        """The pool's handle."""
        return self._handle
