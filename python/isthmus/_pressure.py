# SPDX-License-Identifier: Apache-2.0
"""Information about a pool's memory, as immutable values that can be compared and pickled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._core import Device


class TagHolder(NamedTuple):
    """Live blocks that tracking resources record, grouped by the tag that they were allocated
    under.
    """

    tag: str | None
    """None for allocations without a tag."""
    nbytes: int
    """The requested bytes."""
    blocks: int
    """Number of blocks."""


class Snapshot(NamedTuple):
    """The division of a pool's memory at one time, in bytes."""

    held_bytes: int
    """Bytes held of the driver's memory: the sum of the four fields below."""
    live_bytes: int
    """In use by buffers; in an unchecked pool, all of its small blocks."""
    cached_bytes: int
    """Cached by threads, and by slabs of one size class, for later buffers."""
    waiting_bytes: int
    """Freed; usable once the work submitted before the free has completed."""
    free_bytes: int
    """Usable by any buffer."""
    largest_free_bytes: int
    """The largest buffer that the pool can allocate now without more of the driver's memory, for
    the calling thread on the queue on which it last used the pool. Considers free memory, blocks
    cached by this thread or a size class, and memory freed after work on that queue, but not blocks
    cached by other threads."""
    holders: tuple[TagHolder, ...] = ()
    """Tags with the most live memory, as tracking resources record it: at most 8, largest first."""
    device: str | None = None
    """The filter of the pool's device. This field and the following ones are None unless the
    snapshot is of an error."""
    kind: str | None = None
    requested_bytes: int = 0
    """Bytes of the request that failed."""
    oom_stages: tuple[str, ...] = ()
    """The out-of-memory stages tried, in order, by the names of ``PoolResource.oom_stages``."""
    advice: str | None = None
    """The remedy, as in the message."""

    @property
    def fragmentation(self) -> float:
        """The share of free memory that cannot serve one request: 0 if it is one piece."""
        return max(0.0, 1 - self.largest_free_bytes / self.free_bytes) if self.free_bytes else 0.0


class TagUsage(NamedTuple):
    """Allocations under a tag, in bytes as requested."""

    current_bytes: int
    """Bytes of live allocations."""
    current_count: int
    peak_bytes: int
    """The maximum of live bytes since the resource was created or reset."""
    peak_count: int
    total_bytes: int
    """Bytes allocated since then."""
    total_count: int


class TrackedBlock(NamedTuple):
    """A live block, as it was allocated."""

    pointer: int
    nbytes: int
    """The requested bytes."""
    queue_key: int
    """Key of the queue that it was allocated on; equal for all Queues over one driver queue."""
    order: int
    """Allocations with a larger number were made later; the differences have no meaning."""
    thread: int
    """The thread that allocated the block: ``threading.get_native_id()``."""
    tag: str | None
    """The innermost ``isthmus.tag`` of the allocation."""
    stack: tuple[str, ...]
    """``file:line function``, the innermost first; native frames after those of Python."""


class OomStageCounts(NamedTuple):
    """How often an out-of-memory stage was tried, and how often it satisfied the request."""

    tried: int
    served: int


class OomRequest(NamedTuple):
    """The memory request for which a pool calls an ``OomCallback``."""

    device: Device
    kind: str
    nbytes: int
