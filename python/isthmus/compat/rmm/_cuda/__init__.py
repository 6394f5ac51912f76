# SPDX-License-Identifier: Apache-2.0
"""Direct calls of the CUDA driver, through the library that Isthmus has opened."""

from __future__ import annotations

from contextlib import contextmanager
from ctypes import CDLL, PyDLL, byref, c_int, c_uint, c_void_p
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from isthmus import Device, DriverError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BlockingStream", "check", "current_ordinal_reader", "driver_of", "primary"]


def current_ordinal_reader(device: Device) -> Callable[[], int]:
    """Returns a function that reports the calling thread's current CUDA device; -1 if it has none.

    The function is called for each allocation and reads thread-local state only, so it does not
    release the GIL.
    """
    get_device: Any = getattr(PyDLL(device.platform.library), "cuCtxGetDevice", None)
    if get_device is None:
        return lambda: -1

    def read() -> int:
        number = c_int()
        return number.value if get_device(byref(number)) == 0 else -1

    return read


class BlockingStream:
    """A stream that synchronizes with the legacy default stream, as CUDA's streams do by default.

    The streams of Isthmus do not. The stream is destroyed with this object, which a queue over the
    stream keeps alive.
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
    """The driver's library, as opened by Isthmus."""
    return CDLL(device.platform.library)


@cache
def _primary_context(device: Device) -> c_void_p:
    """The device's primary context, retained and never released, as Isthmus itself does."""
    driver, handle, context = driver_of(device), c_int(), c_void_p()
    number = device.platform.devices.index(device)
    check("cuDeviceGet", driver.cuDeviceGet(byref(handle), c_int(number)))
    check("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(byref(context), handle))
    return context


def __getattr__(name: str) -> Any:
    """Imports ``rmm._cuda.gpu`` on first use, as it needs cuda.bindings."""
    if name == "gpu":
        return import_module(".gpu", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextmanager
def primary(device: Device) -> Iterator[None]:
    """Makes the device's primary context current on this thread, and restores the previous one."""
    driver, before = driver_of(device), c_void_p()
    check("cuCtxGetCurrent", driver.cuCtxGetCurrent(byref(before)))
    check("cuCtxSetCurrent", driver.cuCtxSetCurrent(_primary_context(device)))
    try:
        yield
    finally:
        driver.cuCtxSetCurrent(before)


def check(call: str, status: int) -> None:
    """Raises DriverError, a RuntimeError, if a driver call failed."""
    if status != 0:
        raise DriverError(f"{call} failed with {status}")
