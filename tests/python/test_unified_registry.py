# SPDX-License-Identifier: Apache-2.0
"""BufferRegistry: unified buffers looked up by an id."""

from __future__ import annotations

import gc
import queue
import threading
import uuid
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support import python

import isthmus
from isthmus.unified.buffer import UnifiedBuffer
from isthmus.unified.registry import BufferRegistry, UnknownBufferError, get_buffer_registry


def test_an_id_finds_the_buffer() -> None:
    registry = BufferRegistry()
    buf, other = UnifiedBuffer(10), UnifiedBuffer(10)
    buffer_id = registry.register(buf)
    assert str(uuid.UUID(buffer_id)) == buffer_id
    assert registry.register(other) != buffer_id
    assert registry.get(buffer_id) is buf
    assert buffer_id in registry
    assert next(iter(registry)) == buffer_id
    assert len(registry) == 2
    assert registry.held_bytes == 80
    assert "2 buffers, 80 bytes" in repr(registry)


def test_registrations_count() -> None:
    registry = BufferRegistry()
    buf = UnifiedBuffer(10)
    buffer_id = registry.register(buf)
    assert registry.register(buf) == buffer_id
    assert (registry.count(buffer_id), len(registry), registry.held_bytes) == (2, 1, 40)
    assert registry.release(buffer_id) == 1
    assert registry.get(buffer_id) is buf
    assert registry.release(buffer_id) == 0
    assert buffer_id not in registry
    assert registry.held_bytes == 0
    assert registry.register(buf) != buffer_id


@pytest.mark.parametrize("ask", ["get", "release", "count"])
@pytest.mark.parametrize("made", ["never", "released", "dead"])
def test_unknown_ids(ask: str, made: str) -> None:
    registry = BufferRegistry()
    buffer_id = str(uuid.uuid4())
    if made == "released":
        buffer_id = registry.register(UnifiedBuffer(1))
        registry.release(buffer_id)
    elif made == "dead":
        buffer_id = registry.register(UnifiedBuffer(1), weak=True)
        gc.collect()
    with pytest.raises(UnknownBufferError, match=buffer_id) as caught:
        getattr(registry, ask)(buffer_id)
    assert isinstance(caught.value, KeyError)
    assert caught.value.buffer_id == buffer_id
    assert len(registry) == 0


def test_a_registration_keeps_the_buffer() -> None:
    registry = BufferRegistry()
    buf = UnifiedBuffer(10)
    buf.host[:] = np.arange(10)
    gone = weakref.ref(buf)
    buffer_id = registry.register(buf)
    del buf
    gc.collect()
    assert registry.get(buffer_id).to_numpy().tolist() == list(range(10))
    registry.release(buffer_id)
    gc.collect()
    assert gone() is None


def test_a_weak_one_does_not() -> None:
    registry = BufferRegistry()
    buf = UnifiedBuffer(10)
    buffer_id = registry.register(buf, weak=True)
    assert registry.register(buf, weak=True) == buffer_id
    assert registry.get(buffer_id) is buf
    assert (registry.count(buffer_id), registry.held_bytes) == (0, 0)
    del buf
    gc.collect()
    assert buffer_id not in registry


def test_weak_and_counted() -> None:
    registry = BufferRegistry()
    buf = UnifiedBuffer(10)
    buffer_id = registry.register(buf, weak=True)
    assert registry.register(buf) == buffer_id
    assert registry.release(buffer_id) == 0
    assert registry.get(buffer_id) is buf  # by the weak reference
    assert registry.release(buffer_id) == 0
    assert buffer_id not in registry


def test_only_whole_buffers() -> None:
    registry = BufferRegistry()
    for strange in (UnifiedBuffer(10)[2:5], np.ones(3), None):
        with pytest.raises(TypeError, match=type(strange).__name__):
            registry.register(strange)  # type: ignore[arg-type]


def test_clear() -> None:
    registry = BufferRegistry()
    buf = UnifiedBuffer(10)
    first = registry.register(buf)
    registry.clear()
    assert (len(registry), registry.held_bytes) == (0, 0)
    second = registry.register(buf)
    assert second != first
    assert registry.get(second) is buf


def test_the_documents_pattern_across_threads() -> None:
    registry = get_buffer_registry()
    inbox: queue.Queue[tuple[str, int, int] | None] = queue.Queue()
    sums: list[float] = []

    def processor() -> None:
        while (request := inbox.get()) is not None:
            buffer_id, offset, size = request
            sums.append(float(registry.get(buffer_id)[offset : offset + size].host.sum()))
            registry.release(buffer_id)

    thread = threading.Thread(target=processor)
    thread.start()
    for value in range(5):
        buf = UnifiedBuffer(100, np.float32)
        buf.copy_from(np.full(100, value, np.float32))
        inbox.put((registry.register(buf), 10, 20))
        del buf
    inbox.put(None)
    thread.join()
    assert sums == [0, 20, 40, 60, 80]
    assert len(registry) == 0


def test_threads_agree_on_one_id() -> None:
    registry = BufferRegistry()
    buf = UnifiedBuffer(10)
    gate = threading.Barrier(4)

    def register(_: int) -> list[str]:
        gate.wait()
        return [registry.register(buf) for _ in range(500)]

    with ThreadPoolExecutor(4) as threads:
        ids = {each for found in threads.map(register, range(4)) for each in found}
    assert len(ids) == 1
    buffer_id = ids.pop()
    assert registry.count(buffer_id) == 2000

    def release(_: int) -> None:
        gate.wait()
        for _ in range(500):
            registry.release(buffer_id)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(release, range(4)))
    assert len(registry) == 0


def test_buffers_are_freed_during_registrations() -> None:
    registry = BufferRegistry()

    def churn(_: int) -> None:
        for _ in range(300):
            buf = UnifiedBuffer(1)
            buffer_id = registry.register(buf, weak=True)
            assert registry.get(buffer_id) is buf

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(churn, range(4)))
    gc.collect()
    assert len(registry) == 0


def test_one_for_the_process() -> None:
    assert get_buffer_registry() is get_buffer_registry()


def test_a_freed_buffer_is_found_and_raises() -> None:
    registry = BufferRegistry()
    buf = UnifiedBuffer(10)
    buffer_id = registry.register(buf)
    buf.free()
    with pytest.raises(isthmus.ClosedError):
        registry.get(buffer_id).host  # noqa: B018


def test_a_forked_child_has_a_registry_that_works() -> None:
    python("""
import os, threading
from isthmus.unified.buffer import UnifiedBuffer
from isthmus.unified.registry import get_buffer_registry
registry = get_buffer_registry()
buffer_id = registry.register(UnifiedBuffer(4, device="host"))
other = threading.Thread(target=registry._lock.acquire)  # as one may have it at any time
other.start()
other.join()
child = os.fork()
if child == 0:
    os._exit(registry.release(buffer_id))
assert os.waitpid(child, 0)[1] == 0
""")


def test_a_program_may_end_with_registered_buffers() -> None:
    python("""
from isthmus.unified.buffer import UnifiedBuffer
from isthmus.unified.registry import get_buffer_registry
buf = UnifiedBuffer(1000)
buf.host[:] = 1
buf.device
get_buffer_registry().register(buf)
""")
