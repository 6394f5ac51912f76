# SPDX-License-Identifier: Apache-2.0
"""pipeline(): batches in order, bounded memory, errors at the right batch, no thread left."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import message_has, python, until

import isthmus
from isthmus import Buffer, Device, Queue
from isthmus.unified.pipeline import pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator


def numbers(count: int, size: int = 1000) -> Iterator[np.ndarray]:
    for number in range(count):
        yield np.full(size, number, np.float32)


def add_one(array: Any) -> None:
    """Adds in place, without waiting if the device can run functions."""
    if isinstance(array, np.ndarray):
        array += 1
    elif "run_functions" in array.queue.device.capabilities:

        def work(view: memoryview) -> None:
            np.frombuffer(view, array.dtype)[...] += 1

        array.queue.submit(work, array.buffer)
    else:
        array.copy_from(array.to_numpy() + 1)


def collect(first_elements: list[float], steps: Iterator[np.ndarray]) -> None:
    """Appends as it iterates, so that results before an error are kept."""
    for result in steps:
        first_elements.append(float(result[0]))  # noqa: PERF401


def threads() -> int:
    return sum(thread.name == "isthmus.pipeline" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    yield
    assert threads() == 0


@pytest.mark.parametrize("depth", [1, 2, 3, 7])
def test_in_place_and_in_order(dev: Device, depth: int) -> None:
    results = list(pipeline(numbers(20), add_one, depth, device=dev))
    assert [set(each.tolist()) for each in results] == [{k + 1.0} for k in range(20)]
    assert all(each.flags.owndata and each.dtype == np.float32 for each in results)


@pytest.mark.parametrize("pinned", [False, True])
def test_views_are_valid_until_the_next_step(dev: Device, pinned: bool) -> None:
    for number, view in enumerate(
        pipeline(numbers(8), add_one, device=dev, copy=False, pinned=pinned)
    ):
        assert (view == number + 1).all()
        view[:] = -1  # the view is the caller's until the next step


def test_the_array_itself_means_in_place(dev: Device) -> None:
    def work(array: Any) -> Any:
        array.fill(9)
        return array

    for result in pipeline(numbers(5), work, device=dev):
        assert isinstance(result, np.ndarray)
        assert (result == 9).all()


def test_shapes_and_dtypes_of_their_own(dev: Device) -> None:
    batches = [
        np.arange(6, dtype=np.int16).reshape(2, 3),
        [1.5, 2.5],
        np.array(4, np.uint8),
        np.arange(12).reshape(3, 4)[:, ::2],
        np.arange(6, dtype=np.int16).reshape(3, 2),
    ]
    results = list(pipeline(batches, lambda array: None, device=dev))
    for batch, result in zip(batches, results, strict=True):
        assert result.dtype == np.asarray(batch).dtype
        assert np.array_equal(result, batch)


def test_device_memory_that_is_returned_is_downloaded(dev: Device) -> None:
    queue = Queue(dev)

    def work(array: Any) -> Buffer:
        host = array if isinstance(array, np.ndarray) else array.to_numpy()
        made = Buffer(host.nbytes, kind="device", queue=queue)
        made.copy_from(host * 2, blocking=False)
        return made

    results = pipeline(numbers(6), work, queue=queue)
    for number, result in enumerate(results):
        assert isinstance(result, np.ndarray)
        assert (result.view(np.float32) == 2 * number).all()


def test_arrays_on_the_host_are_the_results_own(dev: Device) -> None:
    def work(array: Any) -> np.ndarray:
        host = array if isinstance(array, np.ndarray) else array.to_numpy()
        return host[::2]  # a view of the batch's memory, on the host device

    results = list(pipeline(numbers(6), work, device=dev))
    assert [set(each.tolist()) for each in results] == [{float(k)} for k in range(6)]


def test_other_objects_are_yielded_as_they_are(dev: Device) -> None:
    made = [object() for _ in range(5)]
    left = list(made)
    assert list(pipeline(numbers(5), lambda array: left.pop(0), device=dev)) == made


def test_fn_has_the_queue_as_its_current_one(dev: Device) -> None:
    queue = Queue(dev)
    seen = list(pipeline(numbers(2), lambda array: isthmus.current_queue(), queue=queue))
    assert seen == [queue, queue]
    with queue:
        steps = pipeline(numbers(2), lambda array: isthmus.current_queue())
    assert list(steps) == [queue, queue]


def test_the_source_is_read_in_the_callers_context(dev: Device) -> None:
    seen = []

    def source() -> Iterator[np.ndarray]:
        seen.append((isthmus.current_device(), threading.current_thread().name))
        yield from numbers(1)

    with dev:
        list(pipeline(source(), add_one))
    assert seen == [(dev, "isthmus.pipeline")]


def test_nothing_begins_before_the_first_step() -> None:
    read: list[int] = []
    steps = pipeline((read.append(k) or np.ones(4) for k in range(5)), add_one)
    assert threads() == 0
    steps.close()
    assert read == []
    assert list(pipeline([], add_one)) == []


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_memory_is_bounded(dev: Device, depth: int) -> None:
    read = 0
    largest = 0

    def source() -> Iterator[np.ndarray]:
        nonlocal read
        for batch in numbers(30):
            read += 1
            yield batch

    for yielded, _ in enumerate(pipeline(source(), add_one, depth, device=dev, copy=False)):
        largest = max(largest, read - yielded)
        time.sleep(0.001)
    # The batches in buffers, plus the one that was read ahead.
    assert largest <= depth + 1


def test_reading_and_work_overlap() -> None:
    """While fn processes one batch, the next is read: each waits for the other's signal."""
    read, worked = threading.Event(), threading.Event()

    def source() -> Iterator[np.ndarray]:
        yield np.zeros(4)
        assert worked.wait(5), "fn did not begin before the next batch was read"
        read.set()
        yield np.ones(4)

    def work(array: Any) -> None:
        worked.set()
        assert read.wait(5), "the next batch was not read while fn had this one"

    assert len(list(pipeline(source(), work, device="host"))) == 2


def test_a_slow_source_does_not_keep_results_back(dev: Device) -> None:
    got = threading.Event()

    def source() -> Iterator[np.ndarray]:
        yield np.zeros(4)
        assert got.wait(5), "the first result came only with the second batch"
        yield np.zeros(4)

    steps = pipeline(source(), add_one, 3, device=dev)
    next(steps)
    got.set()
    assert len(list(steps)) == 1


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_an_error_of_the_source_comes_in_its_place(dev: Device, depth: int) -> None:
    def source() -> Iterator[np.ndarray]:
        yield from numbers(5)
        raise OSError("the disk")

    results: list[float] = []
    with pytest.raises(OSError, match="the disk"):
        collect(results, pipeline(source(), add_one, depth, device=dev))
    assert results == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_an_error_of_fn_comes_in_its_place(dev: Device, depth: int) -> None:
    calls = 0

    def work(array: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise ZeroDivisionError("in fn")
        add_one(array)

    results: list[float] = []
    with pytest.raises(ZeroDivisionError, match="in fn"):
        collect(results, pipeline(numbers(50), work, depth, device=dev))
    assert results == [1, 2, 3]
    assert calls == 4


def test_a_batch_that_is_no_array(dev: Device) -> None:
    steps = pipeline([np.ones(3), [object()], np.ones(3)], add_one, device=dev)
    assert next(steps).tolist() == [2, 2, 2]
    with pytest.raises(TypeError):
        next(steps)
    assert list(steps) == []


def test_no_memory_for_a_batch() -> None:
    device = isthmus._core.sim_create("capacity=4MiB")
    batches = [np.ones(1000, np.uint8), np.ones(16 << 20, np.uint8)]
    steps = pipeline(batches, lambda array: None, device=device)
    assert next(steps).sum() == 1000
    with pytest.raises(isthmus.USMAllocationError):
        next(steps)


@pytest.mark.parametrize("after", [1, 3])
def test_an_early_exit(dev: Device, after: int) -> None:
    for number, _ in enumerate(pipeline(numbers(1000), add_one, 3, device=dev), 1):
        if number == after:
            break
    del _
    assert until(lambda: threads() == 0)


def test_close_and_throw(dev: Device) -> None:
    steps = pipeline(numbers(1000), add_one, device=dev)
    next(steps)
    assert threads() == 1
    steps.close()
    assert threads() == 0
    steps = pipeline(numbers(1000), add_one, device=dev)
    next(steps)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    assert threads() == 0


def test_an_interrupt_in_fn_does_not_wait_for_results(dev: Device) -> None:
    def work(array: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(pipeline(numbers(10), work, device=dev))
    assert threads() == 0


def test_control_c_while_the_source_blocks() -> None:
    python("""
import os, signal, threading, time
import numpy as np
from isthmus.unified.pipeline import pipeline

asked = threading.Event()
def source():
    yield np.ones(4)
    asked.wait(30)
    time.sleep(0.1)  # until the main thread waits
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.5)
    yield np.ones(4)

steps = pipeline(source(), lambda array: None, device="host")
next(steps)
try:
    asked.set()
    next(steps)
except KeyboardInterrupt:
    pass
else:
    raise AssertionError("not interrupted")
until = time.monotonic() + 30
while threading.active_count() != 1 and time.monotonic() < until:
    time.sleep(0.01)
assert threading.active_count() == 1, threading.enumerate()
""")


INTERRUPTED = """
import os, signal, sys, threading
import numpy as np
from isthmus import Buffer, Event, Queue
from isthmus.unified.pipeline import pipeline
from support import open_backend

backend, where, raised = sys.argv[1:]

class Alarm(Exception):
    pass

class Stop(BaseException):
    pass

kinds = {"Alarm": Alarm, "Stop": Stop, "KeyboardInterrupt": KeyboardInterrupt,
         "MemoryError": MemoryError}

def ring(*_):
    raise kinds[raised]

signal.signal(signal.SIGALRM, ring)
gate, read, go_on, dropped = Event(), threading.Event(), threading.Event(), []

class Batch:
    def __array__(self, dtype=None, copy=None):
        dropped.append("used")
        return np.ones(200_000, "u1")

def source():
    yield np.ones(200_000, "u1")
    if where == "source":
        read.set()
    if where != "work":
        go_on.wait()
        yield Batch()

def fn(array):
    if where == "work":
        array.fill(7, after=[gate], blocking=False)
        read.set()
    if where == "download":
        return Buffer(200_000, queue=queue)

def waits(*_, **__):
    read.set()
    gate.wait()

sys.modules["isthmus.unified.pipeline"].copy_nd = waits  # of another thread's lock, say

def send():
    read.wait()
    time.sleep(0.2)  # until the main thread waits
    os.kill(os.getpid(), signal.SIGALRM)

import time
queue = Queue(open_backend(backend))
steps = pipeline(source(), fn, queue=queue)
threading.Thread(target=send).start()
if where == "source":
    next(steps)
try:
    next(steps)
except kinds[raised]:
    pass
else:
    raise AssertionError("not interrupted")
assert not gate.done and not go_on.is_set(), "it waited"
del steps
go_on.set()
gate.complete()
until = time.monotonic() + 30
while threading.active_count() != 1 and time.monotonic() < until:
    time.sleep(0.01)
assert threading.active_count() == 1, threading.enumerate()
assert dropped == []
queue.wait()
"""


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "Alarm", "Stop"])
@pytest.mark.parametrize(
    ("backend", "where"),
    [
        ("host", "source"),
        ("opencl", "source"),
        ("late", "source"),
        ("opencl", "work"),
        ("late", "work"),
    ],
)
def test_an_interrupt_waits_for_nothing(backend: str, where: str, raised: str) -> None:
    python(INTERRUPTED, backend, where, raised)


@pytest.mark.parametrize(
    ("where", "raised"),
    [
        ("source", "MemoryError"),
        ("download", "KeyboardInterrupt"),
        ("download", "Alarm"),
        ("download", "Stop"),
    ],
)
def test_what_a_handler_raises_is_no_error_of_fn(where: str, raised: str) -> None:
    python(INTERRUPTED, "host", where, raised)


def test_a_result_that_raises_is_an_error_of_fn() -> None:
    """It is raised at its position, after the results of earlier batches."""

    class Unreadable:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("it requires grad")

    made = [None, None, Unreadable()]
    results: list[float] = []
    with pytest.raises(RuntimeError, match="requires grad"):
        collect(results, pipeline(numbers(9), lambda array: made.pop(0), 4, device="host"))
    assert results == [0, 1]


def test_two_side_by_side(dev: Device) -> None:
    pairs = zip(
        pipeline(numbers(6), add_one, device=dev),
        pipeline(numbers(6), add_one, device=dev),
        strict=True,
    )
    assert all((one == other).all() for one, other in pairs)


@pytest.mark.parametrize("total", [None, 6, 3])
def test_progress_into_no_terminal_is_silent(
    capsys: pytest.CaptureFixture[str], total: int | None
) -> None:
    assert len(list(pipeline(numbers(6), add_one, progress=True, total=total))) == 6
    assert capsys.readouterr() == ("", "")


def test_bad_arguments() -> None:
    for depth in (0, -3):
        with pytest.raises(ValueError) as caught:
            pipeline([], add_one, depth)
        message_has(caught, ["depth", 1, depth])
    with pytest.raises(TypeError, match="depth"):
        pipeline([], add_one, 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fn"):
        pipeline([], 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="batches must be iterable, not int"):
        pipeline(5, add_one)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="queue and device do not match"):
        pipeline([], add_one, device=isthmus._core.sim_create(""), queue=Queue("host"))
