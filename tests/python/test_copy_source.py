"""blocking="source": the source may change at the return, and the copy has what it was before."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support import message_has, noise

import isthmus
from isthmus import Buffer, Event, Queue

SIZES = [1, 5000, 65_536, 300_001, 3_000_000]


@pytest.mark.parametrize("nbytes", SIZES)
def test_the_source_may_change_at_once(q: Queue, kind: str, nbytes: int) -> None:
    data = noise(nbytes)
    source = data.copy()
    buffer = Buffer(nbytes, kind=kind, queue=q)
    sent = buffer.copy_from(source, blocking="source")
    source[:] = 0
    assert isinstance(sent, Event)
    sent.wait()
    assert buffer.tobytes() == data.tobytes()


def test_every_copy_takes_it(q: Queue) -> None:
    data = noise(10_000)
    buffer, other = Buffer(10_000, queue=q), Buffer(10_000, queue=q)
    source, target = data.copy(), np.zeros(10_000, np.uint8)
    calls = [
        lambda: q.copy(buffer, source, blocking="source"),
        lambda: buffer.copy_from_2d(source, 100, 100, blocking="source"),
        lambda: q.copy_2d(buffer, source, 100, 100, blocking="source"),
        lambda: isthmus.copy_nd(buffer, source, blocking="source"),
        lambda: isthmus.copy_ranges(buffer, source, [(0, 0, 10_000)], blocking="source"),
    ]
    for call in calls:
        buffer.fill(0)
        source[:] = data
        sent = call()
        source[:] = 0
        sent.wait()
        assert buffer.tobytes() == data.tobytes()
    other.copy_from(buffer, blocking="source").wait()
    other.copy_to(target, blocking="source").wait()
    assert target.tobytes() == data.tobytes()


def test_waits_for_what_comes_before(q: Queue) -> None:
    source, later = noise(70_000), noise(70_000)[::-1].copy()
    buffer = Buffer(70_000, queue=q)
    gate = Event()

    def write_and_open() -> None:
        source[:] = later
        gate.complete()

    timer = threading.Timer(0.01, write_and_open)
    timer.start()
    sent = buffer.copy_from(source, after=gate, blocking="source")
    assert gate.done
    timer.join()
    source[:] = 0
    sent.wait()
    assert buffer.tobytes() == later.tobytes()


@pytest.mark.parametrize("wrong", [None, 1, "Source", b"source", "end"])
def test_other_values_are_refused(q: Queue, wrong: object) -> None:
    buffer = Buffer(10, queue=q)
    with pytest.raises(TypeError) as told:
        buffer.copy_from(bytes(10), blocking=wrong)
    message_has(told, ["blocking", "source", repr(wrong)])


def test_what_has_no_source_refuses_it(q: Queue) -> None:
    with pytest.raises(TypeError, match="True or False"):
        Buffer(10, queue=q).fill(1, blocking="source")
