"""When memory is short: snapshots, rungs, reclaim functions, and garbage that is collected."""

from __future__ import annotations

import contextlib
import gc
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from support import until

from isthmus import Device, Queue
from isthmus.memory import (
    PoolResource,
    ProviderResource,
    Reclaimer,
    ReclaimRequest,
    Snapshot,
    USMAllocationError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
RUNGS = ["settle", "grow", "trim", "budget", "reclaim", "wait"]


def full(dev: Device | str, kind: str = "device", wait: float = 1.0) -> PoolResource:
    return PoolResource(kind, dev, initial_bytes=8 * MIB, limit_bytes=8 * MIB, wait=wait)


def fails(pool: PoolResource, nbytes: int = 9 * MIB) -> USMAllocationError:
    with pytest.raises(USMAllocationError) as caught:
        pool.allocate(nbytes)
    return caught.value


class Knot:
    """A buffer that only a collection of garbage frees.

    Where it finds no memory it tries again: a collection without fruit is not followed by another
    at once, and other tests have those.
    """

    def __init__(self, pool: PoolResource, nbytes: int) -> None:
        assert until(lambda: self.took(pool, nbytes)), pool.snapshot()
        self.itself = self

    def took(self, pool: PoolResource, nbytes: int) -> bool:
        with contextlib.suppress(USMAllocationError):
            self.buffer = pool.allocate(nbytes)
            return True
        return False


@pytest.fixture
def collections() -> Iterator[list[str]]:
    """The collections of garbage that begin while the test runs, none of them by chance."""
    begun: list[str] = []

    def note(phase: str, _: object) -> None:
        if phase == "start":
            begun.append(threading.current_thread().name)

    limits = gc.get_threshold()
    gc.collect()
    gc.set_threshold(1_000_000)
    gc.callbacks.append(note)
    yield begun
    gc.callbacks.remove(note)
    gc.set_threshold(*limits)


def test_a_snapshot_adds_up(dev: Device, kind: str) -> None:
    pool = PoolResource(kind, dev)
    assert pool.snapshot() == Snapshot(0, 0, 0, 0, 0, 0)
    kept = pool.allocate(3 * MIB)
    seen = pool.snapshot()
    assert seen.held_bytes == pool.held_bytes
    assert seen.held_bytes == sum(seen[1:5])
    assert 3 * MIB <= seen.live_bytes < 4 * MIB
    assert 0 <= seen.fragmentation <= 1
    assert pickle.loads(pickle.dumps(seen)) == seen
    kept.free()
    pool.trim()
    assert pool.snapshot().held_bytes == 0
    assert pool.snapshot().fragmentation == 0


def test_the_error_has_a_snapshot(dev: Device, kind: str) -> None:
    pool = full(dev, kind)
    kept = [pool.allocate(MIB), pool.allocate(2 * MIB)]
    failed = fails(pool, 7 * MIB)
    assert failed.snapshot is not None
    assert 3 * MIB <= failed.snapshot.live_bytes < 4 * MIB
    assert "settle, grow, trim" in str(failed)
    assert pickle.loads(pickle.dumps(failed)).snapshot == failed.snapshot
    kept.clear()


def test_an_error_of_no_pool_has_none(dev: Device) -> None:
    assert USMAllocationError.snapshot is None
    assert USMAllocationError("of the program's own").snapshot is None
    fails(full(dev))
    with pytest.raises(USMAllocationError) as caught:
        ProviderResource("device", dev).allocate(1 << 60)
    assert caught.value.snapshot is None


def test_every_rung_is_counted(dev: Device) -> None:
    pool = full(dev)
    assert list(pool.rungs) == RUNGS
    fails(pool)
    counts = pool.rungs
    assert counts["budget"] == (0, 0), "it has none"
    for name in ("settle", "grow", "trim", "reclaim", "wait"):
        assert counts[name].tried >= 1
        assert counts[name].served == 0
    hasty = full(dev, wait=0)
    fails(hasty)
    assert hasty.rungs["wait"].tried == 0


def test_a_function_makes_room(dev: Device, kind: str) -> None:
    pool = full(dev, kind)
    cache = [pool.allocate(4 * MIB)]
    asked: list[ReclaimRequest] = []

    def drop(request: ReclaimRequest) -> int:
        asked.append(request)
        cache.clear()
        return 4 * MIB

    with Reclaimer(drop) as reclaimer:
        assert "drop" in repr(reclaimer)
        assert pool.allocate(6 * MIB).nbytes == 6 * MIB
    assert pool.rungs["reclaim"].served == 1
    (request,) = asked
    assert (request.device, request.kind) == (dev, kind)
    assert request.nbytes >= 6 * MIB
    assert reclaimer.closed
    assert repr(reclaimer) == "<isthmus.memory.Reclaimer, closed>"
    fails(pool)
    assert len(asked) == 1, "it was closed"


def test_functions_are_asked_in_order_and_not_by_themselves() -> None:
    pool = full("host")
    order = []

    def first(_: ReclaimRequest) -> None:
        order.append(1)
        fails(pool)

    def second(_: ReclaimRequest) -> int:
        order.append(2)
        return 0

    with Reclaimer(first), Reclaimer(second):
        fails(pool)
    assert order == [1, 2]


def test_a_small_block_of_the_host_asks_too() -> None:
    pool = full("host", "host")
    blocks = []
    with contextlib.suppress(USMAllocationError):
        while True:
            blocks.append(pool.allocate(1000))

    def drop(_: ReclaimRequest) -> None:
        blocks.clear()

    with Reclaimer(drop):
        assert pool.allocate(1000).nbytes == 1000
    assert not blocks


def test_what_a_function_raises_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda seen: told.append(seen.exc_value))

    def fail(_: ReclaimRequest) -> int:
        raise LookupError("no cache")

    def much(_: ReclaimRequest) -> int:
        return -1

    pool = full("host")
    with Reclaimer(fail), Reclaimer(much):
        failed = fails(pool)
    assert failed.snapshot is not None
    assert [type(each) for each in told] == [LookupError, ValueError]


@pytest.mark.parametrize("bad", [None, 3, "name"], ids=repr)
def test_what_is_no_function_is_refused(bad: object) -> None:
    with pytest.raises(TypeError, match="function must be callable"):
        Reclaimer(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wait", "error"), [(-1, ValueError), (float("nan"), ValueError), (None, TypeError)], ids=repr
)
def test_bad_waits(wait: float, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"wait|real number"):
        PoolResource("host", "host", wait=wait)
    assert PoolResource("host", "host", wait=2).wait == 2


def test_a_function_that_is_dropped_is_asked_no_more() -> None:
    pool = full("host")
    asked = []
    kept = Reclaimer(lambda _: asked.append(1))
    fails(pool)
    del kept
    fails(pool)
    assert asked == [1]


def test_a_function_may_drop_and_close_itself() -> None:
    pool = full("host")
    kept: list[Reclaimer] = []
    asked = []

    def drop(_: ReclaimRequest) -> None:
        asked.append("drop")
        kept.clear()

    kept.append(Reclaimer(drop))
    fails(pool)
    fails(pool)

    def close(_: ReclaimRequest) -> None:
        asked.append("close")
        once.close()
        once.close()

    once = Reclaimer(close)
    fails(pool)
    fails(pool)
    assert asked == ["drop", "close"]


def test_close_waits_for_calls_that_run() -> None:
    pool = full("host")
    inside, go_on = threading.Event(), threading.Event()
    ended = []

    def slow(_: ReclaimRequest) -> None:
        inside.set()
        go_on.wait()
        ended.append(True)

    reclaimer = Reclaimer(slow)
    with ThreadPoolExecutor() as threads:
        failing = threads.submit(fails, pool)
        inside.wait()
        closing = threads.submit(lambda: (reclaimer.close(), list(ended)))
        while not reclaimer.closed:
            pass
        go_on.set()
        assert closing.result()[1] == [True]
        failing.result()


def test_dropping_waits_for_nothing() -> None:
    pool = full("host")
    inside, go_on = threading.Event(), threading.Event()
    asked = []

    def slow(_: ReclaimRequest) -> None:
        asked.append(True)
        inside.set()
        go_on.wait()

    kept = [Reclaimer(slow)]
    with ThreadPoolExecutor() as threads:
        failing = threads.submit(fails, pool)
        inside.wait()
        kept.clear()
        fails(pool)
        go_on.set()
        failing.result()
    fails(pool)
    assert asked == [True]


def test_functions_under_many_threads() -> None:
    pool = full("host")
    with ThreadPoolExecutor(8) as threads, Reclaimer(lambda _: gc.collect() and 0):
        failed = list(threads.map(lambda _: fails(pool), range(64)))
    assert all(each.snapshot is not None for each in failed)


def test_garbage_is_collected(dev: Device, kind: str, collections: list[str]) -> None:
    pool = full(dev, kind)
    for _ in range(5):
        Knot(pool, 6 * MIB)
    assert len(collections) == 4, "each but the first has the one before it collected"
    assert pool.rungs["reclaim"].served == 4


def test_garbage_of_small_blocks_is_collected(collections: list[str]) -> None:
    pool = PoolResource("host", "host", limit_bytes=MIB, growth_bytes=MIB)
    for _ in range(2000):
        Knot(pool, 1000)
    assert collections
    assert pool.held_bytes <= MIB


def test_no_garbage_is_collected_against_the_programs_will(collections: list[str]) -> None:
    pool = full("host")
    Knot(pool, 6 * MIB)
    gc.disable()
    try:
        fails(pool, 6 * MIB)
        assert not collections
    finally:
        gc.enable()
    Knot(pool, 6 * MIB)
    assert len(collections) == 1


def test_fruitless_collections_are_rare(collections: list[str]) -> None:
    pool = full("host", wait=0)
    kept = pool.allocate(6 * MIB)
    assert until(lambda: fails(pool, 6 * MIB) and collections)
    for _ in range(200):
        fails(pool, 6 * MIB)
    assert len(collections) < 150
    assert kept.nbytes == 6 * MIB


def test_no_collection_begins_in_one(collections: list[str]) -> None:
    pool = full("host", wait=0)
    told = []

    class Last:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            begun = len(collections)
            told.append((str(fails(pool)), len(collections) - begun))

    Last()
    gc.collect()
    ((text, begun),) = told
    assert begun == 0
    assert "settle" in text


@pytest.mark.parametrize("nbytes", [1000, 6 * MIB])
def test_a_wait_lets_other_threads_run(q: Queue, nbytes: int) -> None:
    """The work that memory was freed behind is a function, which needs the interpreter's lock."""
    pool = PoolResource("shared", q.device, limit_bytes=8 * MIB, growth_bytes=MIB, wait=60)
    other = Queue(q.device)
    go_on = threading.Event()
    blocks = [pool.allocate(MIB // 2, queue=other) for _ in range(15)]
    done = other.submit(go_on.wait)
    blocks.clear()
    threading.Timer(0.1, go_on.set).start()
    taken = []
    while not pool.rungs["wait"].served:
        taken.append(pool.allocate(nbytes, queue=q))
    assert done.done
    assert pool.rungs["wait"] == (1, 1), "none waited in vain"
