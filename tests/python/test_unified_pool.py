# SPDX-License-Identifier: Apache-2.0
"""BufferPool: unified buffers that are cached for the next request of the same kind."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support import message_has, python, sim

import isthmus
from isthmus import Device, Queue
from isthmus.unified.buffer import UnifiedBuffer
from isthmus.unified.pool import BufferPool, BufferPoolStats, get_memory_pool


def stats_of(pool: BufferPool) -> tuple[int, ...]:
    told = pool.stats()
    return (
        told.pool_size,
        told.total_acquired,
        told.total_released,
        told.cache_hits,
        told.cache_misses,
        told.cached_bytes,
    )


def test_equal_arguments_return_the_same_buffer(dev: Device) -> None:
    pool = BufferPool()
    buf = pool.acquire((10, 3), np.int16, device=dev)
    assert (buf.shape, buf.dtype, buf.queue) == ((10, 3), np.int16, dev.default_queue)
    buf.host[:] = 5
    pool.release(buf)
    assert stats_of(pool) == (1, 1, 1, 0, 1, 60)
    assert pool.acquire([10, 3], "int16", device=dev) is buf
    assert stats_of(pool) == (0, 2, 1, 1, 1, 0)
    pool.release(buf)
    pool.clear()
    assert stats_of(pool) == (0, 2, 2, 1, 1, 0)
    with pytest.raises(isthmus.ClosedError):
        buf.host  # noqa: B018


def test_float32_is_the_default_and_an_integer_a_shape() -> None:
    pool = BufferPool()
    buf = pool.acquire(7)
    assert (buf.shape, buf.dtype) == ((7,), np.float32)
    pool.release(buf)
    assert pool.acquire((7,), np.float32) is buf


def test_other_kinds_give_other_buffers() -> None:
    pool = BufferPool()
    host, other = Device("host"), sim()
    buf = pool.acquire((8,), np.float32, device=host)
    pool.release(buf)
    for shape, dtype, more in (
        ((9,), np.float32, {"device": host}),
        ((8, 1), np.float32, {"device": host}),
        ((8,), np.int32, {"device": host}),
        ((8,), np.float32, {"device": host, "pinned": True}),
        ((8,), np.float32, {"device": other}),
        ((8,), np.float32, {"queue": Queue(host)}),
    ):
        assert pool.acquire(shape, dtype, **more) is not buf
    with host:
        assert pool.acquire((8,)) is buf


def test_the_most_recent_first() -> None:
    pool = BufferPool()
    first, second = pool.acquire(4), pool.acquire(4)
    pool.release(first)
    pool.release(second)
    assert pool.acquire(4) is second
    assert pool.acquire(4) is first


def test_a_buffer_is_usable_whatever_state_it_was_left_in(dev: Device) -> None:
    pool = BufferPool()

    def on_host(buf: UnifiedBuffer) -> None:
        buf.host[:] = 1

    def on_device(buf: UnifiedBuffer) -> None:
        buf.device.fill(2)
        buf.mark_device_dirty()

    def on_both(buf: UnifiedBuffer) -> None:
        buf.copy_from(np.ones(100, np.float32))
        on_device(buf)
        buf.copy_from(np.ones(100, np.float32))
        buf.mark_device_dirty()

    for leave in (lambda buf: None, on_host, on_device, on_both):
        buf = pool.acquire(100, device=dev)
        leave(buf)
        pool.release(buf)
        again = pool.acquire(100, device=dev)
        assert again is buf
        again.copy_from(np.arange(100, dtype=np.float32))
        again.sync_to_device()
        again.device.fill(3)
        again.mark_device_dirty()
        assert (again.to_numpy() == 3).all()
        pool.release(again)
    pool.clear()


def test_released_twice() -> None:
    pool = BufferPool()
    buf = pool.acquire(4)
    pool.release(buf)
    with pytest.raises(ValueError, match="released already"):
        pool.release(buf)
    assert pool.stats().total_released == 1
    assert pool.acquire(4) is buf


def test_what_is_not_the_pools() -> None:
    pool, other = BufferPool(), BufferPool()
    buf = pool.acquire((4, 2))
    for strange in (UnifiedBuffer((4, 2)), buf[1:3], buf.reshape(8), np.ones(4), None):
        with pytest.raises(ValueError, match="not from acquire"):
            pool.release(strange)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not from acquire"):
        other.release(buf)
    pool.release(buf)


def test_a_freed_one() -> None:
    pool = BufferPool()
    buf = pool.acquire(4)
    buf.free()
    with pytest.raises(isthmus.ClosedError):
        pool.release(buf)
    with pytest.raises(ValueError, match="not from acquire"):
        pool.release(buf)
    assert pool.stats().pool_size == 0
    assert pool.acquire(4) is not buf


def test_a_dropped_one_is_no_ones() -> None:
    pool = BufferPool()
    gone = weakref.ref(pool.acquire(4))
    gc.collect()
    assert gone() is None
    pool.release(pool.acquire(4))
    assert stats_of(pool) == (1, 2, 1, 0, 2, 16)


def test_the_oldest_go_first() -> None:
    pool = BufferPool(max_buffers=2)
    assert (pool.max_buffers, pool.max_buffer_bytes) == (2, 1 << 30)
    first, second, third = pool.acquire(4), pool.acquire(5), pool.acquire(4)
    for buf in (first, second, third):
        pool.release(buf)
    assert stats_of(pool) == (2, 3, 3, 0, 3, 36)
    with pytest.raises(isthmus.ClosedError):
        first.host  # noqa: B018
    assert pool.acquire(4) is third
    assert pool.acquire(5) is second
    assert pool.acquire(4) is not first


def test_large_ones_are_not_kept() -> None:
    pool = BufferPool(max_buffer_bytes=16)
    small, large = pool.acquire(4), pool.acquire(5)
    pool.release(small)
    pool.release(large)
    assert stats_of(pool) == (1, 2, 2, 0, 2, 16)
    with pytest.raises(isthmus.ClosedError):
        large.host  # noqa: B018


def test_none_are_kept() -> None:
    pool = BufferPool(0)
    pool.release(pool.acquire(4))
    assert stats_of(pool) == (0, 1, 1, 0, 1, 0)


@pytest.mark.parametrize("arguments", [{"max_buffers": -1}, {"max_buffer_bytes": -5}])
def test_bad_limits(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError) as caught:
        BufferPool(**arguments)
    message_has(caught, [*arguments, *arguments.values()])


def test_bad_requests() -> None:
    pool = BufferPool()
    with pytest.raises(ValueError, match="-1"):
        pool.acquire(-1)
    with pytest.raises(TypeError):
        pool.acquire(4, object)
    with pytest.raises(ValueError, match="do not match"):
        pool.acquire(4, device=sim(), queue=Queue("host"))
    assert pool.stats() == BufferPoolStats(0, 0, 0, 0, 0, 0)


def test_buffer_is_released_at_the_end_of_with() -> None:
    pool = BufferPool()
    with pool.buffer((3, 3), np.uint8) as buf:
        assert buf.shape == (3, 3)
    with contextlib.suppress(KeyError), pool.buffer((3, 3), np.uint8) as again:
        assert again is buf
        raise KeyError
    assert stats_of(pool) == (1, 2, 2, 1, 1, 9)


def test_no_buffer_has_two_owners() -> None:
    pool = BufferPool(max_buffers=3)
    taken: set[int] = set()
    lock = threading.Lock()

    def use(worker: int) -> None:
        for turn in range(200):
            with pool.buffer(4 + (worker + turn) % 3, device="host") as buf:
                with lock:
                    assert id(buf) not in taken
                    taken.add(id(buf))
                buf.host[:] = worker
                assert (buf.host == worker).all()
                with lock:
                    taken.remove(id(buf))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, range(4)))
    told = pool.stats()
    assert told.total_acquired == told.total_released == 800
    assert told.cache_hits + told.cache_misses == 800
    assert told.pool_size <= 3


def test_one_for_the_process() -> None:
    assert get_memory_pool() is get_memory_pool()
    assert "isthmus.BufferPool" in repr(get_memory_pool())


def test_a_program_may_end_with_buffers_in_its_pool() -> None:
    python("""
from isthmus.unified.pool import get_memory_pool
pool = get_memory_pool()
kept, lent = pool.acquire(1000), pool.acquire(1000)
kept.host[:] = lent.host[:] = 1
kept.device, lent.device
pool.release(kept)
""")


def test_a_forked_child_has_a_pool_that_works() -> None:
    python("""
import os, threading
from isthmus.unified.pool import get_memory_pool
pool = get_memory_pool()
pool.release(pool.acquire(4, device="host"))
other = threading.Thread(target=pool._lock.acquire)  # as one may have it at any time
other.start()
other.join()
child = os.fork()
if child == 0:
    os._exit(0 if pool.stats().pool_size == 1 else 1)
assert os.waitpid(child, 0)[1] == 0
""")
