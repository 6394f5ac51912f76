# SPDX-License-Identifier: Apache-2.0
"""Events: state, waits with a timeout, failures, host events."""

from __future__ import annotations

import gc
import threading

import pytest
from support import sim

import isthmus
from isthmus import Buffer, Device, Event, Queue


def test_host_events() -> None:
    event = Event()
    assert (event.done, event.status, event.error) == (False, "pending", None)
    event.complete()
    assert (event.done, event.status, event.error) == (True, "complete", None)
    event.wait()
    event.wait(0)


def test_failing_host_events() -> None:
    event = Event()
    event.fail("the reason")
    assert (event.done, event.status) == (True, "failed")
    assert isinstance(event.error, isthmus.CallbackError)
    for _ in range(2):
        with pytest.raises(isthmus.CallbackError, match="the reason"):
            event.wait()


def test_completed_once_only() -> None:
    for first in (lambda e: e.complete(), lambda e: e.fail("x")):
        event = Event()
        first(event)
        with pytest.raises(ValueError):
            event.complete()
        with pytest.raises(ValueError):
            event.fail("y")


def test_dropped_host_events(q: Queue) -> None:
    event = Event()
    fence = q.fence([event])
    del event
    gc.collect()
    with pytest.raises(isthmus.Error):
        fence.wait(30)
    q.wait(30)


@pytest.mark.parametrize("timeout", [0, 0.0, 0.01])
def test_timeouts(q: Queue, gate: Event, timeout: float) -> None:
    fence = q.fence([gate])
    for event in (gate, fence):
        with pytest.raises(isthmus.WaitTimeoutError) as error:
            event.wait(timeout)
        assert isinstance(error.value, TimeoutError)
    gate.complete()
    fence.wait(30)


@pytest.mark.parametrize("timeout", [1e9, float("inf"), 1e300, None])
def test_long_timeouts(q: Queue, timeout: float | None) -> None:
    q.fence().wait(timeout)
    q.wait(timeout)


@pytest.mark.parametrize("timeout", [-1, float("nan"), -1e-9])
def test_timeouts_that_cannot_be(q: Queue, timeout: float) -> None:
    for wait in (Event().wait, q.wait):
        with pytest.raises(ValueError, match="timeout"):
            wait(timeout)


def test_timeouts_of_a_wrong_type() -> None:
    with pytest.raises(TypeError):
        Event().wait("1")  # type: ignore[arg-type]


def test_wait_for(q: Queue) -> None:
    fences = [q.fence() for _ in range(10)]
    Event.wait_for(fences)
    assert all(fence.done for fence in fences)
    Event.wait_for([])
    Event.wait_for(iter(fences))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Event.wait_for([1])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        Event.wait_for(5)  # type: ignore[arg-type]


def test_wait_for_raises_the_first_failure(q: Queue) -> None:
    first, second = Event(), Event()
    second.fail("second")
    first.fail("first")
    good = q.fence()
    with pytest.raises(isthmus.CallbackError, match="first"):
        Event.wait_for([good, first, second])
    assert good.done


def test_many_threads_wait_for_one_event(q: Queue, gate: Event) -> None:
    fence, waited = q.fence([gate]), []

    def wait() -> None:
        fence.wait(60)
        waited.append(1)

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.complete()
    for thread in threads:
        thread.join(60)
    assert len(waited) == 8


def test_times_of_the_simulated_clock() -> None:
    queue = Queue(sim(bandwidth="1GB/s", latency="10us"))
    buffer = Buffer(10**6, queue=queue)
    event = buffer.copy_from(bytes(10**6), blocking=False)
    assert event is not None
    event.wait()
    assert event.times is not None
    _, started, ended = event.times
    assert ended - started >= 10**6, "a megabyte at 1 GB/s"


def test_events_without_times(q: Queue, gate: Event) -> None:
    assert q.fence([gate]).times is None
    assert Event().times is None


def test_repr(gate: Event) -> None:
    assert "pending" in repr(gate)
    assert repr(gate).startswith("<isthmus.Event ")


def test_time_between_marks(q: Queue, dev: Device) -> None:
    buffer = Buffer(1 << 20, queue=q)
    before = q.mark()
    buffer.fill(1, blocking=False)
    behind = q.mark()
    if "profile" not in dev.capabilities and dev.backend != "cuda":
        with pytest.raises(isthmus.UnsupportedError, match="times"):
            behind.elapsed_since(before)
        return
    elapsed = behind.elapsed_since(before)
    assert isinstance(elapsed, int)
    assert elapsed >= 0
    assert before.elapsed_since(behind) == -elapsed
    assert before.elapsed_since(before) == 0
    with pytest.raises(TypeError, match=r"earlier .* int"):
        behind.elapsed_since(3)  # type: ignore[arg-type]
    host = Event()
    host.complete()
    with pytest.raises(isthmus.Error):
        behind.elapsed_since(host)
    with pytest.raises(isthmus.UnsupportedError):
        host.elapsed_since(before)
