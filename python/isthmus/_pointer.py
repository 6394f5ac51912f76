# SPDX-License-Identifier: Apache-2.0
"""Information about a pointer: a plain value, which compares and prints as such."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._core import Context, Device, MemoryResource


class PointerInfo(NamedTuple):
    """The result of ``isthmus.memory.query`` for an address."""

    kind: str
    """"device", "shared" or "host"; "unknown": not live, or not USM of the given context."""
    base: int
    """Start of its allocation; 0 if unknown, as for all numbers below."""
    nbytes: int
    """Bytes of the allocation: those of a buffer as requested, all usable ones of a bare block."""
    device: Device | None
    context: Context | None
    """The context that it belongs to."""
    resource: MemoryResource | None
    """The resource that it is returned to: the object that it was created as or, once that is gone,
    an equal MemoryResource. None: the driver's own."""
    state: str
    """"live"; "waiting": freed, and returned when the work on it has ended; "free": cached by a
    pool for later requests; "unknown"."""
    requested_bytes: int
    """As requested: known for the driver's memory, for a pool's above 256 KiB, and if tracked."""
    queue_key: int
    """Key of the queue that it was allocated on; known for the same blocks."""

    def __repr__(self) -> str:
        kind = f" {self.kind} memory" if self.kind != "unknown" else ""
        location = f" on {self.device.filter}" if self.device is not None else ""
        extent = f": {self.nbytes:,} bytes at {self.base:#x}" if self.base else ""
        return f"<isthmus.memory.PointerInfo {self.state}{kind}{location}{extent}>"
