# SPDX-License-Identifier: Apache-2.0
"""Scarce memory: snapshots, out-of-memory stages and callbacks, and collected garbage."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import pickle
import sys
import textwrap
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from support import python, sim, until

import isthmus
from isthmus import Buffer, Device, Queue
from isthmus.memory import (
    OomCallback,
    OomRequest,
    PoolResource,
    ProviderResource,
    Snapshot,
    StatisticsResource,
    USMAllocationError,
)
from isthmus.testing import sim_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
OOM_STAGES = [
    "collect",
    "collect_idle",
    "grow",
    "trim",
    "budget",
    "device_wait",
    "callback",
    "wait",
]


def full(dev: Device | str, kind: str = "device", wait: float = 1.0) -> PoolResource:
    return PoolResource(kind, dev, initial_bytes=8 * MIB, limit_bytes=8 * MIB, wait=wait)


def fails(pool: PoolResource, nbytes: int = 8 * MIB) -> USMAllocationError:
    """The error of a request that the limit allows, but that a block in use prevents."""
    kept = pool.allocate(100_000)
    with pytest.raises(USMAllocationError) as caught:
        pool.allocate(nbytes)
    kept.free()
    return caught.value


class Knot:
    """A buffer that only a garbage collection frees."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.itself = self


@pytest.fixture(autouse=True, scope="module")
def quick_collections() -> Iterator[None]:
    """Objects left by other tests are not traversed in each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def collections() -> Iterator[list[str]]:
    """The garbage collections that begin during the test; automatic ones are disabled."""
    begun: list[str] = []

    def note(phase: str, _: object) -> None:
        if phase == "start":
            begun.append(threading.current_thread().name)

    limits = gc.get_threshold()
    gc.collect()
    gc.set_threshold(1_000_000)
    gc.callbacks.append(note)

    def one_finds_garbage() -> bool:  # earlier futile collections may have delayed it
        Knot(full("host").allocate(MIB))
        fails(full("host", wait=0))
        return bool(begun)

    assert until(one_finds_garbage)
    begun.clear()
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
    seen = failed.snapshot
    assert 3 * MIB <= seen.live_bytes < 4 * MIB
    assert "collect, collect_idle, grow, trim" in str(failed)
    assert (seen.device, seen.kind, seen.requested_bytes) == (dev.filter, kind, 7 * MIB)
    assert seen.oom_stages[:4] == ("collect", "collect_idle", "grow", "trim")
    assert set(seen.oom_stages) <= set(pool.oom_stages)
    assert seen.advice
    assert seen.advice in str(failed)
    own = pool.snapshot()
    assert (own.device, own.kind, own.requested_bytes, own.oom_stages, own.advice) == (
        *(None, None, 0),
        *((), None),
    )
    assert pickle.loads(pickle.dumps(failed)).snapshot == failed.snapshot
    kept.clear()


def test_an_error_of_no_pool_has_none(dev: Device) -> None:
    assert USMAllocationError.snapshot is None
    assert USMAllocationError("of the program's own").snapshot is None
    fails(full(dev))
    with pytest.raises(USMAllocationError) as caught:
        ProviderResource("device", dev).allocate(1 << 60)
    assert caught.value.snapshot is None


def test_every_oom_stage_is_counted(dev: Device) -> None:
    pool = full(dev)
    assert list(pool.oom_stages) == OOM_STAGES
    fails(pool)
    counts = pool.oom_stages
    assert counts["budget"] == counts["device_wait"] == (0, 0), "it has none"
    for name in ("collect", "grow", "trim", "callback", "wait"):
        assert counts[name].tried >= 1
        assert counts[name].served == 0
    hasty = full(dev, wait=0)
    fails(hasty)
    assert hasty.oom_stages["wait"].tried == 0


def test_a_callback_frees_memory(dev: Device, kind: str) -> None:
    pool = full(dev, kind)
    cache = [pool.allocate(4 * MIB)]
    asked: list[OomRequest] = []

    def drop(request: OomRequest) -> int:
        asked.append(request)
        cache.clear()
        return 4 * MIB

    with OomCallback(drop) as oom_callback:
        assert "drop" in repr(oom_callback)
        assert pool.allocate(6 * MIB).nbytes == 6 * MIB
    assert pool.oom_stages["callback"].served == 1
    (request,) = asked
    assert (request.device, request.kind) == (dev, kind)
    assert request.nbytes >= 6 * MIB
    assert oom_callback.closed
    assert repr(oom_callback) == "<isthmus.memory.OomCallback, closed>"
    fails(pool)
    assert len(asked) == 1, "it was closed"


def test_a_small_host_block_runs_callbacks_too() -> None:
    pool = full("host", "host")
    blocks = []
    with contextlib.suppress(USMAllocationError):
        while True:
            blocks.append(pool.allocate(1000))

    def drop(_: OomRequest) -> None:
        blocks.clear()

    with OomCallback(drop):
        assert pool.allocate(1000).nbytes == 1000
    assert not blocks


def test_exceptions_of_a_callback_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda seen: told.append(seen.exc_value))

    def fail(_: OomRequest) -> int:
        raise LookupError("no cache")

    def much(_: OomRequest) -> int:
        return -1

    pool = full("host")
    with OomCallback(fail), OomCallback(much):
        failed = fails(pool)
    assert failed.snapshot is not None
    assert [type(each) for each in told] == [LookupError, ValueError]


@pytest.mark.parametrize("bad", [None, 3, "name"], ids=repr)
def test_what_is_no_function_is_refused(bad: object) -> None:
    with pytest.raises(TypeError, match="function must be callable"):
        OomCallback(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wait", "error"),
    [
        *((bad, ValueError) for bad in (-1, float("nan"), float("inf"), 1e300, 366 * 86400)),
        (None, TypeError),
    ],
    ids=repr,
)
def test_bad_waits(wait: float, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"wait|real number"):
        PoolResource("host", "host", wait=wait)
    assert PoolResource("host", "host", wait=2).wait == 2


def test_a_dropped_callback_is_not_called() -> None:
    pool = full("host")
    asked = []
    kept = OomCallback(lambda _: asked.append(1))
    fails(pool)
    del kept
    fails(pool)
    assert asked == [1]


def test_a_function_may_drop_and_close_itself() -> None:
    pool = full("host")
    kept: list[OomCallback] = []
    asked = []

    def drop(_: OomRequest) -> None:
        asked.append("drop")
        kept.clear()

    kept.append(OomCallback(drop))
    fails(pool)
    fails(pool)

    def close(_: OomRequest) -> None:
        asked.append("close")
        once.close()
        once.close()

    once = OomCallback(close)
    fails(pool)
    fails(pool)
    assert asked == ["drop", "close"]


def test_close_waits_for_calls_that_run() -> None:
    pool = full("host")
    inside, go_on = threading.Event(), threading.Event()
    ended = []

    def slow(_: OomRequest) -> None:
        inside.set()
        go_on.wait()
        ended.append(True)

    oom_callback = OomCallback(slow)
    with ThreadPoolExecutor() as threads:
        failing = threads.submit(fails, pool)
        inside.wait()
        closing = threads.submit(lambda: (oom_callback.close(), list(ended)))
        while not oom_callback.closed:
            pass
        go_on.set()
        assert closing.result()[1] == [True]
        failing.result()


def test_dropping_waits_for_nothing() -> None:
    pool = full("host")
    inside, go_on = threading.Event(), threading.Event()
    asked = []

    def slow(_: OomRequest) -> None:
        asked.append(True)
        inside.set()
        go_on.wait()

    kept = [OomCallback(slow)]
    with ThreadPoolExecutor() as threads:
        failing = threads.submit(fails, pool)
        inside.wait()
        kept.clear()
        fails(pool)
        go_on.set()
        failing.result()
    fails(pool)
    assert asked == [True]


def test_a_callback_in_a_reference_cycle_is_collected() -> None:
    pool = full("host")

    class Cache:
        def __init__(self) -> None:
            self.buffer = pool.allocate(6 * MIB)
            self.oom_callback = OomCallback(self.drop)

        def drop(self, _: OomRequest) -> None:
            pass

    gone = weakref.ref(Cache())
    gc.collect()
    assert gone() is None
    assert pool.snapshot().live_bytes == 0


def test_a_program_with_one_ends() -> None:
    """Its daemon threads are waiting for the GIL when the interpreter ends."""
    program = """
        import sys, threading
        from isthmus.memory import PoolResource, OomCallback, USMAllocationError

        def drop(request):
            return 0

        kept, sys.kept = OomCallback(drop), OomCallback(id)
        pool = PoolResource("device", "host", limit_bytes=8 << 20, wait=0)
        live = pool.allocate(1 << 20)

        def climb():
            while True:
                try:
                    pool.allocate(8 << 20)
                except USMAllocationError:
                    tried.set()

        tried = threading.Event()
        for _ in range(8):
            threading.Thread(target=climb, daemon=True).start()
        tried.wait()
    """
    python(textwrap.dedent(program))


def test_memory_of_a_module_with_a_callback_is_freed() -> None:
    program = """
        from isthmus.memory import OomCallback

        class Last:
            def __del__(self):
                print("let go", flush=True)

        last = Last()
        def drop(request):
            return 0

        kept = OomCallback(drop)
    """
    assert "let go" in python(textwrap.dedent(program)).stdout


def test_a_forked_child_closes_at_once() -> None:
    program = """
        import os, threading
        from isthmus import ForkedError
        from isthmus.memory import PoolResource, OomCallback, USMAllocationError

        inside, go_on = threading.Event(), threading.Event()
        def slow(request):
            inside.set()
            go_on.wait()

        def climb():
            try:
                pool.allocate(8 << 20)
            except USMAllocationError:
                pass

        pool = PoolResource("device", "host", limit_bytes=8 << 20, wait=0)
        live = pool.allocate(1 << 20)
        oom_callback = OomCallback(slow)
        thread = threading.Thread(target=climb)
        thread.start()
        inside.wait()
        child = os.fork()
        if child == 0:
            oom_callback.close()
            try:
                OomCallback(slow)
            except ForkedError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        go_on.set()
        thread.join()
        oom_callback.close()
    """
    python(textwrap.dedent(program))


def test_what_is_above_the_limit_is_refused_at_once(collections: list[str]) -> None:
    pool = full("host", wait=60)
    kept = pool.allocate(MIB)
    cache = pool.allocate(MIB)
    cache.free()
    with pytest.raises(USMAllocationError, match="holds at most") as caught:
        pool.allocate(9 * MIB)
    assert caught.value.snapshot is not None
    assert not collections
    assert pool.oom_stages["trim"].tried == 0
    assert kept.nbytes == MIB


def test_functions_under_many_threads() -> None:
    pool = full("host")
    with ThreadPoolExecutor(8) as threads, OomCallback(lambda _: 0):
        failed = list(threads.map(lambda _: fails(pool), range(64)))
    assert all(each.snapshot is not None for each in failed)


def test_garbage_is_collected(dev: Device, kind: str, collections: list[str]) -> None:
    pool = full(dev, kind)
    for _ in range(5):
        Knot(pool.allocate(6 * MIB))
    assert len(collections) == 4, "each but the first has the one before it collected"
    assert pool.oom_stages["callback"].served == 4


def test_garbage_of_small_blocks_is_collected(collections: list[str]) -> None:
    pool = PoolResource("host", "host", limit_bytes=MIB, growth_bytes=MIB)
    for _ in range(2000):
        Knot(pool.allocate(1000))
    assert collections
    assert pool.held_bytes <= MIB


def test_garbage_is_collected_for_the_driver(collections: list[str]) -> None:
    device = sim(capacity="8MiB")
    provider = ProviderResource("device", device)
    for resource in (None, provider, StatisticsResource(provider)):
        for _ in range(3):
            Knot(Buffer(6 * MIB, device=device, resource=resource))
    assert len(collections) == 8, "each but the first has the one before it collected"
    gc.disable()
    try:
        with pytest.raises(USMAllocationError):
            Buffer(6 * MIB, device=device)
    finally:
        gc.enable()
    assert len(collections) == 8
    cache = [Buffer(6 * MIB, device=device)]
    with OomCallback(lambda _: cache.pop().nbytes):
        assert Buffer(6 * MIB, device=device).nbytes == 6 * MIB


@pytest.mark.parametrize("upstream", [False, True], ids=["driver", "upstream"])
def test_memory_is_freed_for_the_first_bytes_of_a_pool(
    collections: list[str], upstream: bool
) -> None:
    device = sim(capacity="8MiB")
    provider = ProviderResource("device", device)
    place = (provider,) if upstream else ("device", device)
    Knot(provider.allocate(6 * MIB))
    pool = PoolResource(*place, initial_bytes="3MiB")
    assert pool.held_bytes >= 3 * MIB
    assert len(collections) == 1
    del pool
    cache = [provider.allocate(6 * MIB)]
    with OomCallback(lambda _: cache.pop().nbytes):
        assert PoolResource(*place, initial_bytes="3MiB").held_bytes >= 3 * MIB
    assert not cache


def test_garbage_of_other_devices_hides_no_failure(collections: list[str]) -> None:
    """A call that is made to fail is not retried."""
    device = sim(fail="allocate:1")
    Knot(Buffer(MIB, device=sim()))
    with pytest.raises(USMAllocationError):
        Buffer(100, resource=ProviderResource("device", device))
    assert len(collections) == 1
    assert sim_calls(device, "allocate") == 1


def test_no_garbage_is_collected_against_the_programs_will(collections: list[str]) -> None:
    pool = full("host")
    Knot(pool.allocate(6 * MIB))
    gc.disable()
    try:
        fails(pool, 6 * MIB)
        assert not collections
    finally:
        gc.enable()
    Knot(pool.allocate(6 * MIB))
    assert len(collections) == 1


def test_fruitless_collections_are_rare(collections: list[str]) -> None:
    pool = full("host", wait=0)
    kept = pool.allocate(6 * MIB)
    for _ in range(200):
        # pytest.raises would create garbage.
        with contextlib.suppress(USMAllocationError):
            pool.allocate(6 * MIB)
    assert 1 <= len(collections) < 150
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
    assert "collect" in text


class Options(ctypes.Structure):
    """The first fields of ``isthmus_pool_options_t``."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        *((name, ctypes.c_uint64) for name in ("initial", "growth", "limit", "flags")),
    )


def test_no_garbage_is_collected_for_a_caller_that_is_not_the_modules(
    collections: list[str],
) -> None:
    """A Python thread that calls through another binding, which has released the GIL."""
    library = ctypes.CDLL(isthmus.get_library())
    device, context, queue, pool, block = (ctypes.c_void_p() for _ in range(5))
    limit = Options(ctypes.sizeof(Options), 0, MIB, MIB, 0)
    for status in (
        library.isthmus_device_find(b"host", ctypes.byref(device)),
        library.isthmus_context_default(device, ctypes.byref(context)),
        library.isthmus_queue_create(context, device, ctypes.byref(queue)),
        library.isthmus_resource_pool(context, device, 1, ctypes.byref(limit), ctypes.byref(pool)),
    ):
        assert status == 0
    garbage = full("host", wait=0)
    Knot(garbage.allocate(6 * MIB))
    asked: list[OomRequest] = []
    nbytes = ctypes.c_size_t(MIB // 2 + 1)
    wanted = (pool, nbytes, ctypes.c_size_t(0), queue)
    none = ctypes.c_void_p()
    with OomCallback(asked.append):
        assert library.isthmus_resource_allocate(*wanted, ctypes.byref(block)) == 0
        assert library.isthmus_resource_allocate(*wanted, ctypes.byref(none)) == -3
    assert len(asked) == 1
    assert not collections
    library.isthmus_resource_deallocate(pool, block, nbytes, ctypes.c_size_t(0), queue)
    library.isthmus_resource_release(pool)
    library.isthmus_queue_release(queue)
    library.isthmus_context_release(context)
    library.isthmus_device_release(device)


def test_a_queue_waits_on_the_device_on_request(q: Queue) -> None:
    pool = PoolResource(
        "device", q.device, limit_bytes=8 * MIB, remap=False, wait=0, device_wait=True
    )
    other = Queue(q.device)
    go_on = threading.Event()
    blocks = [pool.allocate(7 * MIB, queue=other)]
    other.submit(go_on.wait)
    blocks.clear()
    taken = pool.allocate(7 * MIB, queue=q)
    assert pool.oom_stages["device_wait"] == (1, 1)
    filled = taken.fill(7, blocking=False)
    assert filled is not None
    assert not filled.done
    go_on.set()
    assert bytes(taken[-4:].tobytes()) == b"\7" * 4


@pytest.mark.parametrize("nbytes", [1000, 6 * MIB])
def test_a_wait_lets_other_threads_run(q: Queue, nbytes: int) -> None:
    """The memory is freed after work that runs a function, which needs the GIL."""
    pool = PoolResource("shared", q.device, limit_bytes=8 * MIB, growth_bytes=MIB, wait=60)
    other = Queue(q.device)
    go_on = threading.Event()
    blocks = [pool.allocate(MIB // 2, queue=other) for _ in range(15)]
    done = other.submit(go_on.wait)
    blocks.clear()
    taken = []
    with OomCallback(lambda _: threading.Timer(0.1, go_on.set).start()):  # before the wait
        while not pool.oom_stages["wait"].served:
            taken.append(pool.allocate(nbytes, queue=q))
    assert done.done
    assert pool.oom_stages["wait"] == (1, 1), "none waited in vain"
