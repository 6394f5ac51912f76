# SPDX-License-Identifier: Apache-2.0
"""Repeated loops do not increase the memory of the process."""

from __future__ import annotations

import gc
import os
import weakref
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import SANITIZED, is_memory_released, open_backend, until

import isthmus
from isthmus import Buffer, Event, Queue
from isthmus.memory import MemoryUSMHost, as_usm_memory, live

if TYPE_CHECKING:
    from collections.abc import Callable


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def make_and_drop(queue: Queue, kind: str) -> None:
    Buffer(4096, kind=kind, queue=queue)


def copies(queue: Queue, kind: str) -> None:
    buffer = Buffer(4096, kind=kind, queue=queue)
    buffer.copy_from(bytes(4096))
    buffer[5:50].copy_to(bytearray(45))
    buffer.fill(b"ab", blocking=False)
    buffer.tobytes()
    buffer.to_numpy()


def functions(queue: Queue, kind: str) -> None:
    queue.submit(lambda: None).wait()
    with pytest.raises(KeyError):
        queue.submit(lambda: {}["a"]).wait()


def errors(queue: Queue, kind: str) -> None:
    buffer = Buffer(64, kind=kind, queue=queue)
    actions: list[Callable[[], object]] = [
        lambda: buffer.copy_from(bytes(65)),
        lambda: buffer.copy_from([1]),
        lambda: Buffer(2**62, kind=kind, queue=queue),
        lambda: buffer[::2],
        lambda: as_usm_memory(5),
        lambda: Buffer.adopt(64, 64, kind="host", queue=Queue("opencl")),
    ]
    for action in actions:
        with pytest.raises((isthmus.Error, TypeError, ValueError)):
            action()
    failed = Event()
    buffer.fill(1, after=[failed], blocking=False)
    failed.fail("no")


def exchange(queue: Queue, kind: str) -> None:
    buffer = MemoryUSMHost(4096, queue=Queue("host"))
    np.from_dlpack(buffer), np.asarray(buffer), memoryview(buffer)
    as_usm_memory(buffer), buffer.__array_interface__, buffer.__dlpack__()
    Buffer.from_dlpack(np.zeros(64, np.uint8))
    buffer.free()


def queues(queue: Queue, kind: str) -> None:
    mine = Queue(queue.device)
    Buffer(64, kind=kind, queue=mine).fill(1, blocking=False)
    mine.fence()


LOOPS = [make_and_drop, copies, functions, errors, exchange, queues]


by_resident_bytes = pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps what was freed")


@by_resident_bytes
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
@pytest.mark.parametrize("backend", ["host", "sim", "opencl"])
def test_loops(backend: str, loop) -> None:  # type: ignore[no-untyped-def]
    queue = Queue(open_backend(backend))
    before, turns = live(), 400
    kind = queue.device.kinds[0]

    def run() -> int:
        for _ in range(turns):
            loop(queue, kind)
        queue.wait()
        gc.collect()
        return resident_bytes()

    for _ in range(2):
        run()
    grown = [run() for _ in range(2)]
    start = grown[0]
    # A leak of one object per turn would be 400 times 64 bytes in each of four more rounds.
    for _ in range(4):
        if grown[-1] - start < 256 << 10:
            break
        start = grown[-1]
        grown.append(run())
    else:
        pytest.fail(f"resident bytes grow: {grown}")
    assert is_memory_released(before)


@by_resident_bytes
@pytest.mark.parametrize("backend", ["host", "sim", "opencl"])
def test_large_memory_is_returned(backend: str) -> None:
    queue = Queue(open_backend(backend))
    before, start = live(), 0
    for turn in range(8):
        buffer = Buffer(64 << 20, queue=queue)
        buffer.fill(turn)
        del buffer
        start = start or resident_bytes()
    assert is_memory_released(before)
    assert resident_bytes() < start + (128 << 20)


def test_no_python_object_is_left() -> None:
    class Marked(bytearray):
        pass

    queue, gone = Queue("opencl"), []
    for _ in range(100):
        source = Marked(1000)
        gone.append(weakref.ref(source))
        buffer = Buffer(1000, queue=queue)
        buffer.copy_from(source, blocking=False)
        buffer.copy_to(source, blocking=False)
        del source, buffer
    queue.wait()
    gc.collect()
    assert until(lambda: all(reference() is None for reference in gone))
