# SPDX-License-Identifier: Apache-2.0
"""Non-blocking operations: events, `after`, and which objects are kept alive."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from support import filled, noise, stops_dependents, until

import isthmus
from isthmus import Buffer, Event, Queue

DATA = noise(100_000)


def test_both_sides_are_owned(q: Queue, kind: str, gate: Event) -> None:
    source, got = DATA.copy(), np.zeros_like(DATA)
    gone = [weakref.ref(source), weakref.ref(got)]
    out = np.zeros_like(DATA)
    buffer = Buffer(DATA.nbytes, kind=kind, queue=q)
    held = weakref.ref(buffer)
    buffer.copy_from(source, after=[gate], blocking=False)
    buffer.copy_to(got, blocking=False)
    end = buffer.copy_to(out, blocking=False)
    assert end is not None
    del source, got, buffer
    gc.collect()
    assert all(reference() is not None for reference in gone)
    gate.complete()
    end.wait()
    assert (out == DATA).all()
    assert until(lambda: all(reference() is None for reference in gone))
    assert held() is None


def test_bytes_made_on_the_way(q: Queue, kind: str, gate: Event) -> None:
    buffer = Buffer(100, kind=kind, queue=q)
    event = buffer.copy_from(bytes([7]) * 100, after=[gate], blocking=False)
    assert event is not None
    gc.collect()
    junk = [bytes([9]) * 100 for _ in range(1000)]
    gate.complete()
    event.wait()
    del junk
    assert buffer.tobytes() == bytes([7]) * 100


def test_a_bytearray_cannot_shrink_meanwhile(q: Queue, kind: str, gate: Event) -> None:
    target = bytearray(100)
    buffer = filled(bytes(range(100)), kind=kind, queue=q)
    event = buffer.copy_to(target, after=[gate], blocking=False)
    assert event is not None
    with pytest.raises(BufferError):
        target.clear()
    gate.complete()
    event.wait()
    assert target == bytes(range(100))

    def clears() -> bool:
        try:
            target.clear()
        except BufferError:
            return False
        return True

    assert until(clears)


@pytest.mark.parametrize(
    "form", [lambda e: e, lambda e: [e], lambda e: (e, e), lambda e: iter([e])]
)
def test_forms_of_after(q: Queue, kind: str, gate: Event, form) -> None:  # type: ignore[no-untyped-def]
    buffer = filled(bytes(10), kind=kind, queue=q)
    event = buffer.fill(5, after=form(gate), blocking=False)
    assert event is not None
    assert not event.done
    gate.complete()
    event.wait()
    assert buffer.tobytes() == bytes([5]) * 10


@pytest.mark.parametrize("after", [5, ["a"], [None], "ab"])
def test_after_of_a_wrong_type(q: Queue, after: object) -> None:
    buffer = Buffer(10, kind=q.device.kinds[0], queue=q)
    with pytest.raises(TypeError):
        buffer.fill(5, after=after, blocking=False)  # type: ignore[arg-type]


def test_dependents_of_a_failure_do_not_run(q: Queue, kind: str) -> None:
    buffer = filled(bytes(10), kind=kind, queue=q)
    failed = Event()
    event = buffer.fill(1, after=[failed], blocking=False)
    assert event is not None
    failed.fail("the cause")
    with pytest.raises(isthmus.DependencyError, match="the cause"):
        event.wait()
    assert event.status == "failed"
    with pytest.raises(isthmus.DependencyError, match="the cause"):
        buffer.fill(1, after=[event])
    if stops_dependents(q):
        assert buffer.tobytes() == bytes(10)
    buffer.fill(2)
    assert buffer.tobytes() == bytes([2]) * 10, "the queue goes on"


def test_fence(q: Queue, kind: str, gate: Event) -> None:
    buffer = filled(bytes(10), kind=kind, queue=q)
    buffer.fill(1, after=[gate], blocking=False)
    fence = q.fence()
    assert not fence.done
    assert not q.idle
    gate.complete()
    fence.wait()
    assert buffer.tobytes() == bytes([1]) * 10
    q.fence([fence]).wait()
    q.wait()
    assert q.idle


def test_queue_wait(q: Queue, gate: Event) -> None:
    q.wait()
    q.wait(0)
    held = q.fence([gate])
    for timeout in (0, 0.01):
        with pytest.raises(isthmus.WaitTimeoutError):
            q.wait(timeout)
    gate.complete()
    q.wait(60)
    assert held.done
