# SPDX-License-Identifier: Apache-2.0
"""`with isthmus.scratch():` and `with isthmus.allocated():`."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import is_memory_released

import isthmus
from isthmus import Array, Buffer, Device, Queue
from isthmus.memory import MemoryUSMHost, PoolResource, StatisticsResource, live

pytestmark = pytest.mark.sim_and_host
HOST = Device("host")


def require_closed(array: Array) -> None:
    assert array.freed
    with pytest.raises(isthmus.ClosedError, match="freed"):
        array.to_numpy()


# -- scratch --------------------------------------------------------------------------------------


def test_scratch(q: Queue, kind: str) -> None:
    before = live()
    outside = isthmus.ones(10, kind=kind, queue=q)
    with isthmus.scratch() as block:
        assert isinstance(block, isthmus.scratch)
        kept = [isthmus.ones(100, kind=kind, queue=q), isthmus.array([1, 2], kind=kind, queue=q)]
        part = kept[0][3:]
        copied = outside.copy()
        raw = Buffer(100, kind=kind, queue=q)
        assert part.to_numpy().sum() == 97
    for each in (*kept, part, copied):
        require_closed(each)
    assert raw.freed
    assert outside.to_numpy().sum() == 10
    del outside
    assert is_memory_released(before)


def test_scratches_nest(q: Queue) -> None:
    with isthmus.scratch():
        first = isthmus.ones(3, queue=q)
        with isthmus.scratch():
            second = isthmus.ones(3, queue=q)
        third = isthmus.ones(3, queue=q)
        require_closed(second)
        assert first.to_numpy().sum() + third.to_numpy().sum() == 6
    require_closed(first)
    require_closed(third)


def test_unreferenced_arrays_are_freed_at_once(q: Queue, kind: str) -> None:
    counted = StatisticsResource(PoolResource(kind, q.device))
    with isthmus.using(counted), isthmus.scratch():
        for _ in range(500):
            isthmus.empty(1 << 20, "u1", kind=kind, queue=q)
        assert (counted.total_count, counted.current_count) == (500, 0)
        assert counted.peak_count == 1


def test_exports_outlive_a_scratch(q: Queue, host_kind: str) -> None:
    with isthmus.scratch():
        made = isthmus.ones(10, kind=host_kind, queue=q)
        seen = np.asarray(made)
    require_closed(made)
    assert seen.sum() == 10


def test_a_scratch_that_fails(q: Queue) -> None:
    made: list[Array] = []
    with pytest.raises(KeyError), isthmus.scratch():
        raise KeyError(made.append(isthmus.ones(3, queue=q)))
    require_closed(made[0])


def test_scratches_are_of_their_thread() -> None:
    made: list[Array] = []
    with isthmus.scratch():
        thread = threading.Thread(target=lambda: made.append(isthmus.ones(3, device="host")))
        thread.start()
        thread.join()
    assert made[0].to_numpy().sum() == 3


def test_scratches_of_tasks() -> None:
    async def outside(entered: asyncio.Event, ended: asyncio.Event) -> Array:
        await entered.wait()
        made = isthmus.ones(3, device="host")
        ended.set()
        return made

    async def main() -> tuple[Array, Array, Array]:
        entered, ended = asyncio.Event(), asyncio.Event()
        other = asyncio.create_task(outside(entered, ended))
        late_entered, late_ended = asyncio.Event(), asyncio.Event()
        with isthmus.scratch():
            entered.set()
            await ended.wait()
            mine = isthmus.ones(3, device="host")
            late = asyncio.create_task(outside(late_entered, late_ended))
        late_entered.set()
        return mine, await other, await late

    mine, other, late = asyncio.run(main())
    require_closed(mine)
    assert other.to_numpy().sum() == 3
    assert late.to_numpy().sum() == 3, "the scratch that it was begun in had ended"


def test_misuse_of_scratches() -> None:
    one, other = isthmus.scratch(), isthmus.scratch()
    with one, pytest.raises(RuntimeError, match="once"):
        one.__enter__()
    with pytest.raises(RuntimeError, match="once"):
        one.__enter__()
    inner = isthmus.scratch()
    with other:
        inner.__enter__()
        with pytest.raises(RuntimeError, match="reverse order"):
            other.__exit__(None, None, None)
        inner.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="reverse order"):
        isthmus.scratch().__exit__(None, None, None)


# -- allocated ------------------------------------------------------------------------------------


def test_allocated(q: Queue, kind: str) -> None:
    with isthmus.allocated() as a:
        first = isthmus.empty(100, kind=kind, queue=q)
        with isthmus.empty(50, kind=kind, queue=q):
            pass
        Buffer(7, kind=kind, queue=q)
        assert (a.count, a.bytes, a.frees, a.freed_bytes) == (3, 607, 2, 207)
        assert (a.live_bytes, a.peak_bytes) == (400, 600)
        first.free()
        assert (a.frees, a.live_bytes) == (3, 0)
        kept = isthmus.empty(100, kind=kind, queue=q)
    assert (a.count, a.frees, a.live_bytes) == (4, 3, 400)
    assert 0 < a.seconds < 60
    isthmus.empty(100, kind=kind, queue=q)
    del kept
    assert (a.count, a.frees) == (4, 3), "nothing counts after its end"
    for part in ("1007 bytes", "4 allocations", "3 freed", "600 bytes at a time", " ms"):
        assert part in repr(a)


def test_counts_nest_and_take_every_resource(q: Queue, kind: str) -> None:
    counted = StatisticsResource(PoolResource(kind, q.device))
    with isthmus.allocated() as outer:
        early = isthmus.empty(10, "u1", kind=kind, queue=q)
        with isthmus.allocated() as inner:
            isthmus.empty(20, "u1", kind=kind, queue=q, resource=counted)
            del early
            MemoryUSMHost(5, queue=HOST.default_queue)
        assert (inner.count, inner.bytes, inner.frees) == (2, 25, 2)
        assert (outer.count, outer.bytes, outer.frees) == (3, 35, 3)


def test_views_and_failures_count_nothing(q: Queue, kind: str) -> None:
    made = isthmus.empty((10, 10), kind=kind, queue=q)
    with isthmus.allocated() as a:
        _ = made[2:], made.T, made.on_queue(q), made.buffer[3:]
        with pytest.raises(MemoryError):
            isthmus.empty(2**58, "u1", kind=kind, queue=q)
        with pytest.raises(TypeError):
            isthmus.empty("x", kind=kind, queue=q)
    assert (a.count, a.bytes) == (0, 0)


@given(st.lists(st.one_of(st.integers(0, 5000), st.none()), max_size=60))
def test_counts_as_a_model(steps: list[int | None]) -> None:
    """A number allocates an array of that many bytes, None drops the oldest one."""
    alive: list[Array] = []
    sizes: list[int] = []
    count = total = peak = frees = 0
    with isthmus.allocated() as a:
        for step in steps:
            if step is None:
                frees += bool(alive)
                del alive[:1], sizes[:1]
                continue
            alive.append(isthmus.empty(step, "u1", device="host"))
            sizes.append(step)
            count, total, peak = count + 1, total + step, max(peak, sum(sizes))
            assert (a.count, a.bytes, a.peak_bytes) == (count, total, peak)
            assert (a.frees, a.live_bytes) == (frees, sum(sizes))


def test_threads_have_counts_of_their_own() -> None:
    with isthmus.allocated() as a:
        thread = threading.Thread(target=lambda: isthmus.empty(3, device="host"))
        thread.start()
        thread.join()
        isthmus.empty(3, device="host")
    assert a.count == 1


def test_misuse_of_counts() -> None:
    a = isthmus.allocated()
    with a, pytest.raises(RuntimeError, match="once"):
        a.__enter__()
    with pytest.raises(RuntimeError, match="reverse order"):
        a.__exit__(None, None, None)
