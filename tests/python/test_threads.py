# SPDX-License-Identifier: Apache-2.0
"""Several threads on one buffer and on different buffers."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import filled, is_memory_released, noise

import isthmus
from isthmus import Buffer, Device, Queue
from isthmus.memory import live

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS, TURNS = 8, 60


def in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Runs work(0), work(1), ... at the same time; their first exception is raised."""
    failures: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            start.wait(60)
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "hangs"
    if failures:
        raise failures[0]


def test_allocate_copy_free(dev: Device, kind: str) -> None:
    queue, before = Queue(dev), live()

    def work(number: int) -> None:
        data = noise(3000, number)
        for turn in range(TURNS):
            buffer = Buffer(3000, kind=kind, queue=queue)
            buffer.copy_from(data)
            assert buffer.tobytes() == data.tobytes()
            if turn % 2:
                buffer.free()

    in_threads(work)
    assert is_memory_released(before)


def test_a_queue_each(dev: Device, kind: str) -> None:
    def work(number: int) -> None:
        queue = Queue(dev)
        buffer = Buffer(5000, kind=kind, queue=queue)
        got = np.zeros(5000, np.uint8)
        for turn in range(TURNS):
            buffer.fill(turn + number, blocking=False)
            event = buffer.copy_to(got, blocking=False)
            assert event is not None
            event.wait()
            assert (got == turn + number).all()

    in_threads(work)


def test_parts_of_one_buffer(dev: Device, kind: str) -> None:
    buffer = filled(bytes(THREADS * 100), kind=kind, queue=Queue(dev))

    def work(number: int) -> None:
        part = buffer[number * 100 : number * 100 + 100]
        for turn in range(TURNS):
            part.fill(turn + number)
            assert part.tobytes() == bytes([turn + number]) * 100

    in_threads(work)
    expected = b"".join(bytes([TURNS - 1 + number]) * 100 for number in range(THREADS))
    assert buffer.tobytes() == expected


def test_one_buffer_is_freed_while_all_use_it(dev: Device, kind: str) -> None:
    for _ in range(10):
        buffer = filled(bytes(4096), kind=kind, queue=Queue(dev))

        def work(number: int, buffer: Buffer = buffer) -> None:
            try:
                for turn in range(TURNS):
                    if number == 0 and turn == 5:
                        buffer.free()
                    buffer.fill(0, blocking=turn % 2 == 0)
                    assert buffer.tobytes() == bytes(4096)
                    assert bytes(buffer[5:9]) == bytes(4)
            except isthmus.ClosedError:
                return

        in_threads(work, 4)
        assert buffer.freed


def test_copies_between_the_same_buffers(dev: Device, kind: str) -> None:
    queues = [Queue(dev) for _ in range(THREADS)]
    one, other = (filled(bytes([3]) * 10_000, kind=kind, queue=queue) for queue in queues[:2])

    def work(number: int) -> None:
        for _ in range(TURNS):
            pair = (one, other) if number % 2 else (other, one)
            pair[0].copy_from(pair[1], queue=queues[number], blocking=False)
        queues[number].wait()

    in_threads(work)
    assert one.tobytes() == other.tobytes() == bytes([3]) * 10_000


def test_exports_come_and_go(dev: Device, host_kind: str) -> None:
    before = live()
    buffer = filled(bytes([1]) * 4096, kind=host_kind, queue=Queue(dev))

    def work(number: int) -> None:
        for _ in range(TURNS):
            view = memoryview(buffer) if number % 2 else np.asarray(buffer)
            assert view[5] == 1
            del view

    in_threads(work)
    buffer.free()
    assert is_memory_released(before)


def test_events_are_waited_for_everywhere(dev: Device) -> None:
    queue = Queue(dev)

    def work(number: int) -> None:
        for _ in range(TURNS):
            events = [queue.fence() for _ in range(3)]
            events[number % 3].wait(60)
            queue.wait(60)
            assert all(event.done for event in events)

    in_threads(work)


def test_devices_are_found_everywhere() -> None:
    in_threads(lambda _: [isthmus.devices() and isthmus.current_queue() for _ in range(20)])


@pytest.mark.parametrize("what", ["queue", "buffer"])
def test_a_wait_covers_work_pending_at_its_start(what: str) -> None:
    queue = Queue(Device("host"))
    buffer = filled(noise(64), kind="host", queue=queue)
    waited, submitted = threading.Event(), threading.Semaphore(0)

    def keep_busy() -> None:
        for _ in range(200):
            if waited.is_set():
                return
            queue.submit(lambda _: time.sleep(0.02), buffer)
            submitted.release()
            time.sleep(0.015)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    for _ in range(3):
        submitted.acquire()
    (queue if what == "queue" else buffer).wait()
    waited.set()
    still_busy = busy.is_alive()
    busy.join()
    assert still_busy, "waited for what came after it too"
    queue.wait()
