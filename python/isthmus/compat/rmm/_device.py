"""Which device is meant where RMM has CUDA's current one, and how devices are numbered.

A number counts the devices of the current device's platform: CUDA's, as CUDA counts them, where
there are any. The current device is ``isthmus.current_device()``, which ``with device:`` sets. Of
several CUDA devices the first is also what nobody has chosen: there the one that CUDA has as the
thread's current counts, which CuPy, PyTorch and Numba set.
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
    """The device that memory is for where nobody says. Raises DeviceNotFoundError."""
    device = current_device()
    several = _several_cuda()
    if several is not None and device == several[0][0]:
        number = several[1]()
        return several[0][number] if number > 0 else device
    return device


def numbered(number: object) -> Device:
    """The device of that number; DeviceNotFoundError, a ValueError, where there is none."""
    place = count_of(number, "device")
    found = current_device().platform.devices
    if place >= len(found):
        raise DeviceNotFoundError(
            f"there is no device {place}: the platform of {current_device().filter} has "
            f"{len(found)}, from 0 on"
        )
    return found[place]


def number_of(device: Device) -> int:
    """The other way."""
    return device.platform.devices.index(device)


@cache
def _several_cuda() -> tuple[list[Device], Callable[[], int]] | None:
    """CUDA's devices, if there are several, and which of them is the thread's current one."""
    found = devices("cuda")
    if len(found) < 2:
        return None
    return found[0].platform.devices, _cuda.ordinal_teller(found[0])
