# SPDX-License-Identifier: Apache-2.0
"""The end of arrays: references, free, `with`; loops of temporaries."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import sim, until

import isthmus
from isthmus import Array, Buffer, ClosedError, Device, Event, Queue, _core
from isthmus.memory import StatisticsResource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def uses(array: Array) -> list[Callable[[], object]]:
    """The uses that a freed array must reject."""
    return [
        lambda: array.ptr,
        lambda: array.to_numpy(),
        lambda: array.fill(1),
        lambda: array.copy_from(np.zeros(array.shape, array.dtype)),
        lambda: array.copy_to(np.zeros(array.shape, array.dtype)),
        lambda: str(array),
        lambda: array[1:],
        lambda: array[..., None],
        lambda: array.T,
        lambda: array.reshape(-1),
        lambda: array.view("u1"),
        lambda: isthmus.flip(array),
        lambda: array.__enter__(),
        lambda: isthmus.array(array),
        lambda: isthmus.asarray(array, "f8").to_numpy(),
        lambda: array.__sycl_usm_array_interface__,
        lambda: array.__setitem__(..., 1),
    ]


def require_closed(array: Array) -> None:
    assert array.freed
    for use in uses(array):
        with pytest.raises(ClosedError, match="freed"):
            use()
    assert "freed" in repr(array)


@contextlib.contextmanager
def counting(q: Queue, kind: str) -> Iterator[StatisticsResource]:
    """The resource that the test's arrays come from, which counts them."""
    made = StatisticsResource(isthmus.default_pool(kind, queue=q))
    with isthmus.using(made):
        yield made


@pytest.fixture
def counted(q: Queue, kind: str) -> Iterator[StatisticsResource]:
    with counting(q, kind) as made:
        yield made


@pytest.fixture
def host_counted(q: Queue, host_kind: str) -> Iterator[StatisticsResource]:
    with counting(q, host_kind) as made:
        yield made


def nothing_lives(counted: StatisticsResource) -> bool:
    return until(lambda: counted.current_count == 0)


# -- references -----------------------------------------------------------------------------------


def test_memory_is_freed_with_the_last_reference(
    counted: StatisticsResource, q: Queue, kind: str
) -> None:
    made = isthmus.empty(1000, kind=kind, queue=q)
    part = made[10:20]
    del made
    assert counted.current_count
    del part
    assert nothing_lives(counted)


# The Buffer object is created by the first use that needs it.
FIRST_USES: dict[str, Callable[[Array], object]] = {
    "none": lambda array: None,
    "buffer": lambda array: array.buffer,
    "view": lambda array: array[1:],
    "on_queue": lambda array: array.on_queue(array.queue),
    "kind": lambda array: array.kind,
    "read_only": lambda array: array.read_only,
    "freed": lambda array: array.freed,
    "ptr": lambda array: array.ptr,
    "repr": repr,
    "to_numpy": lambda array: array.to_numpy(),
    "fill": lambda array: array.fill(1),
}


@pytest.mark.parametrize("first", FIRST_USES)
def test_memory_is_freed_after_any_first_use(
    counted: StatisticsResource, q: Queue, kind: str, first: str
) -> None:
    made = isthmus.empty(1000, kind=kind, queue=q)
    result = FIRST_USES[first](made)
    assert counted.current_count == 1
    del result
    again = isthmus.empty(1000, kind=kind, queue=q)
    result = FIRST_USES[first](again)
    buffer, part = again.buffer, again[5:]
    assert again.buffer is buffer
    assert part.buffer is buffer
    assert buffer.nbytes == 4000
    del made, again, part, buffer, result
    assert nothing_lives(counted)


def test_the_buffer_is_made_while_garbage_is_collected(q: Queue, kind: str) -> None:
    """Creating an object may collect garbage, and a callback may then use the same array."""
    made: list[Array] = []
    asked: list[Buffer] = []

    def ask(phase: str, info: dict[str, int]) -> None:
        if made and not asked:
            asked.append(made[-1].buffer)

    thresholds = gc.get_threshold()
    gc.callbacks.append(ask)
    gc.set_threshold(1)
    try:
        for _ in range(300):  # all are kept, since a dropped object would be reused
            made.append(isthmus.empty(16, kind=kind, queue=q))
            asked.clear()
            buffer = made[-1].buffer
            assert made[-1].buffer is buffer
            assert made[-1].queue is q
            assert all(each is buffer for each in asked)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(ask)


def test_memory_is_released_after_the_work_that_uses_it(
    counted: StatisticsResource, q: Queue, kind: str, gate: Event
) -> None:
    into, other = np.zeros(1000, np.float32), Queue(q.context)
    made = isthmus.ones(1000, kind=kind, queue=q)
    event = made.copy_to(into, after=gate, blocking=False)
    del made
    for queue in (q, other):
        isthmus.full(1000, 7, "f4", kind=kind, queue=queue)
    gate.complete()
    assert event is not None
    event.wait()
    assert into.sum() == 1000
    del event
    assert nothing_lives(counted)


def test_weak_references(q: Queue, kind: str) -> None:
    made = isthmus.empty(3, kind=kind, queue=q)
    seen = weakref.ref(made)
    assert seen() is made
    del made
    assert seen() is None


# -- free -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["free", "unsafe_free", "with"])
def test_free(counted: StatisticsResource, q: Queue, kind: str, end: str) -> None:
    made = isthmus.ones(100, kind=kind, queue=q)
    assert not made.freed
    if end == "with":
        with made as same:
            assert same is made
    else:
        getattr(made, end)()
    assert nothing_lives(counted)
    require_closed(made)
    made.free()
    made.unsafe_free()
    assert (made.shape, made.dtype, made.kind, made.queue) == ((100,), "f4", kind, q)
    assert made.nbytes == 400
    assert isthmus.empty_like(made).shape == (100,)


def test_views_go_on(counted: StatisticsResource, q: Queue, kind: str) -> None:
    made = isthmus.array(np.arange(100.0), kind=kind, queue=q)
    part, again = made[10:20], made.reshape(10, 10)
    made.free()
    require_closed(made)
    assert part.to_numpy().tolist() == list(range(10, 20))
    part.free()
    require_closed(part)
    again[0] = 5
    assert again.to_numpy()[0].tolist() == [5] * 10
    assert counted.current_count
    del again
    assert nothing_lives(counted)
    require_closed(made)


def test_freeing_a_view_leaves_the_array(q: Queue, kind: str) -> None:
    made = isthmus.ones(100, kind=kind, queue=q)
    part = made[10:20]
    with part:
        pass
    require_closed(part)
    assert made.to_numpy().sum() == 100


def test_a_referenced_buffer_stays_alive(q: Queue, kind: str) -> None:
    made = isthmus.ones(100, "u1", kind=kind, queue=q)
    memory = made.buffer
    made.free()
    require_closed(made)
    assert memory.tobytes() == bytes([1]) * 100
    other = Array(memory, 100, "u1")
    memory.free()
    require_closed(other)


def test_exports_go_on(host_counted: StatisticsResource, q: Queue, host_kind: str) -> None:
    made = isthmus.ones(100, kind=host_kind, queue=q)
    seen, lent = np.asarray(made), np.from_dlpack(made)
    view = memoryview(made)
    made.free()
    require_closed(made)
    seen[:] = 3
    assert lent.sum() == 300
    assert view[99] == 3
    del seen, lent
    assert host_counted.current_count
    view.release()
    assert nothing_lives(host_counted)


def test_exports_of_a_part_and_the_whole(
    host_counted: StatisticsResource, q: Queue, host_kind: str
) -> None:
    """The end of each export is reported to the buffer that it began at."""
    made = isthmus.ones(100, kind=host_kind, queue=q)
    part = made[50:]
    first, second = memoryview(made), memoryview(part)
    made.free()
    third = memoryview(part)
    first.release()
    part.free()
    assert second[0] == third[0] == 1
    second.release()
    third.release()
    assert nothing_lives(host_counted)


def test_freed_while_another_thread_uses_it(q: Queue, kind: str) -> None:
    def read_till_closed(of: Array, begun: threading.Event, sums: list[float]) -> None:
        begun.set()
        with contextlib.suppress(ClosedError):
            while True:
                sums.append(float(of.to_numpy().sum()))

    for _ in range(5):
        made = isthmus.ones(200_000, kind=kind, queue=q)
        part = made[:]
        begun, sums = threading.Event(), []
        reader = threading.Thread(target=read_till_closed, args=(made, begun, sums))
        reader.start()
        begun.wait()
        made.free()
        del part
        reader.join()
        assert set(sums) <= {200_000.0}


def test_the_device_array_of_a_unified_buffer() -> None:
    both = isthmus.UnifiedBuffer((100,), "f4", device=sim())
    both.host[:] = 3
    both.device.free()
    assert both.device.to_numpy().sum() == 300


# -- with -----------------------------------------------------------------------------------------


def test_with_ends_it_when_the_block_fails(q: Queue, kind: str) -> None:
    with pytest.raises(KeyError), isthmus.empty(3, kind=kind, queue=q) as made:
        raise KeyError
    require_closed(made)


# -- loops ----------------------------------------------------------------------------------------


def test_a_loop_of_temporaries_with_work_on_them(kind: str) -> None:
    """Memory use is constant, and the driver allocates nothing after the first rounds."""
    device = sim(effect="late")
    sizes = np.random.default_rng(7).integers(1, 1 << 14, 400).tolist()

    def one_round() -> None:
        for size in sizes:
            made = isthmus.zeros(size, "u1", kind=kind, device=device)
            made.fill(3, blocking=False)

    for _ in range(3):
        one_round()
        device.default_queue.fence().wait()
    before = _core.sim_calls(device, "allocate"), _core.sim_state(device)[1:]
    for _ in range(3):
        one_round()
        device.default_queue.fence().wait()
    gc.collect()
    assert (_core.sim_calls(device, "allocate"), _core.sim_state(device)[1:]) == before


def test_nothing_leaks(counted: StatisticsResource, q: Queue, kind: str) -> None:
    for _ in range(50):
        with isthmus.scratch(), isthmus.allocated():
            made: Any = [isthmus.ones(100, kind=kind, queue=q) for _ in range(5)]
            made[0].free()
            del made[1]
    del made
    assert nothing_lives(counted)


# -- where no new object can be created -----------------------------------------------------------


def test_free_after_the_queue_was_closed(dev: Device, kind: str) -> None:
    q = Queue(dev)
    with counting(q, kind) as counted:
        made = [isthmus.ones(100, kind=kind, queue=q) for _ in range(2)]
        q.wait()
        q.close()
        made[0].free()
        with pytest.raises(KeyError), made[1]:
            raise KeyError
        assert nothing_lives(counted)
    for each in made:
        assert each.freed
        with pytest.raises(ClosedError, match=r"^this buffer was freed"):
            each.fill(1, queue=dev.default_queue)
