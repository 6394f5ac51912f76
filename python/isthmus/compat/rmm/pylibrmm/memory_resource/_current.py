"""Which resource memory comes from where none is named: one for each device."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from isthmus import InvalidArgumentError, current_device
from isthmus.compat.rmm import _device

from ._adaptors import LoggingResourceAdaptor, log_name
from ._base import DeviceMemoryResource, UpstreamResourceAdaptor
from ._driver import CudaMemoryResource, DriverMemoryResource, ManagedMemoryResource
from ._pools import PoolMemoryResource, pool_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from isthmus import Device
    from isthmus.memory import MemoryResource

    Follower = Callable[[Device, MemoryResource], object]

__all__ = [
    "available_device_memory",
    "disable_logging",
    "enable_logging",
    "follow",
    "get_current_device_resource",
    "get_log_filenames",
    "get_per_device_resource",
    "initialization",
    "is_initialized",
    "resource_of",
    "set_current_device_resource",
    "set_per_device_resource",
]

_PATIENCE = 0.5  # seconds for work that is in flight
_resources: dict[Device, DeviceMemoryResource] = {}
# What is called whenever a device's resource is another one, and of which devices.
_followers: list[tuple[Follower, list[Device]]] = []
_following = threading.RLock()  # calls of these are in the order of the changes


def get_current_device_resource() -> DeviceMemoryResource:
    """What a ``DeviceBuffer`` comes from on the current device; at first ``CudaMemoryResource``."""
    return resource_of(_device.current())


def set_current_device_resource(mr: DeviceMemoryResource) -> None:
    """From here on that on the current device, in every thread. As ``set_per_device_resource``."""
    _set(_device.current(), mr)


def get_per_device_resource(device: int) -> DeviceMemoryResource:
    """The same of the device of a number; ValueError for one that is not there."""
    return resource_of(_device.numbered(device))


def set_per_device_resource(device: int, mr: DeviceMemoryResource) -> None:
    """The same of the device of a number.

    What was allocated before goes back to where it came from. TypeError for what is no resource,
    ValueError for one of another device's memory and for a device that is not there.
    """
    _set(_device.numbered(device), mr)


def resource_of(device: Device) -> DeviceMemoryResource:
    """The same of a device, of any platform."""
    found = _resources.get(device)
    return found if found is not None else _first_of(device)


def is_initialized() -> bool:
    """True: nothing has to be done before the first allocation."""
    return True


def available_device_memory() -> tuple[int, int]:
    """(free, total) bytes of the current device; UnsupportedError if the driver does not tell."""
    return _device.current().memory_info()


def enable_logging(log_file_name: str | os.PathLike[str] | None = None) -> None:
    """Puts a ``LoggingResourceAdaptor`` over the resource of each device in use, or of the first.

    Of the current device's platform. A device that has one keeps it. Raises as that class, and
    changes nothing then.
    """
    in_use = _in_use() or {_device.numbered(0): get_per_device_resource(0)}
    logs = {
        device: _log_over(below, _writable(log_name(log_file_name)))
        for device, below in in_use.items()
        if not isinstance(below, LoggingResourceAdaptor)
    }
    for device, log in logs.items():
        _set(device, log)


def disable_logging() -> None:
    """Takes them off again. The rows are written."""
    for device, resource in list(_resources.items()):
        if isinstance(resource, LoggingResourceAdaptor):
            resource.flush()
            _set(device, resource.get_upstream())


def _flush_logs() -> None:
    """Writes the rows of the logs of the current device's platform."""
    for resource in _in_use().values():
        if isinstance(resource, LoggingResourceAdaptor):
            resource.flush()


def get_log_filenames() -> dict[int, str | None]:
    """The file of each device in use, by its number; None where there is no log.

    Of the current device's platform.
    """
    return {
        _device.number_of(device): resource.get_file_name()
        if isinstance(resource, LoggingResourceAdaptor)
        else None
        for device, resource in _in_use().items()
    }


def _in_use() -> dict[Device, DeviceMemoryResource]:
    """What there is on the current device's platform: the devices of others have its numbers."""
    known, here = dict(_resources), current_device().platform.devices
    return {device: known[device] for device in here if device in known}


def initialization(
    pool_allocator: bool,
    managed_memory: bool,
    initial_pool_size: int | str | None,
    maximum_pool_size: int | str | None,
    devices: int | Iterable[int] | None,
    logging: bool,
    log_file_name: str | os.PathLike[str] | None,
) -> Callable[[], None]:
    """``rmm.reinitialize`` without its hooks: a call of what this returns.

    Bad arguments are told here, before anything changes.
    """
    listed = [0] if devices is None else [devices] if isinstance(devices, int) else list(devices)
    chosen = list(dict.fromkeys(_device.numbered(number) for number in listed))
    sizes = pool_sizes(initial_pool_size, maximum_pool_size) if pool_allocator else (0, None)
    name = _writable(log_name(log_file_name)) if logging else None
    below = ManagedMemoryResource if managed_memory else CudaMemoryResource

    def made_on(device: Device) -> DeviceMemoryResource:
        made: DeviceMemoryResource = below.of_device(device)
        if pool_allocator:
            made = PoolMemoryResource(made, *sizes)
        return made if name is None else _log_over(made, name)

    def initialize() -> None:
        former = {
            device: _set_aside(resource, ends_logs=name is not None)
            for device, resource in list(_resources.items())
        }
        _resources.clear()
        try:
            for device in chosen:
                _set(device, made_on(device))
        except BaseException:
            _resources.clear()
            _resources.update(former)
            raise
        finally:
            _call_followers()

    return initialize


def _set_aside(resource: DeviceMemoryResource, *, ends_logs: bool) -> DeviceMemoryResource:
    """What may come back, without what the new ones may need of it: free memory, and files."""
    below = resource
    while isinstance(below, UpstreamResourceAdaptor):
        is_log = isinstance(below, LoggingResourceAdaptor)
        below = below.get_upstream()
        if ends_logs and is_log:
            resource = below
    resource.resource.trim()
    return resource


def _writable(name: str) -> str:
    folder = os.path.dirname(os.path.abspath(name))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(
            f"log_file_name: no file can be made in {folder}: there is no such folder "
            "that this process may write to"
        )
    return name


def _log_over(below: DeviceMemoryResource, name: str) -> DeviceMemoryResource:
    """The former log of that file ends once what was freed through it has gone back."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return LoggingResourceAdaptor(below, name)
        except InvalidArgumentError:  # noqa: PERF203 (it waits anyway)
            if time.monotonic() > until:
                raise
            time.sleep(0.001)


def follow(follower: Follower, devices: list[Device]) -> None:
    """Calls it with each device's resource now, and from here on with each that takes its place."""
    with _following:
        _followers.append((follower, devices))
        _call_followers()


def changed(mr: DeviceMemoryResource) -> None:
    """Another resource of Isthmus is behind it."""
    if mr in _resources.values():
        _call_followers()


def _call_followers() -> None:
    with _following:
        for follower, devices in _followers:
            for device in devices:
                follower(device, resource_of(device).resource)


def _first_of(device: Device) -> DeviceMemoryResource:
    made: DriverMemoryResource = CudaMemoryResource.of_device(device)
    return _resources.setdefault(device, made)


def _set(device: Device, mr: DeviceMemoryResource) -> None:
    if not isinstance(mr, DeviceMemoryResource):
        raise TypeError(f"mr must be a DeviceMemoryResource, not {mr!r}")
    if mr.device != device:
        raise ValueError(
            f"{mr!r} gives memory of {mr.device.filter}, and is to serve {device.filter}: make it "
            "while that device is the current one"
        )
    with _following:
        _resources[device] = mr
        _call_followers()
