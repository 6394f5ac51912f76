# SPDX-License-Identifier: Apache-2.0
"""``get_accelerator()``: the devices by number, and their free memory."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, overload

from isthmus._core import (
    Device,
    PoolResource,
    UnsupportedError,
    current_device,
    current_queue,
    current_resource,
    devices,
    live,
)
from isthmus._integers import integer

if TYPE_CHECKING:
    from typing import Any, SupportsIndex

    from isthmus._core import MemoryResource
    from isthmus._kinds import Kind

__all__ = ["Accelerator", "MemoryInfo", "get_accelerator"]


class _FreeAndTotal(NamedTuple):
    free: int
    """Bytes that can still be allocated."""
    total: int
    """Size of the device's memory in bytes."""


class MemoryInfo(_FreeAndTotal):
    """A device's memory in bytes: ``free, total = info``, ``info.free`` or ``info["free"]``."""

    __slots__ = ()

    @property
    def used(self) -> int:
        """``total - free``."""
        return self.total - self.free

    def keys(self) -> tuple[str, ...]:
        """The valid keys; ``dict(info)`` requires this method."""
        return ("free", "total", "used")

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[int, ...]: ...
    def __getitem__(self, key: SupportsIndex | slice | str, /) -> Any:
        """A number by its name, or by index as in a tuple. KeyError for another name."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.keys():
            raise KeyError(f"unknown key {key!r}: a MemoryInfo has {', '.join(self.keys())}")
        return getattr(self, key)

    def __repr__(self) -> str:
        return f"MemoryInfo(free={self.free}, total={self.total}, used={self.used})"


_selected: ContextVar[Device | None] = ContextVar("isthmus_selected_device", default=None)


class Accelerator:
    """All devices by number, the best first; ``get_accelerator()`` returns the only one.

    The numbers are indices of ``isthmus.devices()``. Thread-safe.
    """

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices. The first call opens every driver."""
        return tuple(devices())

    @property
    def device_count(self) -> int:
        """Number of devices: at least 1, as the host is one."""
        return len(self.devices)

    @property
    def current_device(self) -> Device:
        """``isthmus.current_device()``."""
        return current_device()

    @property
    def cuda_available(self) -> bool:
        """Whether there is a CUDA device."""
        return any(device.backend == "cuda" for device in devices())

    def get_device(self, device_id: int | Device | str) -> Device:
        """A device by number, or by a filter as ``Device`` accepts it. ValueError otherwise."""
        if isinstance(device_id, (Device, str)):
            return Device(device_id)
        number, devices = integer("device_id", device_id), self.devices
        if not 0 <= number < len(devices):
            raise ValueError(f"device {number} does not exist: use 0 to {len(devices) - 1}")
        return devices[number]

    def set_device(self, device_id: int | Device | str) -> Device:
        """Makes a device current for this thread or asyncio task from here on, and returns it.

        Must not be called inside ``with device:``, whose end would then raise RuntimeError: nest a
        ``with`` statement instead.
        """
        device, before = self.get_device(device_id), _selected.get()
        if before is not None:
            before.__exit__()
            _selected.set(None)
        device.__enter__()
        _selected.set(device)
        return device

    select_device = set_device

    def synchronize(self, device_id: int | Device | str | None = None) -> None:
        """Waits for the device's default queue, and for the current queue if it is on that device.

        None: the current device. For work on other queues use ``Queue.wait``.
        """
        device = self._device(device_id)
        queue = current_queue()
        if queue.device == device:
            queue.wait()
        device.default_queue.wait()

    def get_memory_info(self, device_id: int | Device | str | None = None) -> MemoryInfo:
        """Free and total bytes of a device's memory; None: the current one's.

        The driver reports the free memory. If it does not, and for memory of the host, which the
        system provides page by page on writes, free memory is the total minus this library's
        allocations. Memory that is cached by the pool of a current resource (``using``,
        ``set_resource``) counts as free; memory that the default pools cache counts as used.
        ``Device.memory_info()`` includes the use by other programs.
        """
        device = self._device(device_id)
        cached = _cached_bytes(device)
        if device.type != "cpu":
            try:
                free, total = device.memory_info()
                return MemoryInfo(min(free + cached, total), total)
            except UnsupportedError:
                pass
        total = _total_bytes(device)
        return MemoryInfo(min(max(total - _live_bytes(device) + cached, 0), total), total)

    def _device(self, device_id: int | Device | str | None) -> Device:
        return current_device() if device_id is None else self.get_device(device_id)

    def __repr__(self) -> str:
        names = ", ".join(device.filter for device in self.devices)
        return f"<isthmus.Accelerator {names}; current {current_device().filter}>"


def _cached_bytes(device: Device) -> int:
    """The bytes that the pools of the current resources cache; 0 if the default pools serve."""
    kinds: tuple[Kind, ...] = device.kinds if device.type == "cpu" else ("device",)
    resources = (current_resource(kind, device) for kind in kinds)
    return sum(_cached_by(each) for each in resources if each is not None)


def _cached_by(resource: MemoryResource) -> int:
    pool = resource
    while not isinstance(pool, PoolResource):
        upstream = getattr(pool, "upstream", None)
        if upstream is None:
            return pool.free_bytes
        pool = upstream
    snapshot = pool.snapshot()
    return snapshot.cached_bytes + snapshot.waiting_bytes + snapshot.free_bytes


def _live_bytes(device: Device) -> int:
    """The live bytes on all devices: an upper bound for ``device`` if there are several."""
    every: tuple[Kind, ...] = ("device", "shared", "host")
    kinds = every if device.type == "cpu" else every[:2]
    return sum(live(kind)[1] for kind in kinds)


def _total_bytes(device: Device) -> int:
    try:
        return device.memory_info()[1]
    except UnsupportedError:
        return device.total_memory


_accelerator = Accelerator()


def get_accelerator() -> Accelerator:
    """The process's devices, always the same object."""
    return _accelerator
