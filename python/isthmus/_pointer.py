# SPDX-License-Identifier: Apache-2.0
"""``PointerInfo``: information about a pointer, as an immutable value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from ._core import Context, Device, MemoryResource
    from ._kinds import Kind


class PointerInfo(NamedTuple):
    """The result of ``isthmus.memory.query`` for an address."""

    kind: Kind | Literal["unknown"]
    """"device", "shared" or "host"; "unknown": not live, or not USM of the queried context."""
    base: int
    """Start of the allocation; 0 if unknown, as for all numbers below."""
    nbytes: int
    """Bytes of the allocation: the requested bytes of a buffer, all usable bytes of a bare
    block."""
    device: Device | None
    context: Context | None
    """The context that the allocation belongs to."""
    resource: MemoryResource | None
    """The resource that the allocation is returned to: its original object or, after that was
    destroyed, an equal MemoryResource. None: the driver's allocator."""
    state: str
    """"live"; "waiting": freed, and returned after the work on it has completed; "free": cached by
    a pool for later requests; "unknown"."""
    requested_bytes: int
    """The requested alignment: known for driver memory, pool blocks above 256 KiB, and tracked
    blocks."""
    queue_key: int
    """Key of the queue that the block was allocated on; known for the same blocks."""

    def __repr__(self) -> str:
        kind = f" {self.kind} memory" if self.kind != "unknown" else ""
        location = f" on {self.device.filter}" if self.device is not None else ""
        extent = f": {self.nbytes:,} bytes at {self.base:#x}" if self.base else ""
        return f"<isthmus.memory.PointerInfo {self.state}{kind}{location}{extent}>"
