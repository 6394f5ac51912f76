# SPDX-License-Identifier: Apache-2.0
"""The current resource of each device, which serves allocations that do not name one."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from isthmus import InvalidArgumentError, current_device
from isthmus.compat.rmm import _device

from ._adaptors import LoggingResourceAdaptor, log_name
from ._base import DeviceMemoryResource, UpstreamResourceAdaptor
from ._driver import CudaMemoryResource, ManagedMemoryResource
from ._per_device import call_followers, resource_of, resources, set_resource
from ._pools import PoolMemoryResource, pool_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from isthmus import Device

__all__ = [
    "available_device_memory",
    "disable_logging",
    "enable_logging",
    "get_current_device_resource",
    "get_log_filenames",
    "get_per_device_resource",
    "initialization",
    "is_initialized",
    "set_current_device_resource",
    "set_per_device_resource",
]

_TIMEOUT = 0.5  # seconds to wait for work in flight


def get_current_device_resource() -> DeviceMemoryResource:
    """The current device's resource for ``DeviceBuffer``; initially a ``CudaMemoryResource``."""
    return resource_of(_device.current())


def set_current_device_resource(mr: DeviceMemoryResource) -> None:
    """Sets the current device's resource for all threads, as ``set_per_device_resource``."""
    set_resource(_device.current(), mr)


def get_per_device_resource(device: int) -> DeviceMemoryResource:
    """The resource of the device of that number; ValueError if there is no such device."""
    return resource_of(_device.numbered(device))


def set_per_device_resource(device: int, mr: DeviceMemoryResource) -> None:
    """Sets the resource of the device of that number, for all threads.

    Earlier allocations return to the resource that allocated them. TypeError if ``mr`` is not a
    resource, ValueError for a resource of another device and for a device that does not exist.
    """
    set_resource(_device.numbered(device), mr)


def is_initialized() -> bool:
    """Always True: no initialization is required."""
    return True


def available_device_memory() -> tuple[int, int]:
    """(free, total) bytes of the current device; UnsupportedError if the driver reports none."""
    return _device.current().memory_info()


def enable_logging(log_file_name: str | os.PathLike[str] | None = None) -> None:
    """Wraps the resource of each device in use in a ``LoggingResourceAdaptor``.

    Applies to the devices of the current device's platform; if none is in use, to the first one. A
    device with a log retains that log. Raises the errors of that class, and then changes nothing.
    """
    in_use = _in_use() or {_device.numbered(0): get_per_device_resource(0)}
    logs = {
        device: _log_over(resource, _writable(log_name(log_file_name)))
        for device, resource in in_use.items()
        if not isinstance(resource, LoggingResourceAdaptor)
    }
    for device, log in logs.items():
        set_resource(device, log)


def disable_logging() -> None:
    """Removes the logs of ``enable_logging`` after writing their rows."""
    for device, resource in list(resources.items()):
        if isinstance(resource, LoggingResourceAdaptor):
            resource.flush()
            set_resource(device, resource.get_upstream())


def _flush_logs() -> None:
    """Writes the rows of the logs of the current device's platform."""
    for resource in _in_use().values():
        if isinstance(resource, LoggingResourceAdaptor):
            resource.flush()


def get_log_filenames() -> dict[int, str | None]:
    """The log file of each device in use, by the device's number; None for a device without a log.

    Applies to the devices of the current device's platform.
    """
    return {
        _device.number_of(device): resource.get_file_name()
        if isinstance(resource, LoggingResourceAdaptor)
        else None
        for device, resource in _in_use().items()
    }


def _in_use() -> dict[Device, DeviceMemoryResource]:
    """The resources on the current device's platform; numbers of other platforms would clash."""
    by_device, platform_devices = dict(resources), current_device().platform.devices
    return {device: by_device[device] for device in platform_devices if device in by_device}


def initialization(
    pool_allocator: bool,
    managed_memory: bool,
    initial_pool_size: int | str | None,
    maximum_pool_size: int | str | None,
    devices: int | Iterable[int] | None,
    logging: bool,
    log_file_name: str | os.PathLike[str] | None,
) -> Callable[[], None]:
    """Returns a function that does the work of ``rmm.reinitialize``, except calling its hooks.

    Invalid arguments raise here, before anything changes.
    """
    listed = [0] if devices is None else [devices] if isinstance(devices, int) else list(devices)
    selected = list(dict.fromkeys(_device.numbered(number) for number in listed))
    sizes = pool_sizes(initial_pool_size, maximum_pool_size) if pool_allocator else (0, None)
    name = _writable(log_name(log_file_name)) if logging else None
    base_class = ManagedMemoryResource if managed_memory else CudaMemoryResource

    def create_on(device: Device) -> DeviceMemoryResource:
        resource: DeviceMemoryResource = base_class.of_device(device)
        if pool_allocator:
            resource = PoolMemoryResource(resource, *sizes)
        return resource if name is None else _log_over(resource, name)

    def initialize() -> None:
        former = {
            device: _prepare_replacement(resource, ends_logs=name is not None)
            for device, resource in list(resources.items())
        }
        resources.clear()
        try:
            for device in selected:
                set_resource(device, create_on(device))
        except BaseException:
            resources.clear()
            resources.update(former)
            raise
        finally:
            call_followers()

    return initialize


def _prepare_replacement(
    resource: DeviceMemoryResource, *, ends_logs: bool
) -> DeviceMemoryResource:
    """Prepares a resource for replacement; returns the resource to restore if that fails.

    Releases the free memory of ``resource``, which new resources may require. If ``ends_logs``, the
    result is the resource below its logs, so that a new log can open their files.
    """
    inner = resource
    while isinstance(inner, UpstreamResourceAdaptor):
        is_log = isinstance(inner, LoggingResourceAdaptor)
        inner = inner.get_upstream()
        if ends_logs and is_log:
            resource = inner
    resource.resource.trim()
    return resource


def _writable(name: str) -> str:
    folder = os.path.dirname(os.path.abspath(name))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(
            f"log_file_name: cannot create a file in {folder}: the directory does not "
            "exist or is not writable"
        )
    return name


def _log_over(upstream: DeviceMemoryResource, name: str) -> DeviceMemoryResource:
    """Creates a log, waiting for an earlier log of the same file to end.

    The earlier log ends once memory that was freed through it has been released.
    """
    deadline = time.monotonic() + _TIMEOUT
    while True:
        try:
            return LoggingResourceAdaptor(upstream, name)
        except InvalidArgumentError:  # noqa: PERF203 (the loop waits anyway)
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)
