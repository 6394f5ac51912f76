# SPDX-License-Identifier: Apache-2.0
"""The pool of isthmus.compat.pydotcompute: cached buffers, over the pools of the devices."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydotcompute_support import new_buffer, on_device
from support import message_has, python, sim

from isthmus import USMAllocationError
from isthmus._core import sim_state
from isthmus.compat.pydotcompute import BufferState, MemoryPool, UnifiedBuffer
from isthmus.compat.pydotcompute.core.memory_pool import (
    PoolStatistics,
    configure_memory_pool,
    get_memory_pool,
)
from isthmus.compat.pydotcompute.exceptions import PyDotComputeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isthmus import Device

MIB = 1 << 20


@pytest.fixture
def pool() -> Iterator[MemoryPool]:
    """A new instance of the process-wide pool."""
    MemoryPool._instance = None
    made = MemoryPool()
    yield made
    made.disable()
    made.free_all_blocks()
    MemoryPool._instance = None


def test_the_process_has_one(pool: MemoryPool) -> None:
    assert get_memory_pool() is pool is MemoryPool() is configure_memory_pool(enable=False)
    assert (pool.max_buffers, pool.max_buffer_bytes) == (100, 1 << 30)


def test_its_state_is_reported_as_in_the_released_package(pool: MemoryPool) -> None:
    released = pytest.importorskip("pydotcompute.core.memory_pool").MemoryPool
    released._instance = None
    theirs = released()
    released._instance = None
    for name in ("_initialized", "_initial_size_mb", "_max_size_mb", "_enabled"):
        assert getattr(pool, name) == getattr(theirs, name), name
    pool.enable()
    assert pool._enabled


def test_a_subclass_has_its_own_instance(pool: MemoryPool) -> None:
    class Named(MemoryPool):
        pass

    assert type(Named()) is Named
    assert Named() is Named() is not pool
    assert get_memory_pool() is pool is MemoryPool()


def test_a_separate_pool(pool: MemoryPool) -> None:
    own = MemoryPool(max_pool_size=1, max_buffer_size=400)
    assert own is not pool
    assert MemoryPool(5) is not MemoryPool(5)
    bufs = [own.acquire(size, device="host") for size in (100, 100, 101)]
    for buf in bufs:
        own.release(buf)
    assert own.pool_size == 1
    assert own.total_bytes == 400
    assert pool.pool_size == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((-1,), ValueError), ((1, -1), ValueError), (("many",), TypeError), ((1.5,), TypeError)],
)
def test_arguments(pool: MemoryPool, arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        MemoryPool(*arguments)
    assert get_memory_pool() is pool


def test_released_buffers_come_back(pool: MemoryPool, dev: Device) -> None:
    with dev:
        buf = pool.acquire((1000,), dtype=np.float32)
        assert type(buf) is UnifiedBuffer
        buf.fill(3)
        pool.release(buf)
        assert pool.acquire((1000,)) is buf
        others = [
            pool.acquire((1001,)),
            pool.acquire((1000,), np.int32),
            pool.acquire((1000,), pinned=True),
        ]
        assert buf not in others
        for each in (buf, *others):
            pool.release(each)
        with pool.buffer((1000,)) as again:
            assert again is buf
    assert pool.stats() == {
        "pool_size": 4,
        "total_acquired": 6,
        "total_released": 6,
        "cache_hits": 2,
        "cache_misses": 4,
        "cached_bytes": 16_004,
    }
    assert (pool.pool_size, pool.total_bytes) == (4, 16_004)
    pool.clear()
    assert (pool.pool_size, pool.total_bytes) == (0, 0)


def test_dirty_data_ends_with_its_owner(pool: MemoryPool) -> None:
    with sim():
        buf = pool.acquire(100).fill(1)
        _ = buf.device
        buf.mark_device_dirty()
        buf.mark_host_dirty()  # would be a conflict if either copy were read
        pool.release(buf)
        again = pool.acquire(100)
        assert again is buf
        assert again.fill(2).to_numpy().sum() == 200
        pool.release(again)


def test_freed_buffers_may_be_released(pool: MemoryPool) -> None:
    buf = pool.acquire(100, device="host").fill(1)
    buf.free()
    pool.release(buf)
    assert pool.acquire(100, device="host") is buf
    assert buf.fill(2).to_numpy().sum() == 200


@pytest.mark.parametrize("which", ["twice", "others", "nothing"])
def test_what_is_not_of_it(pool: MemoryPool, which: str) -> None:
    buf = pool.acquire(10, device="host")
    given = {"twice": buf, "others": UnifiedBuffer(10), "nothing": None}[which]
    pool.release(buf)
    with pytest.raises(ValueError):
        pool.release(given)  # type: ignore[arg-type]
    assert pool.pool_size == 1


def test_enable_and_disable(pool: MemoryPool) -> None:
    device = sim()
    assert not pool.enabled
    with device:
        before = new_buffer(device, MIB)
        pool.enable()
        assert pool.enabled
        before.allocate(host=False)
        assert pool.get_stats() == PoolStatistics(0, 0, 0)  # earlier buffers are unaffected
        buf = UnifiedBuffer(MIB).allocate(host=False)
        told = pool.get_stats()
        assert told.used_bytes == 4 * MIB <= told.total_bytes
        assert 0 < told.utilization <= 1
        assert "enabled=True" in repr(pool)
        assert "cuda=False" in repr(pool)
        buf.free()
        gc.collect()
        assert pool.get_stats().used_bytes == 0
        assert pool.get_stats().total_bytes >= 4 * MIB  # kept for the next request
        pool.free_all_blocks()
        assert pool.get_stats().total_bytes == 0
        pool.disable()
        assert not pool.enabled
        new_buffer(device, MIB).allocate(host=False)
        assert pool.get_stats() == PoolStatistics(0, 0, 0)


def test_arguments_are_refused_as_before(pool: MemoryPool) -> None:
    pool.enable()
    with pytest.raises(TypeError, match="queue"):
        UnifiedBuffer(3, queue="fast")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="quantum"):
        UnifiedBuffer(3, device="quantum")


def test_each_device_has_its_own(pool: MemoryPool) -> None:
    pool.enable()
    devices = [sim(), sim()]
    bufs = [new_buffer(device, MIB).fill(number) for number, device in enumerate(devices)]
    for number, (buf, device) in enumerate(zip(bufs, devices, strict=True)):
        assert (on_device(buf) == number).all()
        with device:
            assert pool.get_stats().used_bytes == 4 * MIB


def test_what_was_freed_is_used_again(pool: MemoryPool) -> None:
    device = sim()
    pool.enable()
    for _ in range(20):
        with new_buffer(device, MIB) as buf:
            buf.fill(1).sync_to_device()
    assert sim_state(device)[1] <= 40 * MIB


def test_one_enabled_after_the_other(pool: MemoryPool) -> None:
    other = MemoryPool(max_pool_size=1)
    pool.enable()
    other.enable()
    assert (pool.enabled, other.enabled) == (False, True)
    pool.disable()
    assert other.enabled
    other.disable()
    assert not other.enabled


@pytest.mark.parametrize("when", ["before", "after"])
def test_limit(pool: MemoryPool, when: str) -> None:
    device = sim()
    if when == "before":
        assert configure_memory_pool(max_size_mb=8) is pool
    else:
        pool.enable()
    first = new_buffer(device, MIB).fill(1).allocate()
    if when == "after":
        pool.set_limit(8)
    with pytest.raises(USMAllocationError) as told:
        new_buffer(device, 3 * MIB).allocate()
    assert isinstance(told.value, PyDotComputeError)
    message_has(told, ["12 MiB"])
    assert (on_device(first) == 1).all()
    pool.set_limit(None)
    assert new_buffer(device, 3 * MIB).allocate().is_allocated
    first.free()
    pool.set_limit(0)
    assert new_buffer(device, 3 * MIB).allocate().is_allocated


def test_a_limit_set_twice(pool: MemoryPool) -> None:
    """Live buffers still count after any number of limit changes."""
    device = sim()
    pool.enable()
    first = new_buffer(device, 5 * MIB).allocate()  # 20 MiB
    for _ in range(3):
        pool.set_limit(32)
        with device:
            told = pool.get_stats()
        assert told.used_bytes == told.total_bytes == 20 * MIB
        with pytest.raises(USMAllocationError):
            new_buffer(device, 5 * MIB).allocate()
    second = new_buffer(device, 2 * MIB).allocate()
    configure_memory_pool(max_size_mb=32)
    with device:
        assert pool.get_stats().used_bytes == 28 * MIB
    with pytest.raises(USMAllocationError):
        new_buffer(device, 2 * MIB).allocate()
    assert sim_state(device)[1] <= 32 * MIB
    del first, second
    gc.collect()
    pool.free_all_blocks()
    with device:
        assert pool.get_stats() == PoolStatistics(0, 0, 0)
    pool.set_limit(32)
    assert new_buffer(device, 5 * MIB).allocate().is_allocated


def test_a_limit_for_reallocated_buffers(pool: MemoryPool) -> None:
    device = sim()
    pool.enable()
    buf = new_buffer(device, 5 * MIB).allocate()
    buf.free()
    pool.set_limit(8)
    with pytest.raises(USMAllocationError):
        buf.allocate()
    buf.free()
    pool.set_limit(None)
    assert buf.allocate().is_allocated


def test_initial_size(pool: MemoryPool) -> None:
    device = sim()
    configure_memory_pool(16, 64)
    _ = new_buffer(device, 10).device
    with device:
        assert 16 * MIB <= pool.get_stats().total_bytes <= 64 * MIB
    configure_memory_pool(_initial_size_mb=128)  # above the limit, which applies instead
    other = sim()
    _ = new_buffer(other, 10).device
    with other:
        assert pool.get_stats().total_bytes <= 64 * MIB


BAD: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "negative": (lambda: get_memory_pool().set_limit(-1), ValueError),
    "fraction": (lambda: get_memory_pool().set_limit(1.5), TypeError),  # type: ignore[arg-type]
    "negative_limit": (lambda: configure_memory_pool(max_size_mb=-1), ValueError),
    "negative_initial": (lambda: configure_memory_pool(-5, 10), ValueError),
    "text": (lambda: configure_memory_pool("1"), TypeError),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("which", BAD)
def test_bad_sizes(pool: MemoryPool, which: str) -> None:
    call, error = BAD[which]
    with pytest.raises(error):
        call()
    assert not pool.enabled
    assert new_buffer(sim(), MIB).allocate().is_allocated


def test_pinned_statistics(pool: MemoryPool) -> None:
    assert pool.get_pinned_stats() == PoolStatistics(0, 0, 0)
    first, second = (pool.acquire(1000, pinned=True, device="host") for _ in range(2))
    pool.acquire(1000, device="host")
    assert pool.get_pinned_stats() == PoolStatistics(8000, 8000, 0)
    pool.release(first)
    assert pool.get_pinned_stats() == PoolStatistics(4000, 8000, 1)
    assert pool.get_stats().n_free_blocks == 1
    pool.release(second)
    pool.free_all_free()
    assert pool.get_pinned_stats() == PoolStatistics(0, 0, 0)


def test_statistics_are_computed() -> None:
    told = PoolStatistics(used_bytes=1 * MIB, total_bytes=4 * MIB, n_free_blocks=5)
    assert (told.free_bytes, told.utilization) == (3 * MIB, 0.25)
    assert (told.used_mb, told.total_mb) == (1.0, 4.0)
    assert PoolStatistics(0, 0, 0).utilization == 0.0


@pytest.mark.parametrize("made", ["MemoryPool()", "MemoryPool(3)"])
def test_a_forked_child_uses_its_own(made: str) -> None:
    python(f"""
import os, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, since Python 3.12
from isthmus.compat.pydotcompute import MemoryPool, UnifiedBuffer
from isthmus.compat.pydotcompute.core._creation_lock import creation_lock
pool = {made}
held, done = threading.Event(), threading.Event()
def hold():
    with pool._lock:
        held.set()
        done.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    assert pool.pool_size == 0 and creation_lock.acquire(timeout=1)
    creation_lock.release()
    buf = UnifiedBuffer(10, device="host")
    os._exit(0)
done.set()
thread.join()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""")


def test_state_of_a_kept_one_is_any() -> None:
    pool = MemoryPool(max_pool_size=2)
    buf = pool.acquire(10, device="host")
    pool.release(buf)
    assert pool.acquire(10, device="host").state in set(BufferState)
