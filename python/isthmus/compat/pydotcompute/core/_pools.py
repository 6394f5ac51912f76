# SPDX-License-Identifier: Apache-2.0
"""The pools for device copies while a ``MemoryPool`` is enabled.

There is one pool for each pair of device and context, which the code calls `place`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus._core import Budget, Context, Device, PoolResource, Queue

from ._making import making

if TYPE_CHECKING:
    Place = tuple[Device, Context]

_MOST_BYTES = (1 << 63) - 1


class DevicePools:
    """Pools by device and context, each created for the first buffer there. Thread-safe.

    A new limit replaces the pools. All pools that a device and context ever had share one budget.
    The budget has no effective limit; it counts the memory that blocks of replaced pools hold.
    """

    def __init__(self) -> None:
        self._by_place: dict[Place, PoolResource] = {}
        self._limit_bytes: int | None = None
        self.initial_bytes = 0

    def of(self, queue: Queue) -> PoolResource | None:
        """The pool of the queue's device and context; None if the device lacks kind `device`."""
        if "device" not in queue.device.kinds:
            return None
        place = queue.device, queue.context
        with making:
            pool = self._by_place.get(place)
            if pool is None:
                self._by_place[place] = pool = self._made(place, self.initial_bytes)
            return pool

    def bytes_of(self, device: Device) -> tuple[int, int]:
        """Bytes in use by buffers, and bytes held in all.

        Both include what replaced pools still hold, which counts as in use.
        """
        with making:
            pools = [pool for (where, _), pool in self._by_place.items() if where == device]
        used = held = 0
        for pool in pools:
            divided, in_all = pool.snapshot(), _budget_of(pool).held_bytes
            used += divided.live_bytes + max(in_all - divided.held_bytes, 0)
            held += max(in_all, divided.held_bytes)  # other threads allocate meanwhile
        return used, held

    def limit(self, nbytes: int | None) -> None:
        """Limits what each device and context may hold; None: no limit.

        What blocks of replaced pools hold at this moment is deducted from the new limit.
        """
        with making:
            self._limit_bytes = nbytes
            for place, pool in self._by_place.items():
                pool.trim()
                self._by_place[place] = self._made(place, 0, _budget_of(pool))

    def trim(self) -> None:
        """Returns all free memory to the drivers."""
        with making:
            for pool in self._by_place.values():
                pool.trim()

    def _made(self, place: Place, initial_bytes: int, budget: Budget | None = None) -> PoolResource:
        if budget is None:
            budget = Budget(_MOST_BYTES)
        if self._limit_bytes is None:
            return PoolResource("device", *place, initial_bytes=initial_bytes, budget=budget)
        left = max(self._limit_bytes - budget.held_bytes, 1)
        initial_bytes = min(initial_bytes, left)
        return PoolResource(
            "device", *place, initial_bytes=initial_bytes, limit_bytes=left, budget=budget
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
    return pools.of(queue)
