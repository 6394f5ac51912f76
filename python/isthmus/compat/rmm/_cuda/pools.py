# SPDX-License-Identifier: Apache-2.0
"""Memory pools of the CUDA driver: the caller's, the default managed pool, and new ones."""

from __future__ import annotations

from ctypes import (
    Structure,
    byref,
    c_int,
    c_size_t,
    c_ubyte,
    c_uint64,
    c_ushort,
    c_void_p,
)
from typing import TYPE_CHECKING

from isthmus import UnsupportedError, USMAllocationError

from . import check, driver_of, primary

if TYPE_CHECKING:
    from isthmus import Device, Queue

__all__ = ["DriverPool", "create_pool", "default_managed_pool"]

FABRIC, POSIX_FILE = 8, 1  # CUmemAllocationHandleType
_PINNED, _MANAGED = 1, 2  # CUmemAllocationType
_ON_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_CONCURRENT_MANAGED_ACCESS, _POOL_HANDLE_TYPES = 89, 119  # CUdevice_attribute
_RELEASE_THRESHOLD = 4  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
_FIRST_WITH_MANAGED_POOLS = 13000
KEEP_ALL = (1 << 64) - 1


class _Location(Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class _Properties(Structure):
    """CUmemPoolProps."""

    _fields_ = (
        ("alloc_type", c_int),
        ("handle_types", c_int),
        ("location", _Location),
        ("security_attributes", c_void_p),
        ("max_size", c_size_t),
        ("usage", c_ushort),
        ("reserved", c_ubyte * 54),
    )


class DriverPool:
    """An allocator for ``CustomResource`` over a ``cudaMemPool_t``, which must outlive it."""

    def __init__(self, handle: int, device: Device) -> None:
        self._driver = driver_of(device)
        self._pool, self._device = c_void_p(handle), device

    @property
    def handle(self) -> int:
        """The pool's handle."""
        return self._pool.value or 0

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:  # noqa: ARG002
        """Allocates in the order of the queue's stream, aligned to 256 bytes.

        Raises MemoryError for any failure of the driver, also if the pool was destroyed.
        """
        pointer = c_uint64()
        with primary(self._device):
            status = self._driver.cuMemAllocFromPoolAsync(
                byref(pointer), c_size_t(nbytes), self._pool, c_void_p(queue.native_handle)
            )
        if status != 0:
            raise USMAllocationError(
                f"cannot allocate {nbytes} bytes from the CUDA memory pool {self.handle:#x}: "
                f"cuMemAllocFromPoolAsync failed with {status}"
            )
        return pointer.value

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:  # noqa: ARG002
        """Frees memory. Precondition: all work on the memory has completed, so any stream is
        correct.
        """
        stream = c_void_p(queue.native_handle if queue is not None else None)
        with primary(self._device):
            check("cuMemFreeAsync", self._driver.cuMemFreeAsync(c_uint64(pointer), stream))

    def set_release_threshold(self, nbytes: int) -> None:
        """Sets the maximum of free bytes that the pool retains when streams are synchronized."""
        with primary(self._device):
            status = self._driver.cuMemPoolSetAttribute(
                self._pool, c_int(_RELEASE_THRESHOLD), byref(c_uint64(nbytes))
            )
        check("cuMemPoolSetAttribute", status)

    def prime(self, nbytes: int, queue: Queue) -> None:
        """Makes the pool obtain ``nbytes`` bytes from the driver in advance."""
        if nbytes:
            self.deallocate(self.allocate(nbytes, 0, queue), nbytes, queue)


class _OwnPool(DriverPool):
    def __del__(self) -> None:
        with primary(self._device):
            self._driver.cuMemPoolDestroy(self._pool)


def create_pool(device: Device, handle_types: int) -> DriverPool:
    """Creates a pool of device memory. It is destroyed with its last reference and allocation.

    Raises UnsupportedError, a RuntimeError, if it cannot export handles of all these types.
    """
    driver, handle = driver_of(device), c_void_p()
    ordinal = device.platform.devices.index(device)
    properties = _Properties(
        alloc_type=_PINNED, handle_types=handle_types, location=_Location(_ON_DEVICE, ordinal)
    )
    supported = _attribute(device, _POOL_HANDLE_TYPES)
    status = -1
    if supported & handle_types == handle_types:
        with primary(device):
            status = driver.cuMemPoolCreate(byref(handle), byref(properties))
    if status != 0:
        raise UnsupportedError(
            f"enable_fabric: {device.filter} has no memory pool of handle types {handle_types} "
            f"(it has {supported}): Requested IPC memory handle type not supported"
        )
    return _OwnPool(handle.value or 0, device)


def default_managed_pool(device: Device) -> DriverPool | None:
    """CUDA's default managed pool, set to keep free memory; None without one, as before CUDA 13."""
    driver, handle = driver_of(device), c_void_p()
    version = c_int()
    if (
        not hasattr(driver, "cuMemGetDefaultMemPool")
        or driver.cuDriverGetVersion(byref(version)) != 0
        or version.value < _FIRST_WITH_MANAGED_POOLS
        or not _attribute(device, _CONCURRENT_MANAGED_ACCESS)
    ):
        return None
    location = _Location(_ON_DEVICE, device.platform.devices.index(device))
    with primary(device):
        status = driver.cuMemGetDefaultMemPool(byref(handle), byref(location), c_int(_MANAGED))
    if status != 0:
        return None
    pool = DriverPool(handle.value or 0, device)
    pool.set_release_threshold(KEEP_ALL)
    return pool


def _attribute(device: Device, number: int) -> int:
    driver, value, handle = driver_of(device), c_int(), c_int()
    ordinal = device.platform.devices.index(device)
    check("cuDeviceGet", driver.cuDeviceGet(byref(handle), c_int(ordinal)))
    status = driver.cuDeviceGetAttribute(byref(value), c_int(number), handle)
    return value.value if status == 0 else 0
