# SPDX-License-Identifier: Apache-2.0
"""Threads share a buffer, and loops that wait for copies progress."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from unified_support import each_means, numbers, read_on_device, two_copies

import isthmus
from isthmus import BufferState, Event, Queue, UnifiedBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Device


def together(*each: Callable[[threading.Event], None], seconds: float) -> None:
    """Runs each function on a thread until it is stopped, and raises the first exception."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def run(one: Callable[[threading.Event], None]) -> None:
        try:
            one(stop)
        except BaseException as failed:
            failures.append(failed)
            stop.set()

    threads = [threading.Thread(target=run, args=(one,)) for one in each]
    for thread in threads:
        thread.start()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_all_calls_side_by_side(dev: Device) -> None:
    buf = two_copies(dev, 50_000)
    buf.fill(1).sync_to_device()

    def host(stop: threading.Event) -> None:
        while not stop.is_set():
            buf.host[:10] = 1
            assert buf.host[40_000] == 1

    def device(stop: threading.Event) -> None:
        while not stop.is_set():
            assert buf.device.shape == (50_000,)
            buf.sync_to_device((0, 1000), blocking=False)

    def look(stop: threading.Event) -> None:
        while not stop.is_set():
            assert buf.state in (BufferState.SYNCHRONIZED, BufferState.HOST_DIRTY)
            repr(buf), buf.dirty_ranges(), buf.statistics

    def exact(stop: threading.Event) -> None:
        while not stop.is_set():
            with buf.host_write((20_000, 20_100)) as array:
                array[:] = 1
            with buf.host_read((30_000, 30_100)) as array:
                assert (array == 1).all()

    together(host, device, look, exact, host, device, seconds=0.4)
    assert (read_on_device(buf) == 1).all()


def test_many_threads_with_buffers_of_their_own(dev: Device) -> None:
    def work(stop: threading.Event) -> None:
        number = threading.get_ident() % 1000
        while not stop.is_set():
            buf = two_copies(dev, 20_000)
            buf.host[5] = number
            isthmus.synchronize([buf])
            assert read_on_device(buf)[5] == number
            if number % 2:
                buf.free()

    together(*[work] * 6, seconds=0.4)


def test_freed_while_other_threads_use_it(dev: Device) -> None:
    for _ in range(20):
        buf = two_copies(dev, 20_000)

        def use(stop: threading.Event, buf: UnifiedBuffer = buf) -> None:
            try:
                while not stop.is_set():
                    buf.host[:5] = 1
                    buf.sync_to_device()
            except isthmus.ClosedError:
                stop.set()

        def free(stop: threading.Event, buf: UnifiedBuffer = buf) -> None:
            time.sleep(0.002)
            buf.free()

        together(use, use, free, seconds=60)


def test_an_event_loop_is_not_blocked(dev: Device) -> None:
    async def ticks(count: list[int]) -> None:
        while True:
            count[0] += 1
            await asyncio.sleep(0)

    async def main() -> None:
        buf = two_copies(dev, 200_000)
        buf.host[:] = numbers(200_000)
        count = [0]
        other = asyncio.ensure_future(ticks(count))
        array = await buf.on_device()
        assert (array.to_numpy() == numbers(200_000)).all()
        array.fill(3)
        buf.mark_device_dirty()
        host = await buf.on_host()
        assert (host == 3).all()
        part = await buf[5:10].on_device(queue=Queue(dev))
        assert part.shape == (5,)
        other.cancel()

    asyncio.run(main())


def test_uploads_after_work_do_not_wait_for_it(dev: Device, gate: Event) -> None:
    if "wait_for_host" not in dev.capabilities:
        pytest.skip(f"queues of {dev.filter} cannot wait for the host")
    queue = Queue(dev)
    buf = two_copies(dev, 50_000, device=None, queue=queue)
    buf.fill(1).sync_to_device()
    kept = buf.host
    queue.fence(after=[gate])
    kept[:] = 2
    array = buf.device  # returns although the queue is blocked
    kept[:] = 3  # does not change the data that was uploaded
    got = np.empty(50_000, np.float32)
    array.buffer.copy_to(got, queue=queue, blocking=False)
    gate.complete()
    queue.fence().wait()
    assert (got == 2).all()
    assert buf.state is BufferState.HOST_DIRTY
    assert (read_on_device(buf) == 3).all()


def test_pipes_are_read_into_it_meanwhile(dev: Device) -> None:
    """Writes by the kernel, while another thread synchronizes."""
    buf = two_copies(dev, 1 << 20, dtype=np.uint8, granularity="page")
    kept = memoryview(buf.host)
    reader, writer = os.pipe()
    data = np.random.default_rng(3).integers(0, 256, 1 << 20, dtype=np.uint8)

    def fill(stop: threading.Event) -> None:
        with open(writer, "wb") as file:
            file.write(data)

    def read(stop: threading.Event) -> None:
        done = 0
        with open(reader, "rb", buffering=0) as file:
            while done < len(data):
                done += file.readinto(kept[done : done + 5000])
        stop.set()

    def synchronize(stop: threading.Event) -> None:
        while not stop.is_set():
            buf.sync_to_device()

    together(fill, read, synchronize, seconds=60)
    assert (read_on_device(buf) == data).all()


@each_means
def test_a_view_is_requested_while_the_last_one_is_freed(tracking: str) -> None:
    buf = two_copies(isthmus.Device("host"), 300_000, tracking)
    view = buf.host
    view[:] = 0
    buf.sync_to_device()
    gate = Event()
    held = isthmus.Buffer(64, queue=buf.queue).fill(0, after=gate, blocking=False)
    buf.mark_device_dirty((0, 1))
    got: list[Any] = []
    asks = threading.Thread(target=lambda: got.append(buf.host))
    looks = threading.Thread(target=lambda: buf.state)
    asks.start()
    time.sleep(0.1)
    del view
    looks.start()
    time.sleep(0.1)
    gate.complete()
    asks.join()
    looks.join()
    held.wait()
    buf.sync_to_device()
    got[0][150_000] = 9
    assert buf.state is BufferState.HOST_DIRTY
    assert read_on_device(buf)[150_000] == 9


def test_views_that_come_and_go_on_several_threads(dev: Device) -> None:
    buf = two_copies(dev, 60_000)
    buf.host[:] = 0

    def writer(part: int) -> Callable[[threading.Event], None]:
        def write(stop: threading.Event) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                buf.host[part * 20_000 : (part + 1) * 20_000] = number

        return write

    def sync(stop: threading.Event) -> None:
        while not stop.is_set():
            buf.sync_to_device()

    for _ in range(4):
        together(writer(0), writer(1), writer(2), sync, seconds=0.1)
        on_device = read_on_device(buf)
        assert (on_device == buf.host).all()
