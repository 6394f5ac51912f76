# SPDX-License-Identifier: Apache-2.0
"""Adaptors over resources: statistics and their scopes, limit, fallback, failure callback."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import threading
import weakref
from typing import TYPE_CHECKING

import pytest
from support import Make, sim, until

import isthmus
from isthmus import Buffer, Device, Queue
from isthmus.memory import (
    AdaptorResource,
    FailureCallbackResource,
    FallbackResource,
    LimitResource,
    MemoryResource,
    PoolResource,
    ProviderResource,
    StatisticsResource,
    StatisticsScope,
    USMAllocationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def counts(of: StatisticsResource | StatisticsScope) -> tuple[int, ...]:
    return (
        *(of.current_bytes, of.current_count),
        *(of.peak_bytes, of.peak_count),
        *(of.total_bytes, of.total_count),
    )


def test_statistics(q: Queue, kind: str, make: Make) -> None:
    upstream = make(kind, q.device)
    counted = StatisticsResource(upstream)
    assert isinstance(counted, AdaptorResource)
    assert (counted.upstream, counted.kind, counted.queue) == (upstream, kind, upstream.queue)
    first = counted.allocate(1000, queue=q)
    second = Buffer(200, resource=counted, queue=q)
    assert counts(counted) == (1200, 2, 1200, 2, 1200, 2)
    first.free()
    assert until(lambda: counted.current_count == 1)
    assert counts(counted) == (200, 1, 1200, 2, 1200, 2)
    counted.reset()
    assert counts(counted) == (200, 1, 200, 1, 0, 0)
    with pytest.raises(USMAllocationError):
        counted.allocate(2**62, queue=q)
    del second
    assert until(lambda: counts(counted) == (0, 0, 200, 1, 0, 0))
    assert (counted.held_bytes, counted.free_bytes) == (upstream.held_bytes, upstream.free_bytes)
    assert counted.trim() >= 0
    assert repr(counted).startswith(f"<isthmus.memory.StatisticsResource of {kind} memory on")


def test_scopes_nest(q: Queue, kind: str, make: Make) -> None:
    upstream = make(kind, q.device)
    counted, other = StatisticsResource(upstream), StatisticsResource(upstream)
    before = counted.allocate(5, queue=q)
    with counted.statistics() as outer:
        before.free()
        mine = counted.allocate(10, queue=q)
        with other.statistics() as aside, counted.statistics() as inner:
            kept = counted.allocate(20, queue=q)
            mine.free()
            assert until(lambda: outer.current_bytes == 20)
            other.allocate(7, queue=q).free()
        assert until(lambda: aside.current_count == 0)
        assert counts(inner) == (20, 1, 20, 1, 20, 1)
        assert counts(outer) == (20, 1, 30, 2, 30, 2)
        assert counts(aside) == (0, 0, 7, 1, 7, 1)
    counted.allocate(1000, queue=q).free()
    kept.free()
    assert until(lambda: counts(inner) == (0, 0, 20, 1, 20, 1))
    assert counts(outer) == (0, 0, 30, 2, 30, 2)
    assert until(lambda: counted.current_count == 0)


def test_scopes_are_entered_once_and_left_in_order(dev: Device) -> None:
    counted = StatisticsResource(PoolResource("host", "host"))
    one, two = counted.statistics(), counted.statistics()
    assert counts(one) == (0,) * 6
    with one, two:
        with pytest.raises(RuntimeError, match="reverse order"):
            one.__exit__(None, None, None)
        with pytest.raises(RuntimeError, match="entered only once"):
            one.__enter__()
    with pytest.raises(RuntimeError, match="entered only once"):
        one.__enter__()
    with pytest.raises(RuntimeError, match="reverse order"):
        two.__exit__(None, None, None)
    with pytest.raises(TypeError):
        StatisticsScope()


def test_scopes_left_in_a_copied_context(dev: Device) -> None:
    counted = StatisticsResource(PoolResource("host", "host"))
    with counted.statistics() as outer, counted.statistics() as inner:
        contextvars.copy_context().run(inner.__exit__, None, None, None)
        kept = counted.allocate(100)
    assert (inner.total_bytes, outer.total_bytes) == (100, 100)
    counted.allocate(7)
    assert outer.total_bytes == 100
    kept.free()
    assert (inner.current_bytes, outer.current_bytes) == (0, 0)


async def test_scopes_left_in_a_task(dev: Device) -> None:
    counted = StatisticsResource(PoolResource("host", "host"))
    with contextlib.ExitStack() as stack:
        scope = stack.enter_context(counted.statistics())

        async def leaves() -> None:
            stack.pop_all().close()
            counted.allocate(10)

        await asyncio.create_task(leaves())
        counted.allocate(3)
    assert scope.total_bytes == 3, "the task left it, the others are in it"


def test_a_scope_exits_during_an_allocation(q: Queue, kind: str, make: Make) -> None:
    upstream = make(kind, q.device)
    stack = contextlib.ExitStack()

    def leave(nbytes: int) -> bool:
        stack.close()
        gc.collect()
        return False

    none = FailureCallbackResource(LimitResource(upstream, 0), leave)
    counted = StatisticsResource(FallbackResource(none, upstream))
    with contextlib.suppress(RuntimeError):  # the scope belongs to the context of the caller
        stack.enter_context(counted.statistics())
    buffer = counted.allocate(100, queue=q)
    assert counted.current_bytes == 100
    buffer.free()
    assert until(lambda: counted.current_bytes == 0)


def test_weak_references() -> None:
    queue = Queue("host")
    pool = PoolResource("host", "host")
    counted = StatisticsResource(pool)
    budget = isthmus.Budget("1MiB")
    seen = (pool, counted, queue, queue.context, queue.device, budget, pool.allocate(10))
    known = [weakref.ref(each) for each in seen]
    assert all(reference() is each for reference, each in zip(known, seen, strict=True))
    del pool, counted, budget, seen
    assert [known[place]() for place in (0, 1, 5, 6)] == [None] * 4


def test_methods_of_other_objects() -> None:
    for method in (StatisticsScope.__enter__, StatisticsResource.statistics):
        with pytest.raises(TypeError):
            method(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        StatisticsScope.__exit__(object(), None, None, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        MemoryResource.__repr__(object())  # type: ignore[arg-type]


def test_scopes_of_threads_are_their_own(dev: Device, kind: str) -> None:
    counted = StatisticsResource(PoolResource(kind, dev))
    queues = [Queue(dev, context=counted.context) for _ in range(4)]
    both_inside = threading.Barrier(4)
    seen: dict[int, tuple[int, ...]] = {}

    def work(number: int) -> None:
        with counted.statistics() as mine:
            both_inside.wait(20)
            kept = [counted.allocate(100 + number, queue=queues[number]) for _ in range(50)]
            both_inside.wait(20)
            seen[number] = counts(mine)
            kept.clear()
            assert until(lambda: mine.current_bytes == 0)

    with counted.statistics() as here:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    for number in range(4):
        assert seen[number] == (50 * (100 + number), 50) * 3
    assert counts(here) == (0,) * 6
    assert counted.total_count == 200


async def test_scopes_of_tasks_are_their_own(dev: Device, kind: str) -> None:
    counted = StatisticsResource(PoolResource(kind, dev))
    q = counted.queue

    async def work(number: int) -> tuple[int, ...]:
        with counted.statistics() as mine:
            kept = []
            for _ in range(10):
                kept.append(counted.allocate(number, queue=q))
                await asyncio.sleep(0)
            return counts(mine)

    with counted.statistics() as around:
        told = await asyncio.gather(*(work(number) for number in range(1, 6)))
    for number, each in enumerate(told, start=1):
        assert each == (10 * number, 10) * 3
    assert around.total_bytes == 150, "tasks that were started within count too"


def test_a_scope_outlives_its_resource(q: Queue, kind: str, make: Make) -> None:
    upstream = make(kind, q.device)
    with StatisticsResource(upstream).statistics() as scope:
        assert counts(scope) == (0,) * 6
    del upstream
    assert counts(scope) == (0,) * 6


def test_limit(q: Queue, kind: str, make: Make) -> None:
    upstream = make(kind, q.device)
    limited = LimitResource(upstream, 10_000)
    assert (limited.limit_bytes, limited.in_use_bytes) == (10_000, 0)
    kept = limited.allocate(6000, queue=q)
    with pytest.raises(USMAllocationError, match=r"4001.*6000.*limit.*10000"):
        limited.allocate(4001, queue=q)
    kept.free()
    assert until(lambda: limited.in_use_bytes == 0)
    with pytest.raises(ValueError):
        LimitResource(upstream, -1)
    with pytest.raises(TypeError):
        LimitResource(upstream, b"1")  # type: ignore[arg-type]


def test_fallback_to_another_kind(q: Queue, kind: str, make: Make) -> None:
    upstream = make(kind, q.device)
    for other in q.device.kinds:
        first = StatisticsResource(LimitResource(upstream, 10_000))
        second = StatisticsResource(PoolResource(other, q.device))
        both = FallbackResource(first, second)
        assert (both.upstream, both.second, both.kind) == (first, second, kind)
        small, large = both.allocate(4000, queue=q), both.allocate(8000, queue=q)
        assert (small.kind, large.kind) == (kind, other)
        assert StatisticsResource(both).allocate(9000, queue=q).kind == other
        assert (first.current_bytes, second.current_bytes) == (4000, 8000)
        large.free()
        assert until(lambda second=second: second.current_bytes == 0)
        small.free()
        assert until(lambda first=first: first.current_bytes == 0)
    with pytest.raises(isthmus.WrongContextError):
        FallbackResource(upstream, ProviderResource("device", sim()))


def test_failure_callback(q: Queue, kind: str, make: Make) -> None:
    upstream = make(kind, q.device)
    limited = LimitResource(upstream, 10_001)
    cache = [limited.allocate(3000, queue=q) for _ in range(3)]
    asked: list[int] = []

    def make_room(nbytes: int) -> bool:
        asked.append(nbytes)
        limited.allocate(1, queue=q).free()
        if not cache:
            return False
        cache.pop().free()
        return until(lambda: limited.in_use_bytes % 3000 in (0, 1000))

    patient = FailureCallbackResource(limited, make_room)
    large = patient.allocate(7000, queue=q)
    assert asked == [7000, 7000]
    with pytest.raises(USMAllocationError, match="10001"):
        patient.allocate(9000, queue=q)
    assert len(asked) == 4
    large.free()

    class OddError(Exception):
        pass

    def fail(nbytes: int) -> bool:
        raise OddError(nbytes)

    with pytest.raises(OddError, match="20000"):
        FailureCallbackResource(limited, fail).allocate(20_000, queue=q)


@pytest.mark.parametrize(
    "over",
    [
        StatisticsResource,
        lambda wrong: LimitResource(wrong, 10),
        lambda wrong: FallbackResource(wrong, PoolResource("host", "host")),
        lambda wrong: FallbackResource(PoolResource("host", "host"), wrong),
        lambda wrong: FailureCallbackResource(wrong, bool),
    ],
)
def test_what_is_no_resource(over: Callable[[object], object]) -> None:
    for wrong in (None, 3, PoolResource):
        with pytest.raises(TypeError, match=r"resource of isthmus\.memory"):
            over(wrong)
    with pytest.raises(TypeError, match="callable"):
        FailureCallbackResource(PoolResource("host", "host"), 3)  # type: ignore[arg-type]
