# SPDX-License-Identifier: Apache-2.0
"""Array: dtype, shape and strides over a Buffer; copies, fills, bad input."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from array_support import MODEL, NAMES, SHAPE, array_of
from support import filled, python

import isthmus
from isthmus import Array, Buffer, Event, Queue

pytestmark = pytest.mark.sim_and_host


def test_properties(q: Queue, kind: str) -> None:
    buffer = Buffer(500, kind=kind, queue=q)
    made = Array(buffer, SHAPE, offset=20)
    assert (made.shape, made.strides, made.dtype) == (SHAPE, (80, 16, 4), np.dtype("f4"))
    assert (made.ndim, made.size, made.itemsize, made.nbytes) == (3, 120, 4, 480)
    assert (made.offset, len(made), made.ptr) == (20, 6, buffer.ptr + 20)
    assert (made.kind, made.queue, made.device) == (kind, q, q.device)
    assert made.buffer is buffer
    assert not made.read_only
    for part in (kind, str(SHAPE), "float32", q.device.filter):
        assert part in repr(made)
    assert "strides (80, 16, 8)" in repr(made[..., ::2])


def test_strides_and_scalars(q: Queue, kind: str) -> None:
    buffer = filled(np.arange(24, dtype=np.int16), kind=kind, queue=q)
    turned = Array(buffer, (4, 6), np.int16, strides=(2, 8))
    assert (turned.to_numpy() == np.arange(24).reshape(6, 4).T).all()
    again = Array(buffer, (3, 2), "int16", strides=(0, 2), offset=4)
    assert again.to_numpy().tolist() == [[2, 3]] * 3
    one = Array(buffer, (), "<i2", offset=46)
    assert (one.shape, one.size, one.to_numpy()[()]) == ((), 1, 23)
    assert Array(buffer, 24, "i2").shape == (24,)
    with pytest.raises(TypeError, match="0 dimensions"):
        len(one)


def test_nothing_in_it(q: Queue, kind: str) -> None:
    for shape, offset in (((0,), 8), ((3, 0, 2), 0)):
        empty = Array(Buffer(8, kind=kind, queue=q), shape, offset=offset)
        assert (empty.size, empty.nbytes, empty.to_numpy().shape) == (0, 0, shape)
        empty.fill(1)
        empty.copy_from(np.empty(shape, np.float32))
    assert Array(Buffer(0, kind=kind, queue=q), 0).to_numpy().shape == (0,)
    assert array_of(MODEL, q, kind)[6:, ::2].to_numpy().shape == (0, 3, 4)


def test_every_type(q: Queue, kind: str) -> None:
    for name in NAMES:
        model = (np.arange(24) % 7).astype(name).reshape(4, 6)
        made = array_of(model, q, kind)
        assert made.dtype == model.dtype
        assert made.itemsize == model.itemsize
        for ours, theirs in ((made, model), (made[1::2, ::3], model[1::2, ::3])):
            got = ours.to_numpy()
            assert got.dtype == model.dtype
            assert (got == theirs).all(), name
        made[:, 1:3].fill(1)
        model[:, 1:3] = 1
        assert (made.to_numpy() == model).all(), name
        if kind != "device":
            assert np.asarray(made).dtype == model.dtype
            assert (np.asarray(made) == model).all(), name
            assert memoryview(made).itemsize == model.itemsize
        back = np.zeros_like(model)
        made.copy_to(back)
        assert (back == model).all(), name


@pytest.mark.parametrize(
    "wrong", [">f4", "M8[s]", "m8[ns]", "O", "S4", "U2", [("a", "i4"), ("b", "f4")]]
)
@pytest.mark.host_only
def test_types_that_no_array_here_has(q: Queue, wrong: Any) -> None:
    with pytest.raises(TypeError, match="dtype must be"):
        Array(Buffer(64, queue=q), 2, np.dtype(wrong))


def test_other_kinds_of_types(q: Queue) -> None:
    for wrong in ("nonsense", 5.5, object()):
        with pytest.raises(TypeError):
            Array(Buffer(64, queue=q), 2, wrong)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"shape": 17}, isthmus.OutOfRangeError, "68 bytes, which from offset 0 .* has 64 bytes"),
    ({"shape": 16, "offset": 4}, isthmus.OutOfRangeError, "from offset 4"),
    ({"shape": 0, "offset": 65}, isthmus.OutOfRangeError, "from offset 65"),
    ({"shape": (2, 2), "strides": (60, 4)}, isthmus.OutOfRangeError, "68 bytes"),
    ({"shape": 2, "offset": 2}, ValueError, "offset 2 .* float32"),
    ({"shape": 2, "offset": -4}, ValueError, "offset must be 0 or more, not -4"),
    ({"shape": -1}, ValueError, "must be 0 or more, not -1"),
    ({"shape": (2, -3)}, ValueError, "extent must be 0 or more, not -3"),
    ({"shape": 2, "strides": (4, 4)}, ValueError, "for each of the 1 dim"),
    ({"shape": 2, "strides": (6,)}, ValueError, "multiples of the element size, 4"),
    ({"shape": 2, "strides": (-4,)}, isthmus.OutOfRangeError, "4 of them before its first"),
    ({"shape": 2, "strides": ("a",)}, TypeError, "stride must be an integer"),
    ({"shape": 2, "strides": 4}, TypeError, "strides must be a sequence"),
    ({"shape": (1,) * 65}, ValueError, "at most 64 dimensions, not 65"),
    ({"shape": (2**40, 2**40)}, isthmus.OutOfRangeError, "does not fit in 63 bits"),
    ({"shape": 2**63}, isthmus.OutOfRangeError, "does not fit in 63 bits"),
    ({"shape": (2, 2), "strides": (2**62, 2**62)}, isthmus.OutOfRangeError, "fit in 63 bits"),
    ({"shape": 2.5}, TypeError, "shape must be an integer or a sequence"),
    ({"shape": (2.5,)}, TypeError, "must be an integer"),
    ({"shape": None}, TypeError, "shape must be"),
    ({"shape": 2, "offset": "0"}, TypeError, "offset must be an integer"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), BAD)
@pytest.mark.host_only
def test_bad_arguments(
    q: Queue, kind: str, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Array(Buffer(64, kind=kind, queue=q), **arguments)


def test_what_is_no_buffer() -> None:
    for wrong in (bytes(64), np.zeros(4), None, Buffer):
        with pytest.raises(TypeError, match="expected a Buffer"):
            Array(wrong, 4)  # type: ignore[arg-type]
    bare = Array.__new__(Array)
    for use in (len, memoryview, lambda a: a[0]):
        with pytest.raises(ValueError, match="not called"):
            use(bare)


def test_reshape(q: Queue, kind: str) -> None:
    made = array_of(MODEL, q, kind)
    for got in (made.reshape((3, -1, 2)), made.reshape(3, -1, 2), made.reshape([3, -1, 2])):
        assert (got.to_numpy() == MODEL.reshape(3, 20, 2)).all()
        assert got.buffer is made.buffer
    with pytest.raises(TypeError):
        made.reshape("abc")  # type: ignore[arg-type]


def test_copies_with_events(q: Queue, kind: str, gate: Event) -> None:
    made = array_of(np.zeros_like(MODEL), q, kind)
    held = MODEL.copy()
    alive = weakref.ref(held)
    done = made[:, 1:].copy_from(held[:, 1:], after=gate, blocking=False)
    filling = made[:, 0].fill(9, blocking=False)
    assert done is not None
    assert filling is not None
    del held
    gc.collect()
    assert alive() is not None, "the copy keeps its source"
    gate.complete()
    filling.wait(10)
    done.wait(10)
    model = MODEL.copy()
    model[:, 0] = 9
    assert (made.to_numpy() == model).all()


def test_copies_of_other_types_and_shapes(q: Queue, kind: str) -> None:
    made = array_of(MODEL, q, kind)
    for use in (made.copy_from, made.copy_to):
        with pytest.raises(TypeError, match="dtype float64, not this array's float32"):
            use(MODEL.astype("f8"))
        with pytest.raises(ValueError, match=r"shape \(120,\), not this array's \(6, 5, 4\)"):
            use(MODEL.reshape(-1).copy())
        with pytest.raises(TypeError, match="dtype uint8"):
            use(Buffer(480, kind=kind, queue=q))
        for wrong in (MODEL.astype(">f4"), np.zeros(SHAPE, [("a", "f4")])):
            with pytest.raises(TypeError, match="unsupported dtype"):
                use(wrong)
        for no_array in (5, None, "abc", MODEL.tolist()):
            with pytest.raises(TypeError):
                use(no_array)
    fixed = MODEL.copy()
    fixed.flags.writeable = False
    made.copy_from(fixed)
    with pytest.raises(isthmus.ReadOnlyError, match="read-only"):
        made.copy_to(fixed)
    assert (made.to_numpy() == MODEL).all()


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("u1", 256, OverflowError),
        ("u1", -1, OverflowError),
        ("i1", -129, OverflowError),
        ("i8", 2**63, OverflowError),
        ("u8", 2**64, OverflowError),
        ("i4", 1.5, TypeError),
        ("f4", 1j, TypeError),
        ("?", 0.5, TypeError),
        ("f4", "1", TypeError),
        ("f4", None, TypeError),
        ("f4", [1.0], ValueError),
        ("f8", 10**400, OverflowError),
    ],
)
@pytest.mark.host_only
def test_bad_fills(q: Queue, name: str, value: Any, error: type[Exception]) -> None:
    made = Array(Buffer(64, queue=q), 4, name)
    with pytest.raises(error):
        made.fill(value)


def test_fills(q: Queue, kind: str) -> None:
    wide: list[tuple[str, Any]] = [("i8", -(2**63)), ("u8", 2**64 - 1), ("D", 1 - 2j), ("G", 3j)]
    cast: list[tuple[str, Any]] = [("i2", np.uint8(7)), ("f2", np.float64(0.5)), ("f4", 3)]
    byte: list[tuple[str, Any]] = [("u1", 255), ("?", 1), ("?", np.True_)]
    for name, value in wide + cast + byte:
        made = Array(Buffer(256, kind=kind, queue=q), 8, name)
        made.fill(value)
        assert (made.to_numpy() == np.full(8, value, name)).all(), name
        made.fill()
        made[::3].fill(value)
        model = np.zeros(8, name)
        model[::3] = value
        assert (made.to_numpy() == model).all(), name


def test_record(q: Queue, kind: str) -> None:
    made = array_of(MODEL, q, kind)
    made.record(Queue(q.context))
    assert (made.to_numpy() == MODEL).all()
    with pytest.raises(TypeError, match="Queue or an Event"):
        made.record(5)  # type: ignore[arg-type]


def test_without_numpy() -> None:
    """NumPy is imported only when a NumPy array is requested."""
    python(
        "import sys, isthmus\n"
        "buffer = isthmus.Buffer(64, kind='shared', device='host')\n"
        "array = isthmus.Array(buffer, (4, 2), 'int32')\n"
        "array[1:, 0].fill(7)\n"
        "assert memoryview(array).tolist()[1] == [7, memoryview(array)[1, 1]]\n"
        "halves = isthmus.Array(buffer, (4, 4), 'float16')\n"
        "halves[...] = 0.5\n"
        "halves[::-1].T[0, 0] = -1.5\n"
        "assert halves.tolist()[3] == [-1.5, .5, .5, .5]\n"
        "assert 'numpy' not in sys.modules\n"
        "assert array.dtype.name == 'int32'\n"
    )


def test_accepted_wherever_buffers_are(q: Queue, kind: str) -> None:
    source, target = array_of(MODEL, q, kind), Buffer(160, kind=kind, queue=q)
    target.copy_from(source[2:4])
    assert target.tobytes() == MODEL[2:4].tobytes()
    with pytest.raises(ValueError, match="not contiguous"):
        target.copy_from(source[:, 0])
    isthmus.copy_nd(source[:, ::2, 1], MODEL[:, :3, 3])
    assert (source.to_numpy()[:, ::2, 1] == MODEL[:, :3, 3]).all()
