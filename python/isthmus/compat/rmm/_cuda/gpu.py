# SPDX-License-Identifier: Apache-2.0
"""RMM's queries of CUDA devices, under the names that programs and RMM's own tests use.

They call the CUDA runtime through cuda.bindings; ImportError without that package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda.bindings import driver, runtime

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CUDADriverError",
    "CUDARuntimeError",
    "deviceGetName",
    "driverGetVersion",
    "getDevice",
    "getDeviceAttribute",
    "getDeviceCount",
    "getDeviceProperties",
    "runtimeGetVersion",
    "setDevice",
]


class CUDARuntimeError(RuntimeError):
    """A call of the CUDA runtime failed with ``status``."""

    def __init__(self, status: Any) -> None:
        self.status = status
        super().__init__(_described(status, runtime.cudaGetErrorName, runtime.cudaGetErrorString))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status,)


class CUDADriverError(RuntimeError):
    """A call of the CUDA driver failed with ``status``."""

    def __init__(self, status: Any) -> None:
        self.status = status
        super().__init__(_described(status, driver.cuGetErrorName, driver.cuGetErrorString))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status,)


def driverGetVersion() -> int:  # noqa: N802 (RMM's names, here and below)
    """The newest CUDA version that the driver supports: 13000 for 13.0.

    Raises CUDARuntimeError, as do the functions below unless stated otherwise.
    """
    return int(_checked(runtime.cudaDriverGetVersion()))


def runtimeGetVersion() -> int:  # noqa: N802
    """The version of the CUDA runtime, in the same form."""
    return int(_checked(runtime.getLocalRuntimeVersion()))


def getDevice() -> int:  # noqa: N802
    """The number of the thread's current device."""
    return int(_checked(runtime.cudaGetDevice()))


def setDevice(device: int) -> None:  # noqa: N802
    """Makes a device the thread's current device."""
    _checked(runtime.cudaSetDevice(device))


def getDeviceCount() -> int:  # noqa: N802
    """The number of devices."""
    return int(_checked(runtime.cudaGetDeviceCount()))


def getDeviceAttribute(attr: Any, device: int) -> int:  # noqa: N802
    """An attribute, a ``cudaDeviceAttr``, of a device."""
    return int(_checked(runtime.cudaDeviceGetAttribute(attr, device)))


def getDeviceProperties(device: int) -> Any:  # noqa: N802
    """The ``cudaDeviceProp`` of a device."""
    return _checked(runtime.cudaGetDeviceProperties(device))


def deviceGetName(device: int) -> str:  # noqa: N802
    """The name of a device. Raises CUDADriverError."""
    status, name = driver.cuDeviceGetName(256, driver.CUdevice(device))
    if status != driver.CUresult.CUDA_SUCCESS:
        raise CUDADriverError(status)
    return str(name.decode().rstrip("\0"))


def _checked(result: tuple[Any, ...]) -> Any:
    status, *values = result
    if status != runtime.cudaError_t.cudaSuccess:
        raise CUDARuntimeError(status)
    return values[0] if values else None


def _described(status: Any, name: Callable[[Any], Any], text: Callable[[Any], Any]) -> str:
    (_, called), (_, meaning) = name(status), text(status)
    return f"{called.decode()}: {meaning.decode()}"
