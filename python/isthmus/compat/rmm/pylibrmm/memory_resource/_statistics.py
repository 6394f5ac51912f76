# SPDX-License-Identifier: Apache-2.0
"""Counts the allocations of a resource, in total or in a section of a program."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from isthmus.memory import StatisticsResource, StatisticsScope

from ._base import DeviceMemoryResource, UpstreamResourceAdaptor

__all__ = ["Statistics", "StatisticsResourceAdaptor"]

# Scopes of this thread or asyncio task, innermost last. A scope can be left only where it was
# entered.
_pushed: ContextVar[tuple[tuple[StatisticsResource, StatisticsScope], ...]] = ContextVar(
    "isthmus.compat.rmm.pushed", default=()
)


@dataclass
class Statistics:
    """Counts of requested bytes and of allocations."""

    current_bytes: int
    """The value now."""
    current_count: int
    peak_bytes: int
    """The maximum at any time."""
    peak_count: int
    total_bytes: int
    """The sum over all allocations so far."""
    total_count: int


class StatisticsResourceAdaptor(UpstreamResourceAdaptor):
    """Counts the allocations that pass through it.

    ``push_counters`` starts new counters at 0, for the calling thread or asyncio task and the tasks
    that it starts meanwhile; ``pop_counters`` ends them in the same thread or task. They nest. They
    count allocations made between the two calls, frees of those allocations on any thread, and
    frees of older memory made between the two calls. If those exceed the allocations, the live
    counts are negative. Allocations of other threads are counted only by the resource's own
    counters.
    """

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        self._counted = StatisticsResource(self._set_upstream(upstream_mr))
        self._use(self._counted)

    @property
    def allocation_counts(self) -> Statistics:
        """The innermost counters of this thread or task; without any, the resource's own."""
        index = self._innermost()
        return _read(self._counted if index is None else _pushed.get()[index][1])

    def push_counters(self) -> Statistics:
        """Starts new counters and returns the values of the previous ones."""
        before = self.allocation_counts
        scope = self._counted.statistics()
        scope.__enter__()
        _pushed.set((*_pushed.get(), (self._counted, scope)))
        return before

    def pop_counters(self) -> Statistics:
        """Ends the innermost counters of this resource and returns their values.

        IndexError if this thread or task has started none. RuntimeError if counters of another
        resource were started since and are still active.
        """
        index = self._innermost()
        if index is None:
            raise IndexError(
                "cannot pop the last counter pair: this thread or task has pushed no other"
            )
        pushed = _pushed.get()
        scope = pushed[index][1]
        scope.__exit__(None, None, None)
        _pushed.set(pushed[:index] + pushed[index + 1 :])
        return _read(scope)

    def end_block(self) -> Statistics:
        """``pop_counters`` at the end of a block: also ends counters of other resources within it.

        RuntimeError if the block's counters were already ended.
        """
        index, pushed = self._innermost(), _pushed.get()
        if index is None:
            raise RuntimeError(
                "the counters of this block were popped already: pop in it no more than it pushes"
            )
        for _, scope in reversed(pushed[index:]):
            scope.__exit__(None, None, None)
        _pushed.set(pushed[:index])
        return _read(pushed[index][1])

    def _innermost(self) -> int | None:
        pushed = _pushed.get()
        for index in range(len(pushed) - 1, -1, -1):
            if pushed[index][0] is self._counted:
                return index
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
