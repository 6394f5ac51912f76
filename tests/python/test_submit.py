# SPDX-License-Identifier: Apache-2.0
"""queue.submit: Python functions in the order of a queue, with views of buffers."""

from __future__ import annotations

import contextvars
import gc
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from support import filled, noise, program_environment, python, raised, sim, until

import isthmus
from isthmus import Buffer, Device, Event, Queue

DATA = noise(4096)


@pytest.fixture
def run_kind(dev: Device, kind: str) -> str:
    """A kind of memory that functions can access on this device."""
    if kind == "device" and "run_functions" not in dev.capabilities:
        pytest.skip("functions cannot touch device memory here")
    return kind


def test_views(q: Queue, run_kind: str) -> None:
    buffer, seen = filled(DATA, kind=run_kind, queue=q), []

    def work(view: memoryview) -> None:
        seen.append((view.format, view.shape, view.readonly, bytes(view)))
        view[:] = bytes(4096)

    event = q.submit(work, buffer)
    event.wait()
    assert seen == [("B", (4096,), False, DATA.tobytes())]
    assert buffer.tobytes() == bytes(4096)


@pytest.mark.parametrize(
    "result",
    [
        lambda view: view,
        memoryview,
        lambda view: np.frombuffer(view, np.uint8),
        lambda view: {"part": [np.frombuffer(view, np.uint8)[::2]]},
    ],
    ids=["view", "memoryview", "array", "nested"],
)
def test_an_unused_result_may_refer_to_a_view(q: Queue, run_kind: str, result) -> None:  # type: ignore[no-untyped-def]
    buffer = filled(DATA, kind=run_kind, queue=q)
    event = q.submit(result, buffer)
    event.wait()
    assert buffer.tobytes() == DATA.tobytes()


def test_several_buffers(q: Queue, run_kind: str) -> None:
    one, other = filled(DATA, kind=run_kind, queue=q), Buffer(100, kind=run_kind, queue=q)
    empty = Buffer(0, kind=run_kind, queue=q)

    def work(source: memoryview, target: memoryview, nothing: memoryview) -> None:
        target[:] = source
        assert len(nothing) == 0

    q.submit(work, one[50:150], other, empty).wait()
    assert other.tobytes() == DATA[50:150].tobytes()


def test_with_numpy(q: Queue, run_kind: str) -> None:
    buffer = filled(DATA, kind=run_kind, queue=q)

    def work(view: memoryview) -> None:
        array = np.frombuffer(view, np.uint8)
        array += 1
        del array

    q.submit(work, buffer).wait()
    assert (buffer.to_numpy() == DATA + 1).all()


def test_after(q: Queue, gate: Event) -> None:
    seen: list[int] = []
    for form in (gate, [gate]):
        event = q.submit(lambda: seen.append(1), after=form)
    assert not event.done
    gate.complete()
    event.wait()
    assert seen == [1, 1]


@pytest.mark.parametrize("error", [KeyError("k"), ValueError(), SystemExit(3), KeyboardInterrupt()])
def test_exceptions_are_raised_again(q: Queue, error: BaseException) -> None:
    def fail() -> None:
        raise error

    event = q.submit(fail)
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            event.wait()
        assert caught.value is error
        assert "fail" in [entry.name for entry in caught.traceback]
    assert event.status == "failed"
    assert event.error is error


def test_dependents_of_a_failure_do_not_run(q: Queue) -> None:
    ran: list[int] = []
    gate = Event()
    bad = q.submit(lambda: {}["key"], after=[gate])
    event = q.submit(lambda: ran.append(1), after=[bad])
    gate.complete()
    with pytest.raises(isthmus.DependencyError, match="key"):
        event.wait()
    with pytest.raises(isthmus.DependencyError, match="key"):
        q.submit(lambda: ran.append(1), after=[bad]).wait()
    assert ran == []
    assert raised(bad.wait) is KeyError


def test_views_are_dead_afterwards(q: Queue, run_kind: str) -> None:
    kept: list[memoryview] = []
    event = q.submit(lambda view: kept.append(view), filled(DATA, kind=run_kind, queue=q))
    event.wait()
    with pytest.raises(ValueError, match="released"):
        kept[0][0]


@pytest.mark.parametrize("keep", [lambda v: v[1:], lambda v: np.frombuffer(v, np.uint8)])
def test_kept_views_are_an_error(q: Queue, run_kind: str, keep) -> None:  # type: ignore[no-untyped-def]
    buffer, kept = filled(DATA, kind=run_kind, queue=q), []
    event = q.submit(lambda view: kept.append(keep(view)), buffer)
    with pytest.raises(BufferError, match="copy the data to retain"):
        event.wait()
    buffer.free()
    assert len(kept) == 1
    kept.clear()


def test_read_only_buffers(q: Queue, host_kind: str) -> None:
    source = filled(DATA, kind=host_kind, queue=q)
    buffer = Buffer.adopt(source.ptr, 4096, queue=q, owner=source, read_only=True)
    seen: list[bool] = []
    q.submit(lambda view: seen.append(view.readonly), buffer).wait()
    assert seen == [True]


def test_where_queues_cannot_wait_for_the_host() -> None:
    queue = Queue(sim(wait_for_host=0))
    buffer, seen = filled(DATA, kind="host", queue=queue), []
    with pytest.raises(isthmus.UnsupportedError):
        queue.submit(len, Buffer(8, kind="device", queue=queue))
    try:
        queue.submit(lambda view: seen.append(bytes(view)), buffer).wait()
    except isthmus.UnsupportedError:
        return
    assert seen == [DATA.tobytes()]


@pytest.mark.parametrize("arguments", [(None,), (5,), (len, 5), (len, b"abc"), (len, None)])
def test_wrong_types(q: Queue, arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        q.submit(*arguments)  # type: ignore[arg-type]


def test_buffers_of_another_context(q: Queue) -> None:
    reaches = "run_functions" in q.device.capabilities
    with pytest.raises(isthmus.WrongContextError if reaches else isthmus.UnsupportedError):
        q.submit(len, Buffer(8, queue=Queue(sim())))
    seen: list[bytes] = []
    other = filled(b"abc", kind="host", queue=Queue(sim()))
    q.submit(lambda view: seen.append(bytes(view)), other).wait()
    assert seen == [b"abc"], "what the host can touch may be of any context"


def test_it_keeps_all_alive_and_no_longer(q: Queue, run_kind: str, gate: Event) -> None:
    class Work:
        def __call__(self, view: memoryview) -> None:
            view[:] = bytes(8)

    work, buffer = Work(), filled(b"12345678", kind=run_kind, queue=q)
    gone = [weakref.ref(work), weakref.ref(buffer)]
    event = q.submit(work, buffer, after=[gate])
    del work, buffer
    gc.collect()
    assert all(reference() is not None for reference in gone)
    gate.complete()
    event.wait()
    assert until(lambda: all(reference() is None for reference in gone))


def test_cycles_through_the_event_are_collected(q: Queue) -> None:
    class Box:
        event: Event

    box = Box()
    gone = weakref.ref(box)

    def fail() -> None:
        raise KeyError(box)

    box.event = q.submit(fail)
    with pytest.raises(KeyError):
        box.event.wait()
    box, fail = None, None  # type: ignore[assignment]
    assert until(lambda: gc.collect() is not None and gone() is None)


def test_from_many_threads(dev: Device) -> None:
    queue, total = Queue(dev), []

    def submit() -> None:
        for _ in range(50):
            queue.submit(lambda: total.append(1))

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.wait()
    assert until(lambda: len(total) == 400)


def test_functions_submit_and_allocate(q: Queue) -> None:
    """Either of the two functions may be the first to record its result."""
    seen: dict[str, bytes] = {}
    submitted: list[Event] = []

    def inner(view: memoryview) -> None:
        seen["inner"] = bytes(view)

    def outer() -> None:
        buffer = Buffer(4, kind=q.device.kinds[-1], device="host")
        buffer.fill(3)
        seen["outer"] = buffer.tobytes()
        on = Queue("host")
        submitted.append(on.submit(inner, filled(b"ab", kind="host", queue=on)))

    q.submit(outer).wait()
    submitted[0].wait()
    assert seen == {"outer": bytes([3]) * 4, "inner": b"ab"}


def test_it_sees_the_callers_context(q: Queue) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
    variable.set(5)
    device, seen = sim(), []
    with device:
        event = q.submit(lambda: seen.append((variable.get(), isthmus.current_device())))
    variable.set(6)
    event.wait()
    assert seen == [(5, device)]


def test_it_runs_on_another_thread(q: Queue) -> None:
    seen: list[int] = []
    q.submit(lambda: seen.append(threading.get_ident())).wait()
    assert seen != [threading.get_ident()]


def test_threads_of_python_within(q: Queue) -> None:
    seen: list[int] = []

    def work() -> None:
        thread = threading.Thread(target=seen.append, args=(1,))
        thread.start()
        thread.join()

    q.submit(work).wait()
    assert seen == [1]


@pytest.mark.parametrize("end", [lambda: sys.exit(1), lambda: sys.exit("text")])
def test_no_queue_hangs_when_a_function_exits(q: Queue, end) -> None:  # type: ignore[no-untyped-def]
    buffer = filled(bytes(8), kind=q.device.kinds[0], queue=q)
    event = q.submit(end)
    buffer.fill(3)
    assert buffer.tobytes() == bytes([3]) * 8
    with pytest.raises(SystemExit):
        event.wait()


def test_deep_recursion_in_a_function(q: Queue) -> None:
    def recurse() -> None:
        recurse()

    event = q.submit(recurse)
    with pytest.raises(RecursionError):
        event.wait()
    q.submit(lambda: None).wait()


def test_processes_that_functions_start_can_be_ended() -> None:
    queue, seen = Queue(Device("host")), []

    def start() -> None:
        child = subprocess.Popen(["sleep", "30"])
        child.terminate()
        seen.append(child.wait(10))

    queue.submit(start).wait(20)
    assert seen == [-signal.SIGTERM]


# What a function does that would wait for itself is refused; on another queue it works.
WAITS = {
    "queue": lambda queue, buffer: queue.wait(),
    "fence": lambda queue, buffer: queue.fence().wait(),
    "wait_for": lambda queue, buffer: Event.wait_for([queue.fence()]),
    "fill": lambda queue, buffer: buffer.fill(1, queue=queue),
    "copy": lambda queue, buffer: buffer.copy_from(bytes(64), queue=queue),
    "array": lambda queue, buffer: isthmus.copyto(
        isthmus.empty(64, "u1", kind=buffer.kind, queue=queue), np.zeros(64, "u1")
    ),
    "function": lambda queue, buffer: queue.submit(lambda: None).wait(),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_waits_of_a_function_for_itself(q: Queue, gate: Event, kind: str, wait) -> None:  # type: ignore[no-untyped-def]
    buffer, other = filled(DATA[:64], kind=kind, queue=q), Queue(q.device)
    outcomes: list[object] = []

    def work() -> None:
        outcomes.extend(raised(lambda queue=queue: wait(queue, buffer)) for queue in (q, other))

    done = q.submit(work, after=gate)
    q.fence()
    gate.complete()
    done.wait(30)
    assert outcomes == [isthmus.DeadlockError, None]


def test_waits_for_the_views_and_the_event_of_a_function(q: Queue, run_kind: str) -> None:
    gate = Event()
    buffer, outcomes = filled(DATA, kind=run_kind, queue=q), []

    def work(view: memoryview) -> None:
        waits = (
            done.wait,
            lambda: Event.wait_for([done]),
            buffer.wait,
            buffer.tobytes,
            lambda: buffer.fill(1),
            lambda: later.elapsed_since(later),
        )
        outcomes.extend(map(raised, waits))
        with pytest.raises(isthmus.WaitTimeoutError):
            done.wait(0.001)
        assert not done.done

    done = q.submit(work, buffer, after=gate)
    later = q.mark()
    gate.complete()
    done.wait(30)
    assert outcomes == [isthmus.DeadlockError] * 6


# Like asyncio's tasks whose exception was never retrieved.
DROPPED = """
import gc, sys
import isthmus
queue = isthmus.Queue(sys.argv[1])
seen = []
sys.unraisablehook = lambda said: seen.append((type(said.exc_value), said.err_msg, said.object))
def fails():
    raise KeyError("no")
def told():
    queue.wait()
    queue.wait()
    gc.collect()
    count = len(seen)
    for type_, message, what in seen:
        assert type_ is KeyError and "event was dropped" in message + str(what), seen
    seen.clear()
    return count
"""


@pytest.mark.parametrize("backend", ["host", "opencl"])
def test_an_exception_of_a_dropped_event_is_reported(backend: str) -> None:
    python(DROPPED + """
for _ in range(3):
    queue.submit(fails)
assert told() == 3
gate = isthmus.Event()
queue.submit(fails, after=gate)
gate.complete()
assert told() == 1
event = queue.submit(fails)
assert told() == 0, "it may still be retrieved"
assert event.status == "failed" and told() == 0
del event
assert told() == 1
cycle = [queue.submit(fails)]
cycle.append(cycle)
assert told() == 0
del cycle
assert told() == 1
""", backend)  # fmt: skip


@pytest.mark.parametrize("backend", ["host", "opencl"])
def test_a_retrieved_exception_is_not_reported(backend: str) -> None:
    python(DROPPED + """
import asyncio
async def awaited(event):
    await event
def raised(call):
    try:
        call()
    except KeyError:
        return
    raise AssertionError("was not raised")
for retrieve in (
    lambda event: raised(event.wait),
    lambda event: raised(lambda: event.wait(30)),
    lambda event: raised(lambda: isthmus.Event.wait_for([event, queue.submit(fails)])),
    lambda event: raised(lambda: asyncio.run(awaited(event))),
    lambda event: queue.wait() or event.error,
):
    retrieve(queue.submit(fails))
    assert told() == 0
""", backend)  # fmt: skip


def test_a_dropped_exception_is_printed_with_its_traceback() -> None:
    program = subprocess.run(
        [sys.executable, "-c", """
import isthmus
def fails():
    raise KeyError("the pump is broken")
queue = isthmus.Queue("host")
queue.submit(fails)
queue.wait()
"""], capture_output=True, text=True, timeout=60, env=program_environment(), check=False,
    )  # fmt: skip
    assert program.returncode == 0
    assert program.stderr.count("the pump is broken") == 1
    for part in ("event was dropped", "Traceback", "in fails"):
        assert part in program.stderr


# Python stores no exception for it, so the library logs it.
def test_a_function_that_did_not_run_is_logged() -> None:
    program = subprocess.run(
        [sys.executable, "-c", """
import isthmus
queue = isthmus.Queue("host")
failed = isthmus.Event()
queue.submit(print, after=failed)
failed.fail("the pump is broken")
queue.wait()
"""], capture_output=True, text=True, timeout=60, env=program_environment(), check=False,
    )  # fmt: skip
    assert program.returncode == 0
    assert program.stderr.count("the pump is broken") == 1
    assert "event was dropped" in program.stderr


# The interpreter ends while functions fail, and before their exceptions were reported.
@pytest.mark.parametrize("end", ["", "sys.exit(0)", "queue.wait()"])
def test_a_dropped_exception_at_exit(end: str) -> None:
    program = subprocess.run(
        [sys.executable, "-c", f"""
import sys
import isthmus
def fails():
    raise KeyError("no")
queue = isthmus.Queue("host")
for _ in range(20):
    queue.submit(fails)
kept = queue.submit(fails)
{end}
"""], capture_output=True, text=True, timeout=60, env=program_environment(), check=False,
    )  # fmt: skip
    assert program.returncode == 0
    assert "Fatal" not in program.stderr
    assert "isthmus:" not in program.stderr
