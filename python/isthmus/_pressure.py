"""What a pool tells of its memory: plain values, which compare, print and are pickled as such."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._core import Device


class TagHolder(NamedTuple):
    """Live blocks that tracking resources know of, by the tag that they were allocated under."""

    tag: str | None
    """None: under none."""
    nbytes: int
    """As requested."""
    blocks: int
    """How many they are."""


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
    """The largest buffer that the pool serves now without more of the driver's memory: of the
    calling thread, on the queue that it used the pool on last. Of what is free, of blocks that this
    thread or a size class keeps, and of what was freed behind work on that queue; not of what other
    threads keep."""
    holders: tuple[TagHolder, ...] = ()
    """Who has most of what is live, as far as tracking resources know: at most 8, largest first."""
    device: str | None = None
    """Of an error, as what follows: the filter of the pool's device. None in a pool's own."""
    kind: str | None = None
    requested_bytes: int = 0
    """By the request that found no memory."""
    rungs: tuple[str, ...] = ()
    """What was tried, in this order, as ``PoolResource.rungs`` names it."""
    advice: str | None = None
    """What to do, as in the message."""

    @property
    def fragmentation(self) -> float:
        """Which part of the free memory cannot serve one request: 0 if it lies in one piece."""
        return max(0.0, 1 - self.largest_free_bytes / self.free_bytes) if self.free_bytes else 0.0


class TagUsage(NamedTuple):
    """What was allocated under a tag, as requested."""

    current_bytes: int
    """Live now."""
    current_count: int
    peak_bytes: int
    """The most that were live at a time since the resource was made or reset."""
    peak_count: int
    total_bytes: int
    """Allocated since then."""
    total_count: int


class TrackedBlock(NamedTuple):
    """A live block, as it was allocated."""

    pointer: int
    nbytes: int
    """As requested."""
    queue_key: int
    """Of the queue that it was allocated on: the same for objects that stand for one queue."""
    order: int
    """Grows with time; has no unit."""
    thread: int
    """That allocated it: ``threading.get_native_id()``."""
    tag: str | None
    """The innermost ``isthmus.tag`` that it was allocated in."""
    stack: tuple[str, ...]
    """``file:line function``, the innermost first; native frames behind those of Python's."""


class RungCounts(NamedTuple):
    """How often a request with no memory came to a rung, and how often it was met there."""

    tried: int
    served: int


class ReclaimRequest(NamedTuple):
    """What a pool needs when it asks a ``Reclaimer``."""

    device: Device
    kind: str
    nbytes: int
