"""What only CUDA's driver itself can tell or make, by the library that Isthmus has opened."""

from __future__ import annotations

from contextlib import contextmanager
from ctypes import CDLL, PyDLL, byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any

from isthmus import Device, DriverError, USMAllocationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isthmus import Queue

__all__ = ["BlockingStream", "ForeignPool", "ordinal_teller"]

_OUT_OF_MEMORY = 2


def ordinal_teller(device: Device) -> Callable[[], int]:
    """Of CUDA's current device of the thread that calls; -1: it has none.

    Asked for each allocation, and answered from the thread's own memory: so it keeps the
    interpreter's lock.
    """
    ask: Any = getattr(PyDLL(device.platform.library), "cuCtxGetDevice", None)
    if ask is None:
        return lambda: -1

    def tell() -> int:
        number = c_int()
        return number.value if ask(byref(number)) == 0 else -1

    return tell


class BlockingStream:
    """A stream that waits for the legacy default stream and is waited for, as CUDA's are made.

    Isthmus' own do neither. It ends with this object, which a queue over it keeps.
    """

    def __init__(self, device: Device) -> None:
        self.device_index = device.platform.devices.index(device)
        self._driver = _library(device)
        self._handle = c_void_p()
        with _primary(device):
            _check("cuStreamCreate", self._driver.cuStreamCreate(byref(self._handle), c_uint(0)))

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle.value or 0

    def __del__(self) -> None:
        if self._handle:
            self._driver.cuStreamDestroy_v2(self._handle)


class ForeignPool:
    """An allocator for ``CustomResource`` over a ``cudaMemPool_t`` of somebody else's."""

    def __init__(self, handle: int, device: Device) -> None:
        self._driver = _library(device)
        self._pool, self._device = c_void_p(handle), device

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:  # noqa: ARG002
        """In the order of the queue's stream, aligned to 256 bytes."""
        made = c_uint64()
        with _primary(self._device):
            outcome = self._driver.cuMemAllocFromPoolAsync(
                byref(made), c_size_t(nbytes), self._pool, c_void_p(queue.native_handle)
            )
        if outcome == _OUT_OF_MEMORY:
            raise USMAllocationError(f"the pool {self._pool.value:#x} has no {nbytes} bytes")
        _check("cuMemAllocFromPoolAsync", outcome)
        return made.value

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:  # noqa: ARG002
        """No work uses it any more: any stream will do."""
        stream = c_void_p(queue.native_handle if queue is not None else None)
        with _primary(self._device):
            _check("cuMemFreeAsync", self._driver.cuMemFreeAsync(c_uint64(pointer), stream))


@cache
def _library(device: Device) -> Any:
    return CDLL(device.platform.library)


@cache
def _primary_context(device: Device) -> c_void_p:
    """Of the device, retained for good, as Isthmus does."""
    driver, handle, context = _library(device), c_int(), c_void_p()
    number = device.platform.devices.index(device)
    _check("cuDeviceGet", driver.cuDeviceGet(byref(handle), c_int(number)))
    _check("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(byref(context), handle))
    return context


@contextmanager
def _primary(device: Device) -> Iterator[None]:
    """With the device's primary context as the thread's current one, and then the one before."""
    driver, before = _library(device), c_void_p()
    _check("cuCtxGetCurrent", driver.cuCtxGetCurrent(byref(before)))
    _check("cuCtxSetCurrent", driver.cuCtxSetCurrent(_primary_context(device)))
    try:
        yield
    finally:
        driver.cuCtxSetCurrent(before)


def _check(call: str, outcome: int) -> None:
    if outcome != 0:
        raise DriverError(f"{call} failed with {outcome}")
