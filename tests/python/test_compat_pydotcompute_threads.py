# SPDX-License-Identifier: Apache-2.0
"""Threads on the buffers and pools of isthmus.compat.pydotcompute, and a fork among them."""

from __future__ import annotations

import contextlib
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydotcompute_support import OLD, SIZE, new_buffer, on_device
from support import python, sim

from isthmus import ClosedError
from isthmus.compat.pydotcompute import BufferState, MemoryPool, UnifiedBuffer, get_accelerator
from isthmus.compat.pydotcompute.core.memory_pool import get_memory_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isthmus import Device

THREADS = 8
ROUNDS = 200


def at_once(call: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """The results of all threads; raises the exception of a thread that failed."""
    ready = threading.Barrier(threads)

    def run(number: int) -> Any:
        ready.wait()
        return call(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


@contextlib.contextmanager
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_a_write_during_a_synchronization_is_not_lost(dev: Device) -> None:
    buf = new_buffer(dev, 50_000)
    buf.fill(0).sync_to_device()
    view = buf.host

    def run(number: int) -> None:
        for turn in range(1, 51):
            if number == 0:
                buf.sync_to_device()
            else:
                view[number] = turn

    at_once(run, 4)
    assert on_device(buf)[1:4].tolist() == [50, 50, 50]
    assert (on_device(buf) == view).all()


@pytest.mark.parametrize("freed", [False, True], ids=["new", "freed_before"])
def test_first_access_at_once(dev: Device, freed: bool) -> None:
    for _ in range(20):
        buf = new_buffer(dev)
        if freed:
            buf.allocate().free()
        arrays = at_once(lambda _, buf=buf: buf.host)
        assert all(np.shares_memory(arrays[0], each) for each in arrays)
        arrays[0][:] = OLD
        assert (on_device(buf) == OLD).all()


def test_free_during_use(dev: Device) -> None:
    """Each call succeeds, or raises ClosedError if the memory was freed during the call."""
    buf = new_buffer(dev)

    def run(number: int) -> None:
        for _ in range(ROUNDS):
            if number == 0:
                buf.free()
                continue
            with contextlib.suppress(ClosedError):
                buf.fill(number)
                _ = buf.host
                buf.copy_from(OLD)

    with switching_often():
        at_once(run, 4)
    assert (on_device(buf.copy_from(OLD)) == OLD).all()
    buf.free()
    assert buf.state is BufferState.UNINITIALIZED


def test_no_buffer_is_acquired_twice() -> None:
    pool, device = MemoryPool(max_pool_size=4), sim()

    def run(number: int) -> None:
        for _ in range(ROUNDS):
            buf = pool.acquire(SIZE, device=device)
            buf.fill(number)
            assert (buf.to_numpy() == number).all()
            pool.release(buf)

    at_once(run)
    told = pool.stats()
    assert told["total_acquired"] == told["total_released"] == THREADS * ROUNDS
    assert told["pool_size"] <= 4


def test_statistics_while_buffers_are_dropped() -> None:
    pool = MemoryPool(max_pool_size=4)
    held = [pool.acquire(SIZE, pinned=True, device="host") for _ in range(300)]

    def run(number: int) -> None:
        for _ in range(5 * ROUNDS):
            if number % 2:
                assert pool.get_pinned_stats().used_bytes >= 300 * 4 * SIZE
            else:
                pool.acquire(SIZE, device="host")  # dropped at once

    with switching_often():
        at_once(run, 4)
    del held


def test_one_of_each_for_all_threads() -> None:
    MemoryPool._instance = None
    assert len(set(map(id, at_once(lambda _: get_memory_pool())))) == 1
    assert len(set(map(id, at_once(lambda _: get_accelerator())))) == 1


def test_one_pool_for_a_device() -> None:
    pool, device = MemoryPool(max_pool_size=1), sim()
    pool.enable()
    try:
        bufs = at_once(lambda _: new_buffer(device, 1 << 16).allocate())
        with device:
            assert pool.get_stats().used_bytes == THREADS << 18
        del bufs
    finally:
        pool.disable()


def test_devices_are_each_threads_own() -> None:
    accelerator = get_accelerator()
    last = accelerator.device_count - 1

    def run(number: int) -> Any:
        if number % 2:
            accelerator.set_device(last)
        return UnifiedBuffer(3).queue.device

    found = at_once(run)
    assert {found[number] for number in range(1, THREADS, 2)} == {found[1]}


def test_a_child_has_its_own_copy() -> None:
    python("""
import os
import numpy as np
from isthmus.compat.pydotcompute import UnifiedBuffer
buf = UnifiedBuffer(1000, np.int32, device="host", separate=True)
buf.fill(1).sync_to_device()
again = UnifiedBuffer(10, device="host").fill(1)
again.free()
child = os.fork()
if child == 0:
    buf.host[:] = 2
    again.free()
    os._exit(0 if buf.host[0] == 2 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert buf.host[0] == 1
assert again.fill(3)[0] == 3
""")
