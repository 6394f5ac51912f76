"""The pools that device copies come from while a ``MemoryPool`` is enabled, one for each place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus._core import Budget, Context, Device, PoolResource, Queue

from ._making import making

if TYPE_CHECKING:
    Place = tuple[Device, Context]

_MOST_BYTES = (1 << 63) - 1


class DevicePools:
    """Made where the first buffer of a place is. Safe for threads.

    All that a place ever had, those before a new limit too, share a budget, which refuses nothing:
    it counts what blocks of pools that have gone still have.
    """

    def __init__(self) -> None:
        self._by_place: dict[Place, PoolResource] = {}
        self._limit_bytes: int | None = None
        self.initial_bytes = 0

    def of(self, queue: Queue) -> PoolResource | None:
        """Of the queue's device and context; None where the device has no memory of its own."""
        if "device" not in queue.device.kinds:
            return None
        place = queue.device, queue.context
        with making:
            pool = self._by_place.get(place)
            if pool is None:
                self._by_place[place] = pool = self._made(place, self.initial_bytes)
            return pool

    def bytes_of(self, device: Device) -> tuple[int, int]:
        """That buffers have, what pools before a new limit still hold among them; and all held."""
        with making:
            pools = [pool for (where, _), pool in self._by_place.items() if where == device]
        used = held = 0
        for pool in pools:
            divided, in_all = pool.snapshot(), _budget_of(pool).held_bytes
            used += divided.live_bytes + max(in_all - divided.held_bytes, 0)
            held += max(in_all, divided.held_bytes)  # other threads allocate meanwhile
        return used, held

    def limit(self, nbytes: int | None) -> None:
        """The most that a place may hold; what older blocks have is taken off it as it is now."""
        with making:
            self._limit_bytes = nbytes
            for place, pool in self._by_place.items():
                pool.trim()
                self._by_place[place] = self._made(place, 0, _budget_of(pool))

    def trim(self) -> None:
        """Gives all that is free back to the drivers."""
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
    assert budget is not None  # each is made with one
    return budget


enabled: DevicePools | None = None


def enable(pools: DevicePools) -> None:
    """From here on new buffers of this door have their device copies from these."""
    global enabled
    enabled = pools


def disable(pools: DevicePools) -> None:
    """The current resources again, if it is these that are in use."""
    global enabled
    if enabled is pools:
        enabled = None


def resource_of(queue: Queue) -> PoolResource | None:
    """What a new buffer has its device copy from where none is named; None: the current one."""
    pools = enabled  # read once: another thread may disable them
    if pools is None or not isinstance(queue, Queue):  # the buffer refuses what is none
        return None
    return pools.of(queue)
