# SPDX-License-Identifier: Apache-2.0
"""copyto, copies and moves between Arrays and foreign arrays; read-only destinations."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from array_support import MODEL, SHAPE, array_of
from support import sim

import isthmus
from isthmus import Array, Buffer, Event, Queue

if TYPE_CHECKING:
    from collections.abc import Callable


def test_copies_out(q: Queue, kind: str) -> None:
    """Copies to destinations of other libraries."""
    made = array_of(MODEL, q, kind)
    target = np.zeros((2, *SHAPE))
    isthmus.copyto(target[:, ::-1], made)
    assert (target[:, ::-1] == MODEL).all()
    backwards = np.zeros(SHAPE[::-1], np.float32)
    made.copy_to(backwards.T[::-1])
    assert (backwards.T[::-1] == MODEL).all()
    fixed = np.zeros(SHAPE)
    fixed.flags.writeable = False
    with pytest.raises(isthmus.ReadOnlyError):
        isthmus.copyto(fixed, made)
    with pytest.raises(TypeError, match="must be an Array"):
        isthmus.copyto([0.0], made)


class Lent:
    """An array of another library that supports only DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> object:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_dlpacks_arrays(q: Queue, kind: str) -> None:
    made = array_of(np.zeros(SHAPE), q, kind)
    for source in (MODEL, MODEL[::-1], MODEL[:, ::2, ::-3].T[..., :1], np.int16([3])):
        made[...] = 0
        target = made[tuple(slice(0, n) for n in source.shape)] if source.ndim == 3 else made
        target[...] = Lent(source)
        assert (target.to_numpy() == source).all()
    assert isthmus.shares_memory(Lent(MODEL[::-1]), MODEL[1])
    with pytest.raises(BufferError, match="DLPack"):
        made[...] = Lent(np.array(["a"]))
    out = np.zeros(SHAPE)
    isthmus.copyto(Lent(out[::-1]), made)
    assert (out[::-1] == made.to_numpy()).all()


class Told:
    def __init__(self, name: str, dictionary: dict[str, Any]) -> None:
        setattr(self, name, dictionary)


def test_arrays_of_the_interfaces(q: Queue, kind: str) -> None:
    """Strides of any sign, as source and as destination."""
    made = array_of(MODEL, q, kind)
    model = MODEL[::-1, :, ::-3]
    told = made[::-1, :, ::-3].__sycl_usm_array_interface__
    assert told["data"][0] == made.ptr + 400 + 12
    assert told["strides"] == (-20, 4, -3)
    other = array_of(np.zeros(model.shape), q, kind)
    other[...] = Told("__sycl_usm_array_interface__", told)
    assert (other.to_numpy() == model).all()
    isthmus.copyto(Told("__sycl_usm_array_interface__", told), 5)
    assert (made.to_numpy()[:, :, ::3] == 5).all()
    if q.device.backend == "cuda":
        told = made[::-1].__cuda_array_interface__
        assert told["strides"] == (-80, 16, 4)
        other = array_of(np.zeros(SHAPE), q, kind)
        other[...] = Told("__cuda_array_interface__", told)
        assert (other.to_numpy() == made.to_numpy()[::-1]).all()


def test_buffers_as_bytes(q: Queue, kind: str) -> None:
    made = array_of(np.zeros(8, "u1"), q, kind)
    made[...] = Buffer.adopt(made.ptr, 8, queue=q, kind=kind, owner=made)
    wide = array_of(np.zeros((2, 8), "f4"), q, kind)
    made.fill(3)
    wide[::-1] = made.buffer[32:]
    assert (wide.to_numpy() == 3).all()


def test_memory_kept_alive_by_events(q: Queue, kind: str, gate: Event) -> None:
    made = array_of(np.zeros_like(MODEL), q, kind)
    held = MODEL[::-1].astype("f8")
    alive = weakref.ref(held)
    done = isthmus.copyto(made[:, ::-1], held, after=gate, blocking=False)
    filled = isthmus.copyto(made[0], 9, queue=Queue(q.context), blocking=False)
    listed = isthmus.copyto(made[1], [[1, 2, 3, 4]] * 5, blocking=False)
    assert isinstance(done, Event)
    assert isinstance(filled, Event)
    assert isinstance(listed, Event)
    del held
    gc.collect()
    assert alive() is not None, "the copy keeps its source"
    gate.complete()
    for event in (done, filled, listed):
        event.wait(10)
    model = MODEL[::-1, ::-1].copy()
    model[0] = 9
    model[1] = [[1, 2, 3, 4]] * 5
    assert (made.to_numpy() == model).all()


def test_copies_and_moves(q: Queue, kind: str) -> None:
    made = array_of(MODEL, q, kind)[::-1, ::2]
    model = MODEL[::-1, ::2]
    for got in (made.copy(), copy.copy(made), copy.deepcopy(made), made.astype("f4")):
        assert (got.to_numpy() == model).all()
        assert (got.kind, got.queue, got.base) == (kind, q, None)
        assert got.is_contiguous
        assert not isthmus.shares_memory(got, made)
    assert made.astype("f4", copy=False) is made
    assert made.astype("f8", copy=False) is not made
    for other_kind in q.device.kinds:
        got = made.copy(kind=other_kind)
        assert (got.to_numpy() == model).all()
        assert got.kind == other_kind
    there = Queue(sim())
    got = made.astype("i2", queue=there, kind="device")
    assert (got.to_numpy() == model).all()
    assert (got.queue, got.kind, got.dtype.name) == (there, "device", "int16")
    assert (made.copy(device="host", kind="host").to_numpy() == model).all()
    assert made.to_device(q.device) is made
    assert made.to_device(q) is made
    assert made.to_device(q.device, kind=kind) is made
    for where in (there, there.device):
        moved = made.to_device(where)
        assert (moved.to_numpy() == model).all()
        assert (moved.device, moved.kind) == (there.device, kind)
    with pytest.raises(isthmus.WrongContextError):
        made.on_queue(there)
    with pytest.raises(TypeError):
        made.to_device(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kind"):
        made.copy(kind="nonsense")
    with pytest.raises(TypeError, match="True or False"):
        made.astype("f4", copy=1)  # type: ignore[arg-type]


def test_what_may_not_be_written(q: Queue, kind: str) -> None:
    buffer = array_of(MODEL, q, kind).buffer
    fixed = Buffer.adopt(buffer.ptr, buffer.nbytes, queue=q, owner=buffer, read_only=True)
    for locked in (
        Array(fixed, SHAPE, offset=32),
        isthmus.broadcast_to(Array(buffer, 4), (6, 5, 4)),
    ):
        uses: list[Callable[[], object]] = [
            lambda a=locked: a.__setitem__(..., 1),
            lambda a=locked: a.__setitem__(0, MODEL[0]),
            lambda a=locked: a.T.__setitem__((0, 0, ...), 1),
            lambda a=locked: isthmus.copyto(a, MODEL),
            lambda a=locked: a.copy_from(MODEL),
            lambda a=locked: a[::-1].fill(1),
        ]
        if kind != "device":
            uses.append(lambda a=locked: a.__setitem__((0, 0, 0), 1))
        before = locked.to_numpy()
        for use in uses:
            with pytest.raises(isthmus.ReadOnlyError, match="read-only"):
                use()
        assert (locked.to_numpy() == before).all()
        assert locked.read_only
        if kind != "device":
            assert not np.asarray(locked).flags.writeable
            with pytest.raises(isthmus.ReadOnlyError):
                isthmus.copy_nd(locked, MODEL)
        assert locked.__sycl_usm_array_interface__["data"][1] is True


def test_elements_that_share_bytes_are_not_written(q: Queue, kind: str) -> None:
    made = Array(Buffer(64, kind=kind, queue=q), (4, 4), strides=(0, 4))
    for use in (
        lambda: made.__setitem__(..., np.zeros((4, 4))),
        lambda: isthmus.copyto(made, 1),
        lambda: made.copy_from(np.zeros((4, 4), np.float32)),
    ):
        with pytest.raises(isthmus.InvalidArgumentError):
            use()


def test_a_freed_array(q: Queue, kind: str) -> None:
    made = array_of(MODEL, q, kind)
    view = made[::-1]
    made.buffer.free()
    uses: list[Callable[[], object]] = [
        lambda: view.__setitem__(0, MODEL[0]),
        lambda: isthmus.copyto(MODEL.copy(), view),
        lambda: isthmus.copy_nd(made, MODEL),
        lambda: view.copy(),
        lambda: view.astype("f8"),
        lambda: view.tolist(),
        lambda: view.view("i4"),
        lambda: made.reshape(-1, copy=True),
        lambda: made.on_queue(q),
        lambda: Array(made.buffer, 1),
        lambda: made[1],
    ]
    if kind != "device":
        uses += [lambda: view[0, 0, 0], lambda: view.__setitem__((0, 0, 0), 1)]
        uses += [made.__dlpack__, lambda: np.from_dlpack(made), lambda: memoryview(made)]
    for use in uses:
        with pytest.raises(isthmus.ClosedError):
            use()
