# SPDX-License-Identifier: Apache-2.0
"""The pools for device copies while a ``MemoryPool`` is enabled.

There is one pool for each pair of device and context, which the code calls `owner`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus._core import Budget, Context, Device, PoolResource, Queue

from ._creation_lock import creation_lock

if TYPE_CHECKING:
    Owner = tuple[Device, Context]

_MAX_BYTES = (1 << 63) - 1


class DevicePools:
    """Pools by device and context, each created for the first buffer there. Thread-safe.

    A new limit replaces the pools. All pools that a device and context ever had share one budget.
    The budget has no effective limit; it counts the memory that blocks of replaced pools hold.
    """

    def __init__(self) -> None:
        self._by_owner: dict[Owner, PoolResource] = {}
        self._limit_bytes: int | None = None
        self.initial_bytes = 0

    def get(self, queue: Queue) -> PoolResource | None:
        """The pool of the queue's device and context; None if the device lacks kind `device`."""
        if "device" not in queue.device.kinds:
            return None
        owner = queue.device, queue.context
        with creation_lock:
            pool = self._by_owner.get(owner)
            if pool is None:
                self._by_owner[owner] = pool = self._create(owner, self.initial_bytes)
            return pool

    def bytes_of(self, device: Device) -> tuple[int, int]:
        """Bytes in use by buffers, and bytes held in all.

        Both include the memory that replaced pools still hold, which counts as in use.
        """
        with creation_lock:
            pools = [pool for (other, _), pool in self._by_owner.items() if other == device]
        used = held = 0
        for pool in pools:
            divided, in_all = pool.snapshot(), _budget_of(pool).held_bytes
            used += divided.live_bytes + max(in_all - divided.held_bytes, 0)
            held += max(in_all, divided.held_bytes)  # other threads allocate meanwhile
        return used, held

    def limit(self, nbytes: int | None) -> None:
        """Limits the memory that each device and context may hold; None: no limit.

        Memory held by blocks of replaced pools at this time is deducted from the new limit.
        """
        with creation_lock:
            self._limit_bytes = nbytes
            for owner, pool in self._by_owner.items():
                pool.trim()
                self._by_owner[owner] = self._create(owner, 0, _budget_of(pool))

    def trim(self) -> None:
        """Returns all free memory to the drivers."""
        with creation_lock:
            for pool in self._by_owner.values():
                pool.trim()

    def _create(
        self, owner: Owner, initial_bytes: int, budget: Budget | None = None
    ) -> PoolResource:
        if budget is None:
            budget = Budget(_MAX_BYTES)
        if self._limit_bytes is None:
            return PoolResource("device", *owner, initial_bytes=initial_bytes, budget=budget)
        limit = max(self._limit_bytes - budget.held_bytes, 1)
        initial_bytes = min(initial_bytes, limit)
        return PoolResource(
            "device", *owner, initial_bytes=initial_bytes, limit_bytes=limit, budget=budget
        )


def _budget_of(pool: PoolResource) -> Budget:
    budget = pool.budget
    assert budget is not None  # every pool is created with one
    return budget


enabled: DevicePools | None = None


def enable(pools: DevicePools) -> None:
    """Makes new buffers of this package allocate their device copies from ``pools``."""
    global enabled
    enabled = pools


def disable(pools: DevicePools) -> None:
    """Makes new buffers use the current resource again, if ``pools`` are the enabled ones."""
    global enabled
    if enabled is pools:
        enabled = None


def resource_of(queue: Queue) -> PoolResource | None:
    """The resource for the device copy of a new buffer without one; None: the current resource."""
    pools = enabled  # read once: another thread may disable them
    if pools is None or not isinstance(queue, Queue):  # the buffer rejects a non-queue
        return None
    return pools.get(queue)
