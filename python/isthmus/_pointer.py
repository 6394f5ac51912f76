"""What is known of a pointer: a plain value, which compares and prints as such."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._core import Context, Device, MemoryResource


class PointerInfo(NamedTuple):
    """What ``isthmus.memory.query`` tells of an address."""

    kind: str
    """"device", "shared" or "host"; "unknown": not live, or not USM of the context asked for."""
    base: int
    """Where its allocation starts; 0 if not known, as in all numbers below."""
    nbytes: int
    """Of the whole allocation: what a buffer was made with, all usable ones of a bare block."""
    device: Device | None
    context: Context | None
    """That it belongs to."""
    resource: MemoryResource | None
    """That it goes back to: the object that it was made as, or, once that has gone, one that all
    resources are an instance of, and equal to others of it. None: the driver's own."""
    state: str
    """"live"; "waiting": was let go of, goes back when the work on it has ended; "free": a pool
    has it, for whoever asks; "unknown"."""
    requested_bytes: int
    """As asked for, of the driver's memory, a pool's above 256 KiB, and what is tracked."""
    queue_key: int
    """Of the queue that it was allocated on, where that is known likewise."""

    def __repr__(self) -> str:
        kind = f" {self.kind} memory" if self.kind != "unknown" else ""
        where = f" on {self.device.filter}" if self.device is not None else ""
        extent = f": {self.nbytes:,} bytes at {self.base:#x}" if self.base else ""
        return f"<isthmus.memory.PointerInfo {self.state}{kind}{where}{extent}>"
