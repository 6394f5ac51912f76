# SPDX-License-Identifier: Apache-2.0
"""Properties of a device's memory, and of a pointer."""

from __future__ import annotations

import enum
import numbers
from typing import TYPE_CHECKING, Any, NamedTuple

from isthmus._core import Array, Buffer, Device, UnsupportedError, query
from isthmus._integers import integer

from .pointer import UsmPointer

if TYPE_CHECKING:
    from isthmus._core import Context
    from isthmus._pointer import PointerInfo

__all__ = [
    "Access",
    "AccessProperties",
    "MemoryProperties",
    "lookup_alloc",
    "memory_access_properties",
    "memory_properties",
    "properties",
]


class MemoryProperties(NamedTuple):
    """One of a device's memories; all numbers are bytes."""

    total_size: int
    free_size: int | None
    """Free bytes at the time of the call; None if the driver does not report it."""
    max_allocation: int
    """The largest single allocation."""
    base_alignment: int
    """The alignment of an allocation that requests none."""
    max_alignment: int


def memory_properties(dev: Device) -> list[MemoryProperties]:
    """The device's memories; every backend reports one."""
    _check(dev)
    try:
        free: int | None = dev.memory_info()[0]
    except UnsupportedError:
        free = None
    return [
        MemoryProperties(
            dev.total_memory, free, dev.max_allocation, dev.base_alignment, dev.max_alignment
        )
    ]


class Access(enum.IntFlag):
    """How a device can access a kind of memory, with Level Zero's numbers; 0: not at all."""

    NONE = 0
    RW = 1
    ATOMIC = 2
    CONCURRENT = 4
    CONCURRENT_ATOMIC = 8


class AccessProperties(NamedTuple):
    """The access of a device to each kind of memory.

    Each field is ``RW`` or 0. Atomic and concurrent access are reported only for the host device,
    because no backend queries its driver for them.
    """

    host: Access
    device: Access
    shared_single_device: Access
    shared_cross_device: Access
    """Shared memory of another device of its context."""
    shared_system: Access
    """Any memory of the process, including that of ``malloc``."""


def memory_access_properties(dev: Device) -> AccessProperties:
    """The access to each kind that the device supports."""
    _check(dev)
    if dev.backend == "host":
        return AccessProperties(*[Access(15)] * 5)
    host, device, shared = (
        Access.RW if kind in dev.kinds else Access.NONE for kind in ("host", "device", "shared")
    )
    return AccessProperties(host, device, shared, Access.NONE, Access.NONE)


def properties(ptr: Any) -> PointerInfo:
    """``isthmus.memory.query`` of a pointer, an Array, a Buffer or an address."""
    return query(_address_of(ptr))


def lookup_alloc(ctx: Context, ptr: Any) -> PointerInfo:
    """As ``properties``, but queries the driver about memory that the library does not know."""
    return query(_address_of(ptr), context=ctx)


def _address_of(ptr: Any) -> int:
    if isinstance(ptr, (Array, Buffer)):
        return ptr.ptr
    if isinstance(ptr, (UsmPointer, numbers.Integral)):
        return integer("an address", ptr)
    raise TypeError(f"an address must be a pointer, an array or a number, not {type(ptr).__name__}")


def _check(dev: object) -> None:
    if not isinstance(dev, Device):
        raise TypeError(f"dev must be an isthmus.Device, not {type(dev).__name__}")
