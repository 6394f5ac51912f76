# SPDX-License-Identifier: Apache-2.0
"""``BufferPool``: released unified buffers, cached for requests of the same kind."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from isthmus._byte_count import byte_count
from isthmus._core import ClosedError, Device, Error, current_queue

from .buffer import UnifiedBuffer
from .layout import at_least, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isthmus._byte_count import ByteCount
    from isthmus._core import Queue

    Key = tuple[tuple[int, ...], Any, bool, Queue]

__all__ = ["BufferPool", "BufferPoolStats", "get_memory_pool"]


@dataclass(frozen=True)
class BufferPoolStats:
    """The activity of a pool so far, and its current cache."""

    pool_size: int
    """Buffers in the cache."""
    total_acquired: int
    total_released: int
    cache_hits: int
    """Acquired buffers that were taken from the cache."""
    cache_misses: int
    """Acquired buffers that were newly created."""
    cached_bytes: int
    """Bytes of the cached buffers, each counted once and not for each of its copies."""


class BufferPool:
    """Caches released buffers: ``BufferPool(max_buffers=100, max_buffer_bytes=1 << 30)``.

    At most ``max_buffers`` are cached, none larger than ``max_buffer_bytes`` bytes; beyond that,
    those that were released longest ago are freed. 0: caches none. Cached buffers release their
    device copies if a device runs out of memory, but not their host memory: ``clear()`` releases
    that.

    A buffer that was acquired and is dropped without a release is freed, like any buffer.
    Thread-safe.
    """

    _buffer_type: ClassVar[type[UnifiedBuffer]] = UnifiedBuffer

    def __init__(self, max_buffers: int = 100, max_buffer_bytes: ByteCount = 1 << 30) -> None:
        self._max_buffers = at_least(0, "max_buffers", max_buffers)
        self._max_buffer_bytes = at_least(
            0, "max_buffer_bytes", byte_count("max_buffer_bytes", max_buffer_bytes)
        )
        # Reentrant: a garbage collection under the lock may release buffers of the objects it
        # collects.
        self._lock = threading.RLock()
        self._cached: dict[int, tuple[UnifiedBuffer, Key]] = {}  # by id(), oldest first
        self._by_key: dict[Key, dict[int, UnifiedBuffer]] = {}  # the same, in the same order
        self._acquired: dict[int, tuple[weakref.ref[UnifiedBuffer], Key]] = {}
        self._cached_bytes = self._hits = self._misses = self._released = 0

    @property
    def max_buffers(self) -> int:
        """The maximum number of cached buffers."""
        return self._max_buffers

    @property
    def max_buffer_bytes(self) -> int:
        """The maximum bytes of a cached buffer."""
        return self._max_buffer_bytes

    def acquire(
        self,
        shape: int | Sequence[int],
        dtype: Any = "float32",
        *,
        pinned: bool = False,
        device: Device | str | None = None,
        queue: Queue | None = None,
    ) -> UnifiedBuffer:
        """The buffer of that shape, dtype, pinning and queue that was released last, or a new one.

        Arguments and errors are those of ``UnifiedBuffer``; with neither ``device`` nor ``queue``
        it uses the current queue. The buffer's contents and state are not specified.
        """
        import numpy as np

        key = (shape_of(shape), np.dtype(dtype), bool(pinned), queue_of(device, queue))
        with self._lock:
            cached = self._take_cached(key)
            if cached is not None:
                self._hits += 1
                self._add_acquired(cached, key)
                return cached
        buf = self._buffer_type(key[0], key[1], pinned=key[2], queue=key[3])
        with self._lock:
            self._misses += 1
            self._add_acquired(buf, key)
        return buf

    def release(self, buf: UnifiedBuffer) -> None:
        """Returns a buffer to the pool, in any state; its contents are discarded.

        Arrays and parts of it must no longer be used: they share memory with the next user.
        ValueError for a buffer that is not from ``acquire`` of this pool or was released already,
        and for a part of one; ClosedError for one that was freed.
        """
        with self._lock:
            key = self._remove_acquired(buf)
        # The next user overwrites the bytes, so they are neither copied nor cleared: both copies
        # count as equal from here on, which discards pending writes and conflicts.
        try:
            buf._forget()
        except ClosedError:
            raise
        except Error:  # for example device loss, which is not an error of the caller
            buf.free()
        else:
            for evicted in self._cache(buf, key):
                evicted.free()

    @contextmanager
    def buffer(
        self,
        shape: int | Sequence[int],
        dtype: Any = "float32",
        *,
        pinned: bool = False,
        device: Device | str | None = None,
        queue: Queue | None = None,
    ) -> Iterator[UnifiedBuffer]:
        """``with pool.buffer((1000,)) as buf``: acquires a buffer, and releases it at the end."""
        buf = self.acquire(shape, dtype, pinned=pinned, device=device, queue=queue)
        try:
            yield buf
        finally:
            self.release(buf)

    def clear(self) -> None:
        """Frees all cached buffers. Buffers in use can be released as before."""
        with self._lock:
            cached = [buf for buf, _ in self._cached.values()]
            self._cached.clear()
            self._by_key.clear()
            self._cached_bytes = 0
        for buf in cached:
            buf.free()

    def stats(self) -> BufferPoolStats:
        """The pool's activity so far, and its current cache."""
        with self._lock:
            return BufferPoolStats(
                pool_size=len(self._cached),
                total_acquired=self._hits + self._misses,
                total_released=self._released,
                cache_hits=self._hits,
                cache_misses=self._misses,
                cached_bytes=self._cached_bytes,
            )

    def __repr__(self) -> str:
        stats = self.stats()
        return (
            f"<isthmus.BufferPool {stats.pool_size} cached of at most {self._max_buffers}, "
            f"{stats.cached_bytes} bytes, {stats.cache_hits} hits, {stats.cache_misses} misses>"
        )

    def _take_cached(self, key: Key) -> UnifiedBuffer | None:
        same_key = self._by_key.get(key)
        if same_key is None:
            return None
        number, buf = same_key.popitem()
        if not same_key:
            del self._by_key[key]
        del self._cached[number]
        self._cached_bytes -= buf.nbytes
        return buf

    def _add_acquired(self, buf: UnifiedBuffer, key: Key) -> None:
        number, acquired = id(buf), self._acquired

        # Needs no lock: no other buffer can have the same id() before this returns.
        def dropped(_: weakref.ref[UnifiedBuffer]) -> None:
            acquired.pop(number, None)

        acquired[number] = weakref.ref(buf, dropped), key

    def _remove_acquired(self, buf: UnifiedBuffer) -> Key:
        entry = self._acquired.pop(id(buf), None)
        if entry is not None:
            self._released += 1
            return entry[1]
        if id(buf) in self._cached:
            raise ValueError(f"{buf!r} was released already")
        raise ValueError(
            f"{buf!r} is not from acquire() of this pool, or was released and freed since, or is a "
            "part of such a buffer: release the very object that acquire() returned, once"
        )

    def _cache(self, buf: UnifiedBuffer, key: Key) -> list[UnifiedBuffer]:
        """Caches a buffer. Returns the buffers to free for that, possibly ``buf`` itself."""
        if buf.nbytes > self._max_buffer_bytes or self._max_buffers == 0:
            return [buf]
        with self._lock:
            evicted = []
            while len(self._cached) >= self._max_buffers:
                number, (oldest, oldest_key) = next(iter(self._cached.items()))
                same_key = self._by_key[oldest_key]
                del self._cached[number], same_key[number]
                if not same_key:
                    del self._by_key[oldest_key]
                self._cached_bytes -= oldest.nbytes
                evicted.append(oldest)
            self._cached[id(buf)] = buf, key
            self._by_key.setdefault(key, {})[id(buf)] = buf
            self._cached_bytes += buf.nbytes
            return evicted

    def _after_fork(self) -> None:
        self._lock = threading.RLock()  # a thread of the parent may have held it


def queue_of(device: Device | str | None, queue: Queue | None) -> Queue:
    if queue is None:
        return current_queue() if device is None else Device(device).default_queue
    if device is not None and Device(device) != queue.device:
        raise ValueError(f"queue and device do not match: {queue!r} is not on {Device(device)!r}")
    return queue


_process_pool = BufferPool()
os.register_at_fork(after_in_child=_process_pool._after_fork)


def get_memory_pool() -> BufferPool:
    """The process's pool of unified buffers, always the same one.

    It allocates no memory itself: ``isthmus.default_pool`` does.
    """
    return _process_pool
