"""What only CUDA's driver itself can tell or make, by the library that Isthmus has opened."""

from __future__ import annotations

from contextlib import contextmanager
from ctypes import CDLL, PyDLL, byref, c_int, c_uint, c_void_p
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from isthmus import Device, DriverError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BlockingStream", "check", "driver_of", "ordinal_teller", "primary"]


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
        self._driver = driver_of(device)
        self._handle = c_void_p()
        with primary(device):
            check("cuStreamCreate", self._driver.cuStreamCreate(byref(self._handle), c_uint(0)))

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle.value or 0

    def __del__(self) -> None:
        if self._handle:
            self._driver.cuStreamDestroy_v2(self._handle)


@cache
def driver_of(device: Device) -> Any:
    """The driver's library."""
    return CDLL(device.platform.library)


@cache
def _primary_context(device: Device) -> c_void_p:
    """Of the device, retained for good, as Isthmus does."""
    driver, handle, context = driver_of(device), c_int(), c_void_p()
    number = device.platform.devices.index(device)
    check("cuDeviceGet", driver.cuDeviceGet(byref(handle), c_int(number)))
    check("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(byref(context), handle))
    return context


def __getattr__(name: str) -> Any:
    """``rmm._cuda.gpu``, as RMM has it once it is imported; needs cuda.bindings."""
    if name == "gpu":
        return import_module(".gpu", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextmanager
def primary(device: Device) -> Iterator[None]:
    """With the device's primary context as the thread's current one, and then the one before."""
    driver, before = driver_of(device), c_void_p()
    check("cuCtxGetCurrent", driver.cuCtxGetCurrent(byref(before)))
    check("cuCtxSetCurrent", driver.cuCtxSetCurrent(_primary_context(device)))
    try:
        yield
    finally:
        driver.cuCtxSetCurrent(before)


def check(call: str, outcome: int) -> None:
    """DriverError, a RuntimeError, where a call of the driver's failed."""
    if outcome != 0:
        raise DriverError(f"{call} failed with {outcome}")
