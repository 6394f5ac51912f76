"""What a pool tells of its memory: plain values, which compare, print and are pickled as such."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._core import Device


class Snapshot(NamedTuple):
    """How a pool's memory was divided at a moment, in bytes."""

    held_bytes: int
    """Of the driver's memory; all below together."""
    live_bytes: int
    """Buffers have it; of an unchecked pool all of its small blocks."""
    cached_bytes: int
    """Threads, and slabs of one size class, keep it for the next buffer."""
    waiting_bytes: int
    """Free once the work that it was freed behind has ended."""
    free_bytes: int
    """For any buffer."""
    largest_free_bytes: int
    """Piece of these: what one buffer can have at most."""

    @property
    def fragmentation(self) -> float:
        """Which part of the free memory cannot serve one request: 0 if it lies in one piece."""
        return 1 - self.largest_free_bytes / self.free_bytes if self.free_bytes else 0.0


class RungCounts(NamedTuple):
    """How often a request with no memory came to a rung, and how often it was met there."""

    tried: int
    served: int


class ReclaimRequest(NamedTuple):
    """What a pool needs when it asks a ``Reclaimer``."""

    device: Device
    kind: str
    nbytes: int
