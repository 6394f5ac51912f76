# SPDX-License-Identifier: Apache-2.0
"""free(), context manager, weak references, live exports, work in flight."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import filled, is_memory_released, noise, until

import isthmus
from isthmus import Buffer, Device, Event, Queue
from isthmus.memory import live

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = noise(1 << 16)


def test_free(q: Queue, kind: str) -> None:
    buffer = Buffer(100, kind=kind, queue=q)
    before = live(kind)[0]
    buffer.free()
    assert buffer.freed
    assert live(kind)[0] == before - 1
    buffer.free()
    assert live(kind)[0] == before - 1


def test_wait_for_a_buffer(q: Queue, kind: str, gate: Event) -> None:
    buffer = Buffer(100, kind=kind, queue=q)
    buffer.wait()
    buffer.wait(0)
    filled_elsewhere = Queue(q.device).fill(buffer, 7, after=[gate], blocking=False)
    assert filled_elsewhere is not None
    for timeout in (0, 0.01):
        with pytest.raises(isthmus.WaitTimeoutError):
            buffer.wait(timeout)
    gate.complete()
    buffer.wait()
    assert filled_elsewhere.done
    assert buffer.tobytes() == bytes([7]) * 100


USES: dict[str, Callable[[Buffer], object]] = {
    "ptr": lambda b: b.ptr,
    "alignment": lambda b: b.alignment,
    "slice": lambda b: b[0:1],
    "wait": lambda b: b.wait(),
    "tobytes": lambda b: b.tobytes(),
    "to_numpy": lambda b: b.to_numpy(),
    "copy_from": lambda b: b.copy_from(b"a"),
    "copy_to": lambda b: b.copy_to(bytearray(200)),
    "copy_from_2d": lambda b: b.copy_from_2d(bytes(100), 10, 10),
    "fill": lambda b: b.fill(1),
    "prefetch": lambda b: b.prefetch(),
    "record": lambda b: b.record(b.queue),
    "on_queue": lambda b: b.on_queue(b.queue),
    "submit": lambda b: b.queue.submit(len, b),
    "interface": lambda b: b.__sycl_usm_array_interface__,
    "dlpack": lambda b: b.__dlpack__(),
    "memoryview": memoryview,
    "pickle": lambda b: b.__reduce_ex__(5),
    "copy": lambda b: b.__copy__(),
    "with": lambda b: b.__enter__(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.sim_and_host
def test_a_freed_buffer_is_dead(q: Queue, host_kind: str, use: str) -> None:
    buffer = Buffer(100, kind=host_kind, queue=q)
    buffer.free()
    with pytest.raises(isthmus.ClosedError, match="freed"):
        USES[use](buffer)


def test_properties_of_a_freed_buffer(q: Queue, kind: str) -> None:
    buffer = Buffer(100, kind=kind, queue=q)
    buffer.free()
    assert (buffer.nbytes, len(buffer), buffer.kind, buffer.queue) == (100, 100, kind, q)


def test_context_manager(q: Queue, kind: str) -> None:
    with Buffer(100, kind=kind, queue=q) as buffer:
        assert not buffer.freed
    assert buffer.freed
    with pytest.raises(KeyError), Buffer(100, kind=kind, queue=q) as buffer:
        raise KeyError
    assert buffer.freed


def test_weak_references(q: Queue, kind: str) -> None:
    buffer = Buffer(100, kind=kind, queue=q)
    seen: list[object] = []
    reference = weakref.ref(buffer, seen.append)
    assert reference() is buffer
    del buffer
    assert reference() is None
    assert seen == [reference]


def test_dropping_returns_the_memory(q: Queue, kind: str) -> None:
    before = live()
    for _ in range(10):
        Buffer(1 << 20, kind=kind, queue=q)
    assert is_memory_released(before)


@pytest.mark.parametrize("export", [memoryview, np.asarray, np.from_dlpack])
def test_free_with_a_live_export(
    q: Queue, host_kind: str, export: Callable[[Buffer], object]
) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    before = live(host_kind)
    view = export(buffer)
    buffer.free()
    assert buffer.freed
    with pytest.raises(isthmus.ClosedError):
        buffer.tobytes()
    assert live(host_kind) == before, "the export still holds the memory"
    assert bytes(view) == DATA.tobytes()  # type: ignore[call-overload]
    del view
    gc.collect()
    assert live(host_kind)[0] == before[0] - 1


def test_exports_of_slices_hold_the_memory(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    view = memoryview(buffer[10:20])
    other = np.asarray(buffer)
    buffer.free()
    del buffer
    gc.collect()
    assert bytes(view) == DATA[10:20].tobytes()
    del view
    other[:] = 3
    assert (other == 3).all()


def test_an_export_outlives_the_buffer_object(q: Queue, host_kind: str) -> None:
    array = np.asarray(filled(DATA, kind=host_kind, queue=q))
    gc.collect()
    assert (array == DATA).all()


def test_dropped_with_work_in_flight(q: Queue, kind: str, gate: Event) -> None:
    got = np.zeros_like(DATA)
    source = Buffer(DATA.nbytes, kind=kind, queue=q)
    source.copy_from(DATA, after=[gate], blocking=False)
    out = source.copy_to(got, blocking=False)
    assert out is not None
    del source
    gc.collect()
    gate.complete()
    out.wait()
    assert (got == DATA).all()


@pytest.mark.parametrize("of", ["event", "queue"])
def test_recorded_work_holds_the_memory(
    dev: Device, q: Queue, kind: str, gate: Event, of: str
) -> None:
    other = Queue(dev)
    ended = other.fence([gate])
    buffer = Buffer(100, kind=kind, queue=q)
    before = live(kind)
    buffer.record(gate if of == "event" else other)
    buffer.free()
    assert live(kind) == before
    gate.complete()
    ended.wait()
    assert until(lambda: live(kind)[0] == before[0] - 1)


def test_record_wants_a_queue_or_an_event(q: Queue) -> None:
    with pytest.raises(TypeError, match="Queue or an Event"):
        Buffer(8, kind=q.device.kinds[0], queue=q).record("later")  # type: ignore[arg-type]


def test_on_another_queue(dev: Device, q: Queue, kind: str) -> None:
    other = Queue(dev)
    buffer = filled(DATA, kind=kind, queue=q)
    there = buffer.on_queue(other)
    assert there.queue == other
    assert there.ptr == buffer.ptr
    assert there.base is buffer
    there.fill(9)
    assert buffer.tobytes() == bytes([9]) * DATA.nbytes
    buffer.free()
    with pytest.raises(isthmus.ClosedError):
        there.tobytes()
