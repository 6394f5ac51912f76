# SPDX-License-Identifier: Apache-2.0
"""The equivalent of CUDA's current device in RMM, and the numbering of devices.

Numbers count the devices of the current device's platform; for CUDA they are CUDA's numbers. The
current device is ``isthmus.current_device()``, which ``with device:`` sets. If that is the first
of several CUDA devices, which is also the default, the thread's current device in CUDA is used
instead, which CuPy, PyTorch and Numba set.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from isthmus import Device, DeviceNotFoundError, current_device, devices

from . import _cuda
from ._sizes import count_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["current", "number_of", "numbered"]


def current() -> Device:
    """The device for allocations that do not name one. Raises DeviceNotFoundError."""
    device = current_device()
    several = _several_cuda()
    if several is not None and device == several[0][0]:
        number = several[1]()
        return several[0][number] if number > 0 else device
    return device


def numbered(number: object) -> Device:
    """The device of that number; DeviceNotFoundError, a ValueError, if there is none."""
    index = count_of(number, "device")
    found = current_device().platform.devices
    if index >= len(found):
        raise DeviceNotFoundError(
            f"there is no device {index}: the platform of {current_device().filter} has "
            f"devices 0 to {len(found) - 1}"
        )
    return found[index]


def number_of(device: Device) -> int:
    """The number of a device: the inverse of ``numbered``."""
    return device.platform.devices.index(device)


@cache
def _several_cuda() -> tuple[list[Device], Callable[[], int]] | None:
    """CUDA's devices and a function that reports the thread's current one; None if there are fewer
    than two.
    """
    found = devices("cuda")
    if len(found) < 2:
        return None
    return found[0].platform.devices, _cuda.current_ordinal_reader(found[0])
