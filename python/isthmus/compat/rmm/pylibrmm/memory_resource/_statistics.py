"""Counts of what goes through a resource, and of what a part of a program allocates."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from isthmus.memory import StatisticsResource, StatisticsScope

from ._base import DeviceMemoryResource, UpstreamResourceAdaptor

__all__ = ["Statistics", "StatisticsResourceAdaptor"]

# Of this thread or asyncio task, the innermost last: only there can a scope be left.
_pushed: ContextVar[tuple[tuple[StatisticsResource, StatisticsScope], ...]] = ContextVar(
    "isthmus.compat.rmm.pushed", default=()
)


@dataclass
class Statistics:
    """Bytes, as requested, and allocations."""

    current_bytes: int
    """Live now."""
    current_count: int
    peak_bytes: int
    """The most that were live at a time."""
    peak_count: int
    total_bytes: int
    """Of all allocations so far."""
    total_count: int


class StatisticsResourceAdaptor(UpstreamResourceAdaptor):
    """Counts what goes through it.

    ``push_counters`` begins counters at 0, for the calling thread or asyncio task and the tasks
    that it starts meanwhile; ``pop_counters`` ends them there. They nest. They count what is
    allocated between the two, that memory's end, wherever it comes, and the end of older memory
    that is freed there: where that is more, what is live is below 0. What other threads allocate
    meanwhile counts in the resource's own counters alone.
    """

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        self._counted = StatisticsResource(self._stand_on(upstream_mr))
        self._use(self._counted)

    @property
    def allocation_counts(self) -> Statistics:
        """Of the counters begun last here; where there are none, of all that came through."""
        place = self._innermost()
        return _read(self._counted if place is None else _pushed.get()[place][1])

    def push_counters(self) -> Statistics:
        """Begins new counters; what those before them have now."""
        before = self.allocation_counts
        scope = self._counted.statistics()
        scope.__enter__()
        _pushed.set((*_pushed.get(), (self._counted, scope)))
        return before

    def pop_counters(self) -> Statistics:
        """Ends the counters begun last here; what they have.

        IndexError where none were begun by this thread or task. RuntimeError for counters that are
        not the innermost: those of another resource were begun since.
        """
        place = self._innermost()
        if place is None:
            raise IndexError(
                "cannot pop the last counter pair: this thread or task has pushed no other"
            )
        pushed = _pushed.get()
        scope = pushed[place][1]
        scope.__exit__(None, None, None)
        _pushed.set(pushed[:place] + pushed[place + 1 :])
        return _read(scope)

    def end_block(self) -> Statistics:
        """``pop_counters`` for a block, which ends also what other resources began in it.

        RuntimeError where there are none any more.
        """
        place, pushed = self._innermost(), _pushed.get()
        if place is None:
            raise RuntimeError(
                "the counters of this block were popped already: pop in it no more than it pushes"
            )
        for _, scope in reversed(pushed[place:]):
            scope.__exit__(None, None, None)
        _pushed.set(pushed[:place])
        return _read(pushed[place][1])

    def _innermost(self) -> int | None:
        pushed = _pushed.get()
        for place in range(len(pushed) - 1, -1, -1):
            if pushed[place][0] is self._counted:
                return place
        return None


def _read(counts: StatisticsResource | StatisticsScope) -> Statistics:
    if isinstance(counts, StatisticsScope):
        return Statistics(*counts._net())
    return Statistics(
        current_bytes=counts.current_bytes,
        current_count=counts.current_count,
        peak_bytes=counts.peak_bytes,
        peak_count=counts.peak_count,
        total_bytes=counts.total_bytes,
        total_count=counts.total_count,
    )
