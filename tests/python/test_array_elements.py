# SPDX-License-Identifier: Apache-2.0
"""Single elements of Array: host reads and writes, iteration, Python number protocols."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from array_support import MODEL, NAMES, SHAPE, WHERE, array_of, follow, views
from hypothesis import given
from hypothesis import strategies as st
from support import message_has, until

import isthmus
from isthmus import Array, Buffer, Event, Queue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


@pytest.fixture
def allowed(kind: str) -> Iterator[str]:
    """Each kind, with single-element access allowed."""
    with isthmus.allow_scalar():
        yield kind


def test_every_type(q: Queue, allowed: str) -> None:
    for name in NAMES:
        model = (np.arange(24) % 7).astype(name).reshape(4, 6)
        made = array_of(model, q, allowed)
        for key in ((0, 0), (-1, 5), (np.int8(2), -3)):
            got = made[key]
            wanted = model[key].item() if name not in "gG" else model[key]
            assert got == wanted
            assert type(got) is type(wanted)
            made[key] = 3
            model[key] = 3
        assert made.tolist() == model.tolist()
        assert np.array_equal(made.to_numpy(), model)


def test_edges_of_types(q: Queue, allowed: str) -> None:
    for name, values in {
        "f2": [0.0, -0.0, 6e-8, -5.96e-8, 65504, float("inf"), float("-inf"), 0.1, 1 / 3, 6.1e-5],
        "f4": [1e-45, 3e38, float("inf"), 1e39, -0.0],
        "i8": [2**63 - 1, -(2**63)],
        "u8": [2**64 - 1, 0],
        "D": [1 - 2j, complex("inf")],
        "?": [True, False],
    }.items():
        with np.errstate(over="ignore"):
            model = np.array(values).astype(name) if name != "u8" else np.array(values, name)
        made = array_of(np.zeros_like(model), q, allowed)
        for i, value in enumerate(values):
            made[i] = value
        assert made.to_numpy().tobytes() == model.tobytes(), name
        assert [made[i] for i in range(len(values))] == model.tolist()
    nan = array_of(np.float16([np.nan]), q, allowed)
    assert nan[0] != nan[0]


@given(views(), st.data())
@isthmus.allow_scalar()
def test_elements_of_views(view: tuple[np.ndarray, list[Any]], data: Any) -> None:
    model, steps = view
    made, model = array_of(model, *data.draw(WHERE)), model.copy()
    ours, seen = follow(made, steps), follow(model, steps)
    assert ours.tolist() == seen.tolist()
    if seen.size == 0:
        return
    key = tuple(data.draw(st.integers(-n, n - 1)) for n in seen.shape)
    assert ours[key] == seen[key]
    assert ours.item(*key) == seen.item(*key)
    place = data.draw(st.integers(-seen.size, seen.size - 1))
    assert ours.item(place) == seen.item(place)
    ours[key] = 1
    seen[key] = 1
    assert np.array_equal(made.to_numpy(), model)


def test_no_dimensions(q: Queue, allowed: str) -> None:
    made, model = array_of(MODEL, q, allowed), MODEL.copy()
    one = made[1, 2, 3, ...]
    assert (one.shape, one[()], one[...].shape) == ((), MODEL[1, 2, 3], ())
    one[()] = 7
    assert made[1, 2, 3] == one.item() == float(one) == 7
    one[...] = 8
    model[1, 2, 3] = 8
    assert (made.to_numpy() == model).all()
    assert isinstance(made[0, 0], Array)


def test_device_kind_refuses(q: Queue) -> None:
    made = array_of(MODEL, q, "device")
    row = array_of(np.arange(4), q, "device")
    uses: list[Callable[[], object]] = [
        lambda: made[0, 0, 0],
        lambda: made.__setitem__((0, 0, 0), 1),
        lambda: made[0, 0, 0, ...][()],
        lambda: made.item(3),
        lambda: made.item(1, 2, 3),
        lambda: list(row),
        lambda: int(row[:1]),
        lambda: float(row[:1]),
        lambda: complex(row[:1]),
        lambda: bool(row[:1]),
        lambda: [0, 1][row[0, ...]],  # type: ignore[call-overload]
    ]
    for use in uses:
        with pytest.raises(TypeError) as raised:
            use()
        message_has(raised, ["'device'", "to_numpy()", "'shared'", "'host'", "allow_scalar"])
    assert (made.to_numpy() == MODEL).all()
    with isthmus.allow_scalar():
        for use in uses:
            use()
    assert row.tolist() == [0, 1, 2, 3], "a copy of all is allowed"
    assert [each.shape for each in made] == [(5, 4)] * 6


def test_allowing(q: Queue) -> None:
    made = array_of(np.arange(4), q, "device")

    @isthmus.allow_scalar()
    def first() -> int:
        return int(made[0])

    @isthmus.allow_scalar()
    async def second() -> int:
        await asyncio.sleep(0)
        return int(made[1])

    def refused() -> bool:
        try:
            made[0]
        except TypeError:
            return True
        return False

    assert first() == 0
    assert first.__name__ == "first"
    assert asyncio.run(second()) == 1
    assert refused()
    allow = isthmus.allow_scalar()
    with allow, allow:
        seen: list[bool] = []
        thread = threading.Thread(target=lambda: seen.append(refused()))
        thread.start()
        thread.join()
        assert seen == [True], "another thread was not asked"
        assert not refused()
    assert refused()
    with pytest.raises(ZeroDivisionError), isthmus.allow_scalar():
        _ = 1 / 0
    assert refused()


async def test_allowing_in_tasks(q: Queue) -> None:
    made = array_of(np.arange(4), q, "device")
    inside, done = asyncio.Event(), asyncio.Event()

    async def allowing() -> int:
        with isthmus.allow_scalar():
            inside.set()
            await done.wait()
            return int(made[3])

    task = asyncio.create_task(allowing())
    await inside.wait()
    with pytest.raises(TypeError, match="allow_scalar"):
        made[0]
    done.set()
    assert await task == 3


async def test_tasks_that_share_one_leave_it_in_any_order(q: Queue) -> None:
    made, allow = array_of(np.arange(4), q, "device"), isthmus.allow_scalar()
    entered, may_leave = asyncio.Event(), asyncio.Event()

    async def stays() -> int:
        with allow:
            entered.set()
            await may_leave.wait()
        with allow:
            return int(made[1])

    task = asyncio.create_task(stays())
    await entered.wait()
    with allow:
        may_leave.set()
        assert await task == 1
        assert made[3] == 3
    with pytest.raises(TypeError, match="allow_scalar"):
        made[0]
    with pytest.raises(RuntimeError, match="without being entered"):
        allow.__exit__(None, None, None)


def test_generator_functions_are_not_allowed_single_elements() -> None:
    def steps() -> Iterator[int]:
        yield 1

    async def steps_of_a_task() -> AsyncIterator[int]:
        yield 1

    for function in (steps, steps_of_a_task):
        with pytest.raises(TypeError, match=r"steps.* is a generator function"):
            isthmus.allow_scalar()(function)


def test_writers_are_waited_for(q: Queue, host_kind: str, gate: Event) -> None:
    """An element is accessed once the pending operations on it have completed, and not before."""
    made = array_of(MODEL, q, host_kind)
    made[0].fill(5, after=gate, blocking=False)
    got: list[float] = []

    def use() -> None:
        got.append(made[0, 0, 0])
        made[0, 0, 1] = 6
        got.append(made[0, 0, 1])

    thread = threading.Thread(target=use)
    thread.start()
    assert not until(lambda: got, 0.05)
    gate.complete()
    thread.join(10)
    assert got == [5, 6]
    assert made.to_numpy()[0, 0].tolist() == [5, 6, 5, 5]


def test_other_bytes_are_not_waited_for(q: Queue, host_kind: str, gate: Event) -> None:
    made = array_of(MODEL, q, host_kind)
    done = made[0].fill(5, after=gate, blocking=False)
    assert made[5, 0, 0] == MODEL[5, 0, 0]
    made[5, 0, 0] = 1
    gate.complete()
    assert done is not None
    done.wait(10)
    assert made[5, 0, 0] == 1


def test_iteration(q: Queue, host_kind: str) -> None:
    made = array_of(MODEL, q, host_kind)
    assert [each.tolist() for each in made] == [each.tolist() for each in MODEL]
    assert list(made[0, 0]) == [0.0, 1.0, 2.0, 3.0]
    assert list(made[:0]) == []
    first, *rest = made
    assert first.base is made
    assert len(rest) == 5
    for i, row in enumerate(made):
        row[...] = i
    assert (made.to_numpy() == np.arange(6)[:, None, None]).all()
    assert [row[0, 0] for row in reversed(made)] == [5, 4, 3, 2, 1, 0]
    with pytest.raises(TypeError, match="0 dimensions"):
        iter(made[0, 0, 0, ...])
    with pytest.raises(TypeError, match="to_numpy"):
        _ = 1.0 in made


def test_numbers(q: Queue, host_kind: str) -> None:
    for name in ("i4", "f8", "?", "D"):
        one = array_of(np.array([[1]]).astype(name), q, host_kind)
        assert one
        assert one.item() == 1
        assert complex(one) == 1
        if name != "D":
            assert (int(one), float(one)) == (1, 1.0)
        one.fill(0)
        assert not one
    assert "abc"[array_of(np.array(2), q, host_kind)] == "c"
    many = array_of(MODEL, q, host_kind)
    with pytest.raises(ValueError, match="truth value of an array of 120 elements"):
        bool(many)
    with pytest.raises(ValueError, match="0 elements"):
        bool(many[:0])
    for use in (int, float, complex, Array.item):
        with pytest.raises(TypeError, match="only an array of one element"):
            use(many)
    with pytest.raises(TypeError):
        int(array_of(np.array([1j]), q, host_kind))
    for wrong in (many[0, 0, :1], many[0, 0, 0, ...]):
        with pytest.raises(TypeError, match="used as an index"):
            [0][wrong]  # type: ignore[call-overload]
    assert np.array_equal(many + 1, MODEL + 1)


BAD_ITEMS: list[tuple[Any, type[Exception], str]] = [
    ((120,), IndexError, "index 120 .* size 120"),
    ((-121,), IndexError, "index -121"),
    ((0, 5, 0), IndexError, "axis 1 with size 5"),
    ((0, 0), ValueError, "3 dimensions"),
    (((0, 0),), ValueError, "3 dimensions"),
    ((0, 0, slice(1)), ValueError, "3 dimensions"),
    (("a",), TypeError, "integer"),
    ((1.0,), TypeError, "integer"),
]


@pytest.mark.parametrize(("key", "error", "text"), BAD_ITEMS)
@pytest.mark.host_only
def test_bad_items(q: Queue, host_kind: str, key: Any, error: type[Exception], text: str) -> None:
    made = array_of(MODEL, q, host_kind)
    assert made.item((1, 2, 3)) == MODEL[1, 2, 3]
    with pytest.raises(error, match=text):
        made.item(*key)


BAD_VALUES: list[tuple[str, Any, type[Exception]]] = [
    ("u1", 256, OverflowError),
    ("i4", float("nan"), ValueError),
    ("i4", 1j, TypeError),
    ("f4", None, TypeError),
    ("f4", "1", TypeError),
    ("f4", [1, 2], ValueError),
]


@pytest.mark.parametrize(("name", "value", "error"), BAD_VALUES)
@pytest.mark.host_only
def test_bad_values(q: Queue, allowed: str, name: str, value: Any, error: type[Exception]) -> None:
    made = array_of(np.zeros(4, name), q, allowed)
    with pytest.raises(error):
        made[1] = value
    assert made.tolist() == [0] * 4


def test_reads_from_many_threads(q: Queue, host_kind: str) -> None:
    made = array_of(np.arange(1000), q, host_kind)
    sums: list[int] = []

    def add() -> None:
        sums.append(sum(made[i] for i in range(1000)))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sums == [499500] * 4


def test_a_buffer_of_no_bytes(q: Queue, host_kind: str) -> None:
    made = Array(Buffer(0, kind=host_kind, queue=q), 0)
    assert (made.tolist(), list(made)) == ([], [])
    with pytest.raises(IndexError, match="size 0"):
        made[0]
    assert made.shape != SHAPE


def test_reads_do_not_wait_for_readers(q: Queue, host_kind: str, gate: Event) -> None:
    made = isthmus.array(np.arange(4, dtype="f4"), kind=host_kind, queue=q)
    into = isthmus.empty(4, kind=host_kind, queue=q)
    event = made.copy_to(into, after=gate, blocking=False)
    seen: list[float] = []
    reader = threading.Thread(target=lambda: seen.append(made[1]), daemon=True)
    reader.start()
    assert until(lambda: seen == [1])
    assert event is not None
    assert not event.done
    gate.complete()
    event.wait()
    assert into[1] == 1
    reader.join()


@pytest.mark.parametrize("kind", ["device", "host"])
def test_elements_of_freed_memory(kind: str) -> None:
    made = isthmus.zeros(3, kind=kind)
    made.free()
    with pytest.raises(isthmus.ClosedError):
        made[0]
    with pytest.raises(isthmus.ClosedError):
        made[0] = 1
