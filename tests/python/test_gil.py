# SPDX-License-Identifier: Apache-2.0
"""The GIL is released while a call waits and while bytes are copied."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import sim
from typing_extensions import Self

from isthmus import Buffer, Device, Event, Queue

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def opener(gate: Event):  # type: ignore[no-untyped-def]
    """Opens the gate from another Python thread, which could not run if the GIL were held."""
    threads = []

    def start() -> Event:
        def open_gate() -> None:
            time.sleep(0.02)
            gate.complete()

        threads.append(threading.Thread(target=open_gate))
        threads[0].start()
        return gate

    yield start
    for thread in threads:
        thread.join()


def waits(queue: Queue, gate: Event) -> dict[str, Callable[[], object]]:
    kind = queue.device.kinds[0]
    one, other = (Buffer(100, kind=kind, queue=queue) for _ in range(2))
    return {
        "event": lambda: queue.fence([gate]).wait(),
        "queue": lambda: (queue.fence([gate]), queue.wait()),
        "wait_for": lambda: Event.wait_for([gate]),
        "copy_from": lambda: one.copy_from(bytes(100), after=[gate]),
        "copy_to": lambda: one.copy_to(bytearray(100), after=[gate]),
        "between": lambda: one.copy_from(other, after=[gate]),
        "fill": lambda: one.fill(3, after=[gate]),
        "2d": lambda: one.copy_from_2d(bytes(100), 10, 10, after=[gate]),
        "tobytes": lambda: (one.fill(3, after=[gate], blocking=False), one.tobytes()),
        "to_numpy": lambda: (one.fill(3, after=[gate], blocking=False), one.to_numpy()),
    }


@pytest.mark.parametrize("name", waits(Queue("host"), Event()))
def test_waits(dev: Device, opener: Callable[[], Event], gate: Event, name: str) -> None:
    wait = waits(Queue(dev), gate)[name]
    opener()
    wait()
    assert gate.done


@pytest.mark.parametrize("export", [memoryview, np.asarray, np.from_dlpack])
def test_exports(dev: Device, opener: Callable[[], Event], export, host_kind: str) -> None:  # type: ignore[no-untyped-def]
    buffer = Buffer(100, kind=host_kind, queue=Queue(dev))
    buffer.fill(3, after=[opener()], blocking=False)
    assert bytes(export(buffer)) == bytes([3]) * 100


class Spinner:
    """A thread that records when it runs."""

    def __enter__(self) -> Self:
        self.stopped, self.ran = False, [time.perf_counter_ns()]
        self.thread = threading.Thread(target=self.spin)
        self.thread.start()
        return self

    def spin(self) -> None:
        while not self.stopped:
            self.ran.append(time.perf_counter_ns())

    def __exit__(self, *_: object) -> None:
        self.stopped = True
        self.thread.join()

    def ran_within(self, start: int, end: int) -> bool:
        """Whether no single gap covers most of the interval."""
        marks = [start, *(mark for mark in list(self.ran) if start < mark < end), end]
        return max(np.diff(marks)) < 0.7 * (end - start)


@pytest.mark.parametrize("action", ["copy", "fill", "tobytes", "device"])
def test_large_copies(dev: Device, action: str) -> None:
    kind = dev.kinds[-1] if action != "device" else dev.kinds[0]
    nbytes = 128 << 20
    source = np.ones(nbytes, np.uint8)
    buffer = Buffer(nbytes, kind=kind, queue=Queue(dev))
    buffer.fill(0)
    actions: dict[str, Callable[[], object]] = {
        "copy": lambda: buffer.copy_from(source),
        "device": lambda: buffer.copy_from(source),
        "fill": lambda: buffer.fill(1),
        "tobytes": buffer.tobytes,
    }

    def progressed() -> bool:
        with Spinner() as spinner:
            start = time.perf_counter_ns()
            actions[action]()
            end = time.perf_counter_ns()
        return spinner.ran_within(start, end)

    assert any(progressed() for _ in range(10)), "the lock was held in each of ten copies"


def test_functions_take_it_only_to_run() -> None:
    """Work in flight needs no GIL: it completes while this thread holds it."""
    queue = Queue(sim())
    buffer, got = Buffer(1 << 20, queue=queue), np.zeros(1 << 20, np.uint8)
    buffer.fill(5, blocking=False)
    event = buffer.copy_to(got, blocking=False)
    assert event is not None
    event.wait()
    assert (got == 5).all()
