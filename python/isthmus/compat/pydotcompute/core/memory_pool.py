# SPDX-License-Identifier: Apache-2.0
"""``MemoryPool``: the buffer cache of PyDotCompute's documentation and the pools of its release.

The released class differs from the documented one; this class has both interfaces.
"""

from __future__ import annotations

import math
import os
import weakref
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from isthmus import BufferPool
from isthmus.unified.layout import at_least

from . import _pools
from ._creation_lock import creation_lock
from ._location import default_queue
from .unified_buffer import UnifiedBuffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from isthmus import Device, Queue

__all__ = ["MemoryPool", "PoolStatistics", "configure_memory_pool", "get_memory_pool"]

MIB = 1 << 20


@dataclass
class PoolStatistics:
    """The division of a pool's memory."""

    used_bytes: int
    """In use by buffers, including cached ones."""
    total_bytes: int
    """Held by the pool."""
    n_free_blocks: int
    """Buffers cached for the next ``acquire``."""

    @property
    def free_bytes(self) -> int:
        """Held and not in use."""
        return self.total_bytes - self.used_bytes

    @property
    def utilization(self) -> float:
        """The fraction in use; 0 for an empty pool."""
        return self.used_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def used_mb(self) -> float:
        """``used_bytes`` in MiB."""
        return self.used_bytes / MIB

    @property
    def total_mb(self) -> float:
        """``total_bytes`` in MiB."""
        return self.total_bytes / MIB


class MemoryPool(BufferPool):
    """Caches released buffers for the next ``acquire``: an ``isthmus.BufferPool``.

    ``MemoryPool()`` returns the process's pool, always the same object; each subclass has its own.
    After ``MemoryPool._instance = None``, which tests of PyDotCompute's users set, the next call
    creates a new pool, which is not enabled. With ``max_pool_size`` (buffers, 100 if None) or
    ``max_buffer_size`` (bytes, 1 GiB if None) the call creates a separate pool.

    ``enable()`` applies to device memory: from then on the device copies of all new buffers of this
    package come from Isthmus' pools, one for each device. Thread-safe.
    """

    _device_pools: _pools.DevicePools
    _instance: ClassVar[MemoryPool | None] = None  # of exactly this class; None until created
    _all: ClassVar[weakref.WeakSet[MemoryPool]] = weakref.WeakSet()
    _buffer_type = UnifiedBuffer
    # Attributes of a new pool of the released class, which its public tests read.
    _initialized = True
    _initial_size_mb = 0
    _max_size_mb: int | None = None

    def __new__(cls, max_pool_size: int | None = None, max_buffer_size: int | None = None) -> Self:
        """Returns the process's pool if both arguments are None, otherwise a new one."""
        if max_pool_size is not None or max_buffer_size is not None:
            return cls._create(
                100 if max_pool_size is None else max_pool_size,
                1 << 30 if max_buffer_size is None else max_buffer_size,
            )
        with creation_lock:
            found = vars(cls).get("_instance")
            if found is None:
                cls._instance = found = cls._create(100, 1 << 30)
            return cast("Self", found)

    @classmethod
    def _create(cls, max_buffers: int, max_buffer_bytes: int) -> Self:
        pool = super().__new__(cls)
        BufferPool.__init__(pool, max_buffers, max_buffer_bytes)
        pool._device_pools = _pools.DevicePools()
        with creation_lock:
            MemoryPool._all.add(pool)
        return pool

    def __init__(
        self, max_pool_size: int | None = None, max_buffer_size: int | None = None
    ) -> None:
        """Does nothing: Python calls it again each time the process's pool is requested."""

    # -- the documented interface

    def acquire(
        self,
        shape: int | Sequence[int],
        dtype: Any = "float32",
        *,
        pinned: bool = False,
        device: Device | str | None = None,
        queue: Queue | None = None,
    ) -> UnifiedBuffer[Any]:
        """The buffer of that shape, dtype, pinning and queue that was released last, or a new one.

        Arguments and errors are those of ``UnifiedBuffer``. The contents are unspecified.
        """
        if queue is None:
            queue = default_queue(device)
        buf = super().acquire(shape, dtype, pinned=pinned, device=device, queue=queue)
        return cast("UnifiedBuffer[Any]", buf)

    def stats(self) -> Any:
        """``pool_size``, ``total_acquired``, ``total_released``, ``cache_hits``, ``cache_misses``.

        A dictionary, as in PyDotCompute; ``cached_bytes`` is an addition of Isthmus.
        """
        return asdict(super().stats())

    @property
    def pool_size(self) -> int:
        """The number of cached buffers."""
        return super().stats().pool_size

    @property
    def total_bytes(self) -> int:
        """Bytes of the cached buffers, each counted once and not for both copies."""
        return super().stats().cached_bytes

    # -- the released interface

    def enable(self) -> None:
        """Makes new buffers of this package allocate device copies from Isthmus' pools."""
        _pools.enable(self._device_pools)

    def disable(self) -> None:
        """Makes new buffers use the current resource again, as before ``enable()``."""
        _pools.disable(self._device_pools)

    @property
    def enabled(self) -> bool:
        """Whether new buffers allocate device copies from this object's pools."""
        return _pools.enabled is self._device_pools

    def get_stats(self) -> PoolStatistics:
        """Statistics of the device copies from these pools, on the current device.

        Memory held for buffers older than the last ``set_limit()`` is included, all of it as used.
        """
        used, held = self._device_pools.bytes_of(default_queue().device)
        return PoolStatistics(used, held, n_free_blocks=self.pool_size)

    def get_pinned_stats(self) -> PoolStatistics:
        """Statistics of the pinned buffers of ``acquire(pinned=True)``: in use and cached."""
        with self._lock:
            acquired = list(
                self._acquired.values()
            )  # a copy: buffers dropped meanwhile leave the dict
            used = [key for _, key in acquired if key[2]]
            cached = [key for _, key in self._cached.values() if key[2]]
        used_bytes, cached_bytes = (
            sum(math.prod(shape) * dtype.itemsize for shape, dtype, *_ in keys)
            for keys in (used, cached)
        )
        return PoolStatistics(used_bytes, used_bytes + cached_bytes, len(cached))

    def free_all_blocks(self) -> None:
        """Frees the cached buffers and returns free memory of the device pools to the drivers."""
        self.clear()
        self._device_pools.trim()

    free_all_free = free_all_blocks

    def set_limit(self, size_mb: int | None) -> None:
        """Limits device copies to ``size_mb`` MiB on each device; None and 0: no limit.

        Applies to buffers that are created, or allocated after ``free()``, from now on. One that
        does not fit raises USMAllocationError. Memory that existing blocks hold at the time of the
        call is deducted from the limit. It returns to the driver when the last of those buffers is
        dropped, freed or not.
        """
        limit = None if size_mb is None else at_least(0, "size_mb", size_mb) * MIB
        self._device_pools.limit(limit or None)

    @property
    def _enabled(self) -> bool:
        return self.enabled

    @property
    def _cuda_available(self) -> bool:
        return default_queue().device.backend == "cuda"

    def __repr__(self) -> str:
        stats = self.get_stats()
        return (
            f"MemoryPool(enabled={self.enabled}, used={stats.used_mb:.2f}MB, "
            f"total={stats.total_mb:.2f}MB, cuda={self._cuda_available})"
        )


def _after_fork() -> None:
    for pool in MemoryPool._all:
        BufferPool._after_fork(pool)


os.register_at_fork(after_in_child=_after_fork)


def get_memory_pool() -> MemoryPool:
    """The process's pool, always the same one."""
    return MemoryPool()


def configure_memory_pool(
    _initial_size_mb: int = 0, max_size_mb: int | None = None, enable: bool = True
) -> MemoryPool:
    """Configures the process's pool and returns it.

    ``_initial_size_mb``: the initial size of device pools created from now on, in MiB.
    ``max_size_mb``: the limit of each device, in MiB. ``enable``: whether to enable the pool. On
    TypeError and ValueError nothing has changed.
    """
    pool = get_memory_pool()
    initial_bytes = at_least(0, "_initial_size_mb", _initial_size_mb) * MIB
    if max_size_mb is not None:
        pool.set_limit(max_size_mb)
    pool._device_pools.initial_bytes = initial_bytes
    if enable:
        pool.enable()
    return pool
