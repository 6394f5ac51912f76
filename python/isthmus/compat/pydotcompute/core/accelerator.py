# SPDX-License-Identifier: Apache-2.0
"""``Accelerator``: the devices by number, in PyDotCompute's numbering."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, cast

import isthmus
from isthmus import Device

from ._creation_lock import creation_lock
from ._cuda import Limits, limits_of
from ._location import default_queue, host_queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

__all__ = [
    "Accelerator",
    "DeviceProperties",
    "DeviceType",
    "MemoryInfo",
    "cuda_available",
    "get_accelerator",
    "metal_available",
]


class DeviceType(Enum):
    """The type of a device."""

    CPU = 1
    CUDA = 2
    METAL = 3
    """Never reported, as Isthmus has no backend for Metal."""
    OTHER = 4
    """A device of another driver, which PyDotCompute would not find."""


@dataclass(frozen=True)
class DeviceProperties:
    """Properties of a device. Properties that only CUDA defines are 1 or None elsewhere."""

    device_id: int
    """Its index in ``Accelerator.devices``; -1 if it is not listed, for example a simulated
    device."""
    device_type: DeviceType
    name: str
    compute_capability: tuple[int, int] | None
    total_memory: int
    """In bytes; for the processor, the part of the machine's memory that the process may use."""
    multiprocessor_count: int
    max_threads_per_block: int
    max_block_dims: tuple[int, int, int]
    max_grid_dims: tuple[int, int, int]
    warp_size: int
    is_available: bool

    @property
    def compute_capability_str(self) -> str:
        """For example ``"8.9"``; ``"N/A"`` if it has none."""
        if self.compute_capability is None:
            return "N/A"
        major, minor = self.compute_capability
        return f"{major}.{minor}"

    @property
    def total_memory_gb(self) -> float:
        """``total_memory`` in GiB."""
        return self.total_memory / (1 << 30)


class MemoryInfo(isthmus.MemoryInfo):
    """Supports ``free, total = info`` and the interface of a dictionary, as ``info["free"]``."""

    __slots__ = ()

    def __contains__(self, key: object) -> bool:
        return key in self.keys() if isinstance(key, str) else super().__contains__(key)

    def get(self, key: str, default: int | None = None) -> int | None:
        """A number by its name."""
        return self[key] if key in self.keys() else default

    def values(self) -> tuple[int, ...]:
        """The numbers, in the order of ``keys()``."""
        return tuple(self[key] for key in self.keys())

    def items(self) -> Iterator[tuple[str, int]]:
        """Pairs of a name and a number."""
        return zip(self.keys(), self.values(), strict=True)


class Accelerator:
    """All devices by number; ``Accelerator()`` always returns the same object.

    Devices other than the processor are first, the best one leading, followed by the host. Drivers'
    devices for the processor are not counted; ``isthmus.devices()`` lists them. Thread-safe.
    """

    _instance: ClassVar[Accelerator | None] = None  # of exactly this class; None until created

    def __new__(cls) -> Self:
        """Returns the only instance of its class."""
        with creation_lock:
            found = vars(cls).get("_instance")
            if found is None:
                cls._instance = found = super().__new__(cls)
            return cast("Self", found)

    @property
    def cuda_available(self) -> bool:
        """Whether there is a CUDA device."""
        return isthmus.get_accelerator().cuda_available

    @property
    def metal_available(self) -> bool:
        """Always False: Isthmus has no backend for Metal."""
        return False

    @property
    def devices(self) -> list[DeviceProperties]:
        """All devices. The first call opens every driver."""
        return [_properties(*each) for each in enumerate(_devices())]

    @property
    def device_count(self) -> int:
        """The number of devices: at least 1."""
        return len(_devices())

    @property
    def current_device(self) -> DeviceProperties:
        """The device of buffers that are created without one."""
        device, known = default_queue().device, _devices()
        return _properties(known.index(device) if device in known else -1, device)

    def get_device(self, device_id: int) -> DeviceProperties:
        """The device of that number. ValueError if there is none, TypeError for a non-integer."""
        return _properties(operator.index(device_id), _device(device_id))

    def set_device(self, device_id: int) -> None:
        """Makes the device current for this thread or asyncio task from now on.

        Raises the errors of ``get_device``. Must not be called inside ``with device:``, whose end
        would then raise RuntimeError.
        """
        isthmus.get_accelerator().set_device(_device(device_id))

    select_device = set_device

    def synchronize(self) -> None:
        """Waits for the current device's default queue, and for the current queue on it."""
        queue = default_queue()
        queue.wait()
        isthmus.get_accelerator().synchronize(queue.device)

    def get_memory_info(self, device_id: int | None = None) -> MemoryInfo:
        """Free and total bytes of a device's memory; None: the current device's.

        They are counted as by ``isthmus.get_accelerator().get_memory_info()``.
        """
        device = default_queue().device if device_id is None else _device(device_id)
        return MemoryInfo(*isthmus.get_accelerator().get_memory_info(device))

    def __repr__(self) -> str:
        return (
            f"Accelerator(devices={self.device_count}, cuda_available={self.cuda_available}, "
            f"metal_available={self.metal_available}, current_device={self.current_device.name})"
        )


def _devices() -> list[Device]:
    others = [device for device in isthmus.devices() if device.type != "cpu"]
    return [*others, host_queue().device]


def _device(device_id: int) -> Device:
    number, known = operator.index(device_id), _devices()
    if not 0 <= number < len(known):
        raise ValueError(f"Invalid device_id: {number}. Valid range: 0-{len(known) - 1}")
    return known[number]


def _properties(number: int, device: Device) -> DeviceProperties:
    limits = limits_of(device) if device.backend == "cuda" else Limits()
    return DeviceProperties(
        device_id=number,
        device_type=_type_of(device),
        name=device.name,
        total_memory=device.total_memory,
        multiprocessor_count=device.compute_units,
        is_available=True,
        **limits._asdict(),
    )


def _type_of(device: Device) -> DeviceType:
    if device.backend == "cuda":
        return DeviceType.CUDA
    return DeviceType.CPU if device.type == "cpu" else DeviceType.OTHER


def get_accelerator() -> Accelerator:
    """The process's accelerator, always the same object."""
    return Accelerator()


def cuda_available() -> bool:
    """Whether there is a CUDA device."""
    return get_accelerator().cuda_available


def metal_available() -> bool:
    """Always False: Isthmus has no backend for Metal."""
    return get_accelerator().metal_available
