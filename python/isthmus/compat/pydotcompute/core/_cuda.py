# SPDX-License-Identifier: Apache-2.0
"""CUDA device properties that PyDotCompute reports and Isthmus does not, from the driver."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, NamedTuple

from isthmus import DriverError

if TYPE_CHECKING:
    from isthmus import Device

# CUdevice_attribute of cuda.h, by the fields of DeviceProperties.
_THREADS_PER_BLOCK = 1
_BLOCK_DIMS = (2, 3, 4)
_GRID_DIMS = (5, 6, 7)
_WARP_SIZE = 10
_MAJOR, _MINOR = 75, 76


class Limits(NamedTuple):
    """Limits of kernels on a device. The defaults are those of devices without CUDA."""

    compute_capability: tuple[int, int] | None = None
    max_threads_per_block: int = 1
    max_block_dims: tuple[int, int, int] = (1, 1, 1)
    max_grid_dims: tuple[int, int, int] = (1, 1, 1)
    warp_size: int = 1


def limits_of(device: Device) -> Limits:
    """The limits of a CUDA device. DriverError if the driver does not report one of them."""
    driver = ctypes.CDLL(device.platform.library)  # is already loaded

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        status = driver.cuDeviceGetAttribute(
            ctypes.byref(value), number, ctypes.c_int(device.native_handle)
        )
        if status != 0:
            raise DriverError(
                f"cuDeviceGetAttribute({number}) of {device.filter} failed with {status}"
            )
        return value.value

    (bx, by, bz), (gx, gy, gz) = map(attribute, _BLOCK_DIMS), map(attribute, _GRID_DIMS)
    return Limits(
        (attribute(_MAJOR), attribute(_MINOR)),
        attribute(_THREADS_PER_BLOCK),
        (bx, by, bz),
        (gx, gy, gz),
        attribute(_WARP_SIZE),
    )
