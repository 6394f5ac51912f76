# SPDX-License-Identifier: Apache-2.0
"""Random operations on unified buffers, compared with a plain array as the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support import intel_device, is_memory_released, sim
from unified_support import each_means, two_copies, write_on_device

import isthmus
from isthmus import BufferState, ConflictError, Device, Queue, _core
from isthmus.memory import live

if TYPE_CHECKING:
    from collections.abc import Callable

# Rows of 4 KiB, so that host and device writes need not share a granule.
ROW = 1024
SOME = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: (min(pair), max(pair)))
ROWS = st.just((0, 600)) | SOME
FRACTIONS = st.floats(0, 1, exclude_max=True)


def touched(ranges: Any) -> set[int]:
    """The rows that contain elements of these ranges."""
    return {row for start, stop in ranges for row in range(start // ROW, -(-stop // ROW))}


class Machine(RuleBasedStateMachine):
    """``merged`` models the array's content as `.host` would show it; every write has a new value.

    The device writes rows below ``border``, the host those from it on. The two conflict only where
    a rule intends it.
    """

    tracking: str
    make_device: Callable[[], Device]

    @initialize(
        rows=st.sampled_from([1, 4, 40, 600]),
        pinned=st.booleans(),
        granularity=st.sampled_from(["auto", "page"]),
    )
    def make(self, rows: int, pinned: bool, granularity: str) -> None:
        self.device = type(self).make_device()
        self.queues = [Queue(self.device) for _ in range(2)]
        options: dict[str, Any] = {"pinned": pinned, "granularity": granularity}
        self.buf = two_copies(self.device, (rows, ROW), self.tracking, dtype=np.int32, **options)
        self.merged = np.zeros((rows, ROW), np.int32)
        self.value = 0
        self.views: list[np.ndarray] = []
        self.arrays: list[Any] = []
        self.host_is_there = self.device_is_there = False
        self.stale: set[int] = set()  # rows that the device wrote and the host has not fetched
        self.fresh: set[int] = set()  # rows that the host wrote and that were not uploaded

    def new(self) -> int:
        self.value += 1
        return self.value

    def rows_of(self, wanted: tuple[int, int]) -> tuple[int, int]:
        rows = len(self.merged)
        return min(wanted[0], rows), min(wanted[1], rows)

    def touch_host(self, rows: tuple[int, int] | None = None) -> None:
        if not self.host_is_there and self.device_is_there:
            self.stale = set(range(len(self.merged)))
        self.host_is_there = True
        self.stale -= set(range(*rows)) if rows else set(range(len(self.merged)))

    def touch_device(self, rows: tuple[int, int] | None = None) -> None:
        self.device_is_there = True
        self.fresh -= set(range(*rows)) if rows else set(range(len(self.merged)))

    def host_may_write(self, row: int) -> bool:
        """Whether no row of its granule has newer data on the device."""
        granule = max(self.buf._info()["granule"] // (4 * ROW), 1)
        first = row // granule * granule
        return not self.stale & set(range(first, first + granule))

    @rule()
    def host(self) -> None:
        array = self.buf.host
        self.touch_host()
        assert np.array_equal(array, self.merged)
        self.views.append(array)

    @precondition(lambda self: self.views)
    @rule(which=FRACTIONS, at=FRACTIONS, column=st.integers(0, ROW - 1))
    def write_by_a_view(self, which: float, at: float, column: int) -> None:
        row = int(at * len(self.merged))
        if self.host_may_write(row):
            value = self.new()
            self.views[int(which * len(self.views))][row, column] = value
            self.merged[row, column] = value
            self.fresh.add(row)

    @rule(rows=ROWS)
    def write_exactly(self, rows: tuple[int, int]) -> None:
        rows = self.rows_of(rows)
        with self.buf.host_write(rows) as array:
            assert np.array_equal(array, self.merged[slice(*rows)])
            array[:, ::7] = self.merged[slice(*rows), ::7] = self.new()
        self.touch_host(rows)
        self.fresh |= set(range(*rows))

    @rule(rows=ROWS)
    def read_exactly(self, rows: tuple[int, int]) -> None:
        rows = self.rows_of(rows)
        with self.buf.host_read(rows) as array:
            assert np.array_equal(array, self.merged[slice(*rows)])
        self.touch_host(rows)

    @rule(rows=ROWS)
    def copy_from(self, rows: tuple[int, int]) -> None:
        start, stop = self.rows_of(rows)
        if start < stop:
            self.merged[start:stop] = self.new()
            self.buf[start:stop].copy_from(self.merged[start:stop])
            self.touch_host((start, stop))
            self.fresh |= set(range(start, stop))

    @rule()
    def fill(self) -> None:
        self.merged[:] = self.new()
        self.buf.fill(self.value)
        self.touch_host()
        self.fresh = set(range(len(self.merged)))

    @rule(rows=ROWS)
    def copy_to(self, rows: tuple[int, int]) -> None:
        start, stop = self.rows_of(rows)
        if start < stop:
            target = np.empty((stop - start, ROW), np.int64)
            self.buf[start:stop].copy_to(target)
            self.touch_host((start, stop))
            assert np.array_equal(target, self.merged[start:stop])

    @precondition(lambda self: self.host_is_there or self.device_is_there)
    @rule(which=st.integers(0, 2))
    def read_on_device(self, which: int) -> None:
        queue = [None, *self.queues][which]
        with self.buf.device_read(queue=queue) as array:
            self.arrays.append(array)
            got = array.to_numpy()
        assert np.array_equal(got, self.merged)
        self.touch_device()

    @precondition(lambda self: self.host_is_there or self.device_is_there)
    @rule(rows=ROWS)
    def read_rows_on_device(self, rows: tuple[int, int]) -> None:
        rows = self.rows_of(rows)
        with self.buf.device_read(rows) as array:
            assert np.array_equal(array.to_numpy(), self.merged[slice(*rows)])
        self.touch_device(rows)

    @precondition(lambda self: not self.host_is_there and not self.device_is_there)
    @rule()
    def device_first(self) -> None:
        """Without a host copy, the device copy starts with unspecified contents."""
        self.merged[:] = self.new()
        write_on_device(self.buf, self.value)
        self.device_is_there = True

    @precondition(lambda self: self.host_is_there or self.device_is_there)
    @rule(rows=ROWS)
    def write_on_device(self, rows: tuple[int, int]) -> None:
        start, stop = self.rows_of(rows)
        near = range(max(start - 16, 0), min(stop + 16, len(self.merged)))
        if self.tracking == "hashes" and self.fresh & set(near):
            self.sync_to_device((0, len(self.merged)), blocking=True)
        value = self.new()
        write_on_device(self.buf, value, (start, stop))
        self.merged[start:stop] = value
        self.touch_device((start, stop))
        if self.host_is_there:
            self.stale |= set(range(start, stop))

    @precondition(lambda self: self.host_is_there or self.device_is_there)
    @rule(rows=ROWS, blocking=st.booleans())
    def sync_to_device(self, rows: tuple[int, int], blocking: bool) -> None:
        rows = self.rows_of(rows)
        event = self.buf.sync_to_device(rows, blocking=blocking)
        self.touch_device(rows)
        if event is not None:
            event.wait()

    @rule(rows=ROWS, blocking=st.booleans())
    def sync_to_host(self, rows: tuple[int, int], blocking: bool) -> None:
        rows = self.rows_of(rows)
        event = self.buf.sync_to_host(rows, blocking=blocking)
        self.touch_host(rows)
        if event is not None:
            event.wait()

    @precondition(lambda self: self.host_is_there or self.device_is_there)
    @rule()
    def synchronize_many(self) -> None:
        isthmus.synchronize([self.buf])
        self.touch_device()

    @precondition(lambda self: self.host_is_there)
    @rule(rows=ROWS)
    def mark_host(self, rows: tuple[int, int]) -> None:
        start, stop = self.rows_of(rows)
        if not self.stale & set(range(start, stop)):
            self.buf.mark_host_dirty((start, stop))
            self.fresh |= set(range(start, stop))

    @precondition(lambda self: self.views and self.device_is_there and not self.stale)
    @rule(at=FRACTIONS, winner=st.sampled_from(["host", "device"]))
    def conflict(self, at: float, winner: str) -> None:
        self.sync_to_device((0, len(self.merged)), blocking=True)
        row = int(at * len(self.merged))
        value = self.new()
        self.views[-1][row] = value
        self.buf.mark_device_dirty((row, row + 1))
        with pytest.raises(ConflictError):
            self.buf.sync_to_host()
        assert self.buf.state is BufferState.DEVICE_DIRTY
        self.buf.resolve(winner, (row, row + 1))
        if winner == "host":
            self.merged[row] = value
            self.fresh.add(row)
        # If the device wins, the view shows its value.
        assert np.array_equal(self.views[-1][row], self.merged[row])

    @precondition(lambda self: self.host_is_there and not self.device_is_there)
    @rule(rows=ROWS)
    def the_device_wins_what_it_has(self, rows: tuple[int, int]) -> None:
        """The device copy is created for these rows only, and never held the others."""
        start, stop = self.rows_of(rows)
        assume(start < stop)  # otherwise no device copy exists, and there is nothing to resolve
        write_on_device(self.buf, self.new(), (start, stop))
        self.merged[start:stop] = self.value
        self.touch_device((start, stop))
        self.buf.resolve("device")
        self.stale.clear()
        with self.buf.host_read() as array:
            assert np.array_equal(array, self.merged)

    @precondition(lambda self: self.device_is_there and not self.host_is_there)
    @rule(rows=ROWS)
    def the_host_wins_what_it_has(self, rows: tuple[int, int]) -> None:
        rows = self.rows_of(rows)
        self.write_exactly(rows)
        self.buf.resolve("host")
        with self.buf.device_read() as array:
            assert np.array_equal(array.to_numpy(), self.merged)
        self.touch_device()

    @precondition(lambda self: self.host_is_there or self.device_is_there)
    @rule(rows=ROWS, together=st.booleans())
    def send_after_work_that_fails(self, rows: tuple[int, int], together: bool) -> None:
        self.write_exactly(rows)  # fetches what the second write would wait for
        with self.buf.device_read() as array:
            self.touch_device()
            work = isthmus.Event()
            array.record(work)
        self.write_exactly(rows)
        if together:
            isthmus.synchronize([self.buf])
            self.touch_device()
        else:
            rows = self.rows_of(rows)
            self.buf.sync_to_device(rows, blocking=True)
            self.touch_device(rows)
        work.fail("another library's work failed")

    @rule()
    def drop_views(self) -> None:
        self.views.clear()
        self.arrays.clear()

    @invariant()
    def the_state_is_true(self) -> None:
        if not hasattr(self, "buf"):
            return
        state, told = self.buf.state, self.buf.dirty_ranges()
        assert touched(told.device) == self.stale
        if self.device_is_there and self.host_is_there:
            assert self.fresh <= touched(told.host)
        assert state in self.possible()

    def possible(self) -> set[BufferState]:
        if not self.host_is_there:
            only = BufferState.DEVICE_ONLY if self.device_is_there else BufferState.UNINITIALIZED
            return {only}
        if self.stale:
            return {BufferState.DEVICE_DIRTY}
        if self.fresh:
            return {BufferState.HOST_DIRTY}
        both = BufferState.SYNCHRONIZED if self.device_is_there else BufferState.HOST_ONLY
        return {both, BufferState.HOST_DIRTY}  # after a partial upload of a granule

    def teardown(self) -> None:
        if not hasattr(self, "buf"):
            return
        assert np.array_equal(self.buf.to_numpy(), self.merged)
        with self.buf.device_read() as array:
            assert np.array_equal(array.to_numpy(), self.merged)
        if self.device.backend == "sim":
            assert _core.sim_calls(self.device, "violation") == 0


DEVICES: dict[str, Callable[[], Device]] = {
    "host": lambda: Device("host"),
    "early": sim,
    "late": lambda: sim(effect="late"),
    "random": lambda: sim(effect="random", seed=5),
    "opencl": intel_device,
}


@each_means
@pytest.mark.parametrize("place", DEVICES)
def test_random_operations(tracking: str, place: str, long_tier: bool) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    before = live()
    machine = type(
        "Machine", (Machine,), {"tracking": tracking, "make_device": staticmethod(DEVICES[place])}
    )
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=500 if long_tier else 60,
            stateful_step_count=40,
            deadline=None,
            database=None,
            derandomize=not long_tier,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert is_memory_released(before)
