# SPDX-License-Identifier: Apache-2.0
"""The resource of each device, and the functions that follow its changes.

Safe to use from any thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ._base import DeviceMemoryResource
from ._driver import CudaMemoryResource

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Device
    from isthmus.memory import MemoryResource

    from ._driver import DriverMemoryResource

    Follower = Callable[[Device, MemoryResource], object]

# Only devices in use have an entry. A change must be followed by a call of `call_followers`.
resources: dict[Device, DeviceMemoryResource] = {}
# Functions that are called whenever the resource of one of their devices changes.
_followers: list[tuple[Follower, list[Device]]] = []
_followers_lock = threading.RLock()  # calls of followers are in the order of the changes


def resource_of(device: Device) -> DeviceMemoryResource:
    """The resource of a device, of any platform."""
    resource = resources.get(device)
    return resource if resource is not None else _first_of(device)


def _first_of(device: Device) -> DeviceMemoryResource:
    resource: DriverMemoryResource = CudaMemoryResource.of_device(device)
    return resources.setdefault(device, resource)


def set_resource(device: Device, mr: DeviceMemoryResource) -> None:
    """Sets the resource of a device. TypeError and ValueError if ``mr`` does not fit."""
    if not isinstance(mr, DeviceMemoryResource):
        raise TypeError(f"mr must be a DeviceMemoryResource, not {mr!r}")
    if mr.device != device:
        raise ValueError(
            f"{mr!r} allocates on {mr.device.filter}, but is set for {device.filter}: create it "
            "while that device is current"
        )
    with _followers_lock:
        resources[device] = mr
        call_followers()


def follow(follower: Follower, devices: list[Device]) -> None:
    """Calls ``follower`` with each device's resource now, and again whenever one changes."""
    with _followers_lock:
        _followers.append((follower, devices))
        call_followers()


def changed(mr: DeviceMemoryResource) -> None:
    """Must be called after ``mr`` replaced its wrapped resource of Isthmus."""
    if mr in resources.values():
        call_followers()


def call_followers() -> None:
    """Calls each follower with the resources of its devices."""
    with _followers_lock:
        for follower, devices in _followers:
            for device in devices:
                follower(device, resource_of(device).resource)
