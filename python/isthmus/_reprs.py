# SPDX-License-Identifier: Apache-2.0
"""The ``__repr__`` of native classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._core import ClosedError

if TYPE_CHECKING:
    from ._core import (
        Budget,
        Buffer,
        Context,
        Device,
        MemoryResource,
        Pin,
        Platform,
        PoolResource,
        Queue,
        allocated,
    )


def platform(self: Platform) -> str:
    count = len(self.devices)
    return (
        f'<isthmus.Platform {self.backend} "{self.name}" with {count} device'
        f"{'' if count == 1 else 's'}>"
    )


def device(self: Device) -> str:
    return f'<isthmus.Device {self.filter} "{self.name}">'


def context(self: Context) -> str:
    return f"<isthmus.Context of {', '.join(each.filter for each in self.devices)}>"


def queue(self: Queue) -> str:
    return f"<isthmus.Queue {hash(self):#x} on {self.device.filter}>"


def buffer(self: Buffer) -> str:
    text = f"isthmus.{type(self).__name__} {self.kind} {self.nbytes} bytes"
    try:
        address = f" at {self.ptr:#x}" if self.ptr else ""
    except ClosedError:
        return f"<{text}, freed, on {self.device.filter}>"
    return f"<{text}{address} on {self.device.filter}{', read-only' if self.read_only else ''}>"


def allocation_counts(self: allocated) -> str:
    return (
        f"<isthmus.allocated: {self.bytes} bytes in {self.count} allocations, {self.frees} freed, "
        f"at most {self.peak_bytes} bytes at a time, {self.seconds * 1e3:.3f} ms in allocation>"
    )


def budget(self: Budget) -> str:
    return (
        f"<isthmus.Budget of {self.limit_bytes} bytes, {self.held_bytes} held by {self.pools} "
        f"pools, {self.free_bytes} free>"
    )


def resource(self: MemoryResource) -> str:
    return f"<{_place(self)}>"


def pool(self: PoolResource) -> str:
    return f"<{_place(self)}, {self.held_bytes} bytes held, {self.free_bytes} free>"


def _place(resource: MemoryResource) -> str:
    name = type(resource).__name__
    return f"isthmus.memory.{name} of {resource.kind} memory on {resource.device.filter}"


def pin(self: Pin) -> str:
    try:
        state = "registered" if self.is_registered else "not registered"
        return (
            f"<isthmus.Pin of {self.nbytes} bytes at {self.ptr:#x}, {state} with "
            f"{self.device.filter}>"
        )
    except ClosedError:
        return "<isthmus.Pin, released>"
