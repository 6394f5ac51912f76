# SPDX-License-Identifier: Apache-2.0
"""Array's views, compared with NumPy: keys with any step, axes, shapes and dtypes."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from array_support import (
    MODEL,
    PLAIN,
    SHAPE,
    WHERE,
    array_of,
    follow,
    same,
    views,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from support import message_has, sim

import isthmus
from isthmus import Array, Buffer, Queue
from isthmus.memory import live

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.sim_and_host
SIM = sim(effect="late")
AXIS_ERROR = (ValueError, IndexError)
axis_error = pytest.mark.parametrize("error", AXIS_ERROR)

KEYS: list[Any] = [
    *(0, -1, np.int64(2)),
    *(slice(None, None, -1), slice(None, None, 2), slice(-4, 100, 3)),
    slice(4, 1, -2),
    slice(1, 4),
    slice(5, 1),
    slice(-100, 100, 7),
    None,
    ...,
    (),
    (..., None),
    (None, 2, None, ..., slice(None, None, -3)),
    (slice(None, None, -1),) * 3,
    (1, 2, 3, ...),
    (..., 0),
    (0, ..., slice(1, 3)),
    (slice(1, 3), slice(None, None, 4), slice(0, 4, 3)),
    (slice(2, 3), 4),
    (np.int64(-1), ..., slice(None, None, 2)),
    slice(None, None, 2**62),
    slice(2**70, None, -(2**70)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys(q: Queue, kind: str, key: Any) -> None:
    made, model = array_of(MODEL, q, kind), MODEL.copy()
    view = made[key]
    assert same(view, model[key])
    assert view.base is made
    assert view.buffer is made.buffer
    assert view[...].base is made, "never a view of a view"
    if model[key].size != 0:
        first = model[key].ctypes.data - model.ctypes.data
        assert view.ptr == made.ptr + first
    view.fill(-1)
    model[key] = -1
    assert (made.to_numpy() == model).all()
    assert made.buffer[:32].tobytes() == bytes(32)


@given(views(), WHERE)
def test_views_of_views(view: tuple[np.ndarray, list[Any]], where: tuple[Queue, str]) -> None:
    model, steps = view
    made = array_of(model, *where)
    assert same(follow(made, steps), follow(model, steps))


@given(views(), st.data())
def test_reshapes(view: tuple[np.ndarray, list[Any]], data: Any) -> None:
    """A view is returned wherever NumPy returns one."""
    model, steps = view
    model, made = follow(model, steps), follow(array_of(model, *data.draw(WHERE)), steps)
    factors = [n for n in model.shape if n != 1]
    shape = data.draw(st.permutations(factors)) if factors else []
    while len(shape) > 1 and data.draw(st.booleans()):
        shape = [shape[0] * shape[1], *shape[2:]]
    if data.draw(st.booleans()) and 0 not in shape and shape:
        shape[data.draw(st.integers(0, len(shape) - 1))] = -1
    wanted = model.reshape(shape)
    got = made.reshape(shape)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    assert np.array_equal(got.to_numpy(), wanted)
    if model.size > 1:
        assert isthmus.shares_memory(got, made) == np.shares_memory(wanted, model)
        if not np.shares_memory(wanted, model):
            with pytest.raises(ValueError, match="needs a copy"):
                made.reshape(shape, copy=False)
    always = made.reshape(shape, copy=True)
    assert np.array_equal(always.to_numpy(), wanted)
    assert not isthmus.shares_memory(always, made)


@given(views(), st.data())
def test_axes(view: tuple[np.ndarray, list[Any]], data: Any) -> None:
    model, steps = view
    model, made = follow(model, steps), follow(array_of(model, *data.draw(WHERE)), steps)
    ndim = model.ndim
    order = data.draw(st.permutations(range(ndim)))
    assert same(made.T, model.T)
    assert same(made.transpose(), model.transpose())
    assert same(isthmus.permute_dims(made, order), model.transpose(order))
    assert same(made.squeeze(), model.squeeze())
    assert same(isthmus.flip(made), np.flip(model))
    if ndim >= 2:
        one, other = data.draw(st.tuples(*[st.integers(-ndim, ndim - 1)] * 2))
        assert same(made.swapaxes(one, other), model.swapaxes(one, other))
        assert same(isthmus.moveaxis(made, one, other), np.moveaxis(model, one, other))
        assert same(made.mT, model.swapaxes(-2, -1))
        half = order[: ndim // 2 + 1]
        places = data.draw(st.permutations(range(ndim)))[: len(half)]
        assert same(isthmus.moveaxis(made, half, places), np.moveaxis(model, half, places))
        assert same(isthmus.flip(made, axis=one), np.flip(model, one))
        assert same(isthmus.flip(made, axis=half), np.flip(model, tuple(half)))
    axis = data.draw(st.integers(-ndim - 1, ndim))
    assert same(isthmus.expand_dims(made, axis=axis), np.expand_dims(model, axis))
    assert same(isthmus.expand_dims(made, axis=(0, -1)), np.expand_dims(model, (0, -1)))


@given(views(), st.data())
def test_broadcasts(view: tuple[np.ndarray, list[Any]], data: Any) -> None:
    model, steps = view
    model, made = follow(model, steps), follow(array_of(model, *data.draw(WHERE)), steps)
    wide = tuple(
        data.draw(st.integers(0, 3)) if n == 1 and data.draw(st.booleans()) else n
        for n in model.shape
    )
    shape = (*data.draw(st.lists(st.integers(0, 3), max_size=2)), *wide)
    got = isthmus.broadcast_to(made, shape)
    assert same(got, np.broadcast_to(model, shape))
    assert got.read_only
    assert not got.flags.writeable
    assert got[...].read_only, "a view of it is none that may be written"
    with pytest.raises(isthmus.ReadOnlyError):
        got.fill(1)
    if model.shape and model.shape[-1] > 1:
        with pytest.raises(ValueError, match="does not broadcast"):
            isthmus.broadcast_to(made, (*shape[:-1], wide[-1] + 1))


@given(views(), PLAIN, WHERE)
def test_other_types(
    view: tuple[np.ndarray, list[Any]], name: str, where: tuple[Queue, str]
) -> None:
    """What NumPy rejects is rejected; aligned views that NumPy returns are returned."""
    model, steps = view
    model, made = follow(model, steps), follow(array_of(model, *where), steps)
    item = np.dtype(name).itemsize
    try:
        wanted = model.view(name)
    except (ValueError, TypeError):
        with pytest.raises(ValueError, match=r"bytes|axis|dimensions"):
            made.view(name)
        return
    steps_fit = all(
        s % item == 0 for s, n in zip(wanted.strides, wanted.shape, strict=True) if n > 1
    )
    if wanted.size and not (steps_fit and made.ptr % np.dtype(name).alignment == 0):
        with pytest.raises(ValueError, match="multiple"):
            made.view(name)
        return
    got = made.view(name)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    assert got.to_numpy().tobytes() == wanted.tobytes()


def test_types_by_bytes(q: Queue, kind: str) -> None:
    made, model = array_of(MODEL, q, kind), MODEL.copy()
    assert same(made.view("u1"), model.view("u1"))
    assert same(made.view("f8"), model.view("f8"))
    assert same(made.view("D"), model.view("D"))
    assert same(made.view(), model)
    assert made[..., 1::2].view("i4").offset == 36
    with pytest.raises(ValueError, match=r"contiguous last axis.*copy the array first"):
        made[..., ::2].view("u1")
    with pytest.raises(ValueError, match="0 dimensions"):
        made[0, 0, 0, ...].view("u1")
    with pytest.raises(ValueError, match="20 bytes"):
        made.reshape(24, 5).view("f8")
    with pytest.raises(ValueError, match=r"alignment of.*copy the array first"):
        made[..., 1:3].view("f8")
    assert made[..., 1:3].copy().view("f8").shape == (*model.shape[:-1], 1)
    with pytest.raises(TypeError):
        made.view("O")


@given(views(), st.data())
def test_flags_and_overlaps(view: tuple[np.ndarray, list[Any]], data: Any) -> None:
    model, steps = view
    ours = array_of(model, *data.draw(WHERE))
    one, seen = follow(ours, steps), follow(model, steps)
    assert one.flags.c_contiguous == seen.flags.c_contiguous == one.is_contiguous
    assert one.flags.f_contiguous == seen.flags.f_contiguous
    key = data.draw(nps.basic_indices(model.shape, allow_newaxis=False))
    beside = model[key]
    if isinstance(beside, np.ndarray):
        other = ours[key]
        assert isthmus.shares_memory(one, other) == np.shares_memory(seen, beside)
        if isthmus.shares_memory(one, other):
            assert isthmus.may_share_memory(one, other)


def test_flags(q: Queue, kind: str) -> None:
    made = array_of(MODEL, q, kind)
    assert made.is_contiguous
    assert made.flags["C_CONTIGUOUS"]
    assert made.flags["C"] == made.flags.contiguous == made.flags.forc
    assert made.T.flags["F"]
    assert made.T.flags.fnc
    assert made.flags["WRITEABLE"]
    assert not made[:, ::2].flags.forc
    assert "F_CONTIGUOUS : False" in repr(made.flags)
    with pytest.raises(KeyError, match="WRITEABLE"):
        made.flags["X"]
    assert isthmus.shares_memory(made[::2], made[1:])
    assert not isthmus.shares_memory(made[::2], made[1::2])
    assert isthmus.may_share_memory(made[::2], made[1::2])
    assert not isthmus.may_share_memory(made[:3], made[3:])
    assert not isthmus.may_share_memory(made, MODEL)
    assert isthmus.shares_memory(made, made.buffer)
    with pytest.raises(TypeError):
        isthmus.shares_memory(made, 5)


def test_overlaps_with_the_hosts(q: Queue, host_kind: str) -> None:
    made = array_of(MODEL, q, host_kind)
    seen = np.asarray(made)
    assert isthmus.shares_memory(made, seen[::-2])
    assert not isthmus.shares_memory(made[0], seen[1])


def test_negative_and_repeated_strides_by_hand(q: Queue, kind: str) -> None:
    made = array_of(MODEL, q, kind)
    back = Array(made.buffer, (6, 4), strides=(-80, 4), offset=32 + 400)
    assert same(back, MODEL[::-1, 0])
    again = Array(made.buffer, (3, 4), strides=(0, -4), offset=44)
    assert again.to_numpy().tolist() == [[3, 2, 1, 0]] * 3
    with pytest.raises(isthmus.OutOfRangeError, match="before"):
        Array(made.buffer, (6, 4), strides=(-80, 4), offset=396)
    with pytest.raises(isthmus.OutOfRangeError, match="outside the buffer"):
        Array(made.buffer, (2,), strides=(-4,), offset=512)
    with pytest.raises(isthmus.OutOfRangeError):
        Array(made.buffer, (3,), strides=(-(2**62),))
    with pytest.raises(isthmus.OutOfRangeError):
        Array(made.buffer, (3,), strides=(2**70,))


BAD_KEYS: list[tuple[Any, type[Exception], tuple[Any, ...]]] = [
    (6, IndexError, ("index 6", "axis 0", "size 6")),
    (-7, IndexError, ("index -7", "axis 0", "size 6")),
    ((0, 5), IndexError, ("index 5", "axis 1", "size 5")),
    ((..., -5), IndexError, ("index -5", "axis 2", "size 4")),
    ((0, 0, 4), IndexError, ("index 4", "axis 2", "size 4")),
    (2**70, IndexError, (2**70, "size 6")),
    ((0, 0, 0, 0), IndexError, ("3-dimensional", "4 were indexed")),
    ((None, 0, 0, 0, 0), IndexError, ("3-dimensional", "4 were indexed")),
    ((..., ...), IndexError, ("one ...",)),
    ((None,) * 62, IndexError, ("64 dimensions",)),
    (slice(None, None, 0), ValueError, ("zero",)),
    (slice("a", None), TypeError, ()),
    ("a", TypeError, ("str", "to_numpy")),
    (True, TypeError, ("bool",)),
    ([0, 1], TypeError, ("list",)),
    (1.0, TypeError, ("float",)),
    ((0, 0, 1.0), TypeError, ("float",)),
    (np.array([True] * 6), TypeError, ("ndarray",)),
]


@pytest.mark.parametrize(("key", "error", "parts"), BAD_KEYS)
@pytest.mark.host_only
def test_bad_keys(q: Queue, kind: str, key: Any, error: type[Exception], parts: Any) -> None:
    made = array_of(MODEL, q, kind)
    for use in (lambda: made[key], lambda: made.__setitem__(key, 1)):
        with pytest.raises(error) as raised:
            use()
        message_has(raised, parts)
    assert (made.to_numpy() == MODEL).all()


def array_at(ndim: int) -> Array:
    return Array(Buffer(4, queue=Queue(SIM)), (1,) * ndim)


BAD_AXES: list[tuple[str, Callable[[Array], object], type[Exception], str]] = [
    ("swapaxes", lambda a: a.swapaxes(0, 3), ValueError, "axis 3 .* 3 dim"),
    ("swapaxes low", lambda a: a.swapaxes(-4, 0), IndexError, "axis -4"),
    ("no axis", lambda a: a.swapaxes(0, 1.0), TypeError, "axis must be an integer"),  # type: ignore[arg-type]
    ("few", lambda a: a.transpose(0, 1), ValueError, "2 axes"),
    ("many", lambda a: a.transpose(0, 1, 2, 2), ValueError, "4 axes"),
    ("twice", lambda a: a.transpose(0, 1, 1), ValueError, "more than once"),
    ("twice, from the end", lambda a: a.transpose(0, 1, -2), ValueError, "more than once"),
    ("beyond", lambda a: a.transpose(0, 1, 3), ValueError, "axis 3"),
    ("huge", lambda a: a.transpose(0, 1, 2**70), ValueError, "out of bounds"),
    ("text", lambda a: a.transpose("abc"), TypeError, "axis"),  # type: ignore[arg-type]
    ("squeeze", lambda a: a.squeeze(0), ValueError, "size 6"),
    ("squeeze beyond", lambda a: a.squeeze(3), ValueError, "axis 3"),
    ("expand", lambda a: isthmus.expand_dims(a, axis=5), ValueError, "axis 5"),
    ("expand twice", lambda a: isthmus.expand_dims(a, axis=(0, 0)), ValueError, "more than once"),
    ("flip", lambda a: isthmus.flip(a, axis=3), ValueError, "axis 3"),
    ("move", lambda a: isthmus.moveaxis(a, (0, 1), 2), ValueError, "2 axes .* 1 position"),
    ("move beyond", lambda a: isthmus.moveaxis(a, 0, 3), ValueError, "axis 3"),
    ("matrix", lambda a: a[0, 0].mT, ValueError, "2 dimensions"),
    ("too deep", lambda a: isthmus.expand_dims(a, axis=tuple(range(62))), ValueError, "64"),
    ("broadcast", lambda a: isthmus.broadcast_to(a, (5, 4)), ValueError, "does not broadcast"),
    (
        "huge broadcast",
        lambda a: isthmus.broadcast_to(a[:, :1, :1], (2**40, 6, 2**40, 1)),
        isthmus.OutOfRangeError,
        "63 bits",
    ),
    ("negative", lambda a: isthmus.broadcast_to(a, (-1, 5, 4)), ValueError, "0 or more"),
    ("reshape", lambda a: a.reshape(7), ValueError, "120 elements cannot be reshaped"),
    ("reshape to two", lambda a: a.reshape(-1, -1), ValueError, "at most one may be -1"),
    ("reshape to -1", lambda a: a.reshape(-1, 7), ValueError, "cannot be reshaped"),
    ("reshape by a bad flag", lambda a: a.reshape(-1, copy=1), TypeError, "True or False"),  # type: ignore[arg-type]
    ("ravel", lambda a: a.T.ravel(), ValueError, "needs a copy"),
    ("no array", lambda _: isthmus.flip(MODEL), TypeError, "must be an Array, not numpy"),  # type: ignore[arg-type]
    ("never made", lambda _: isthmus.flip(Array.__new__(Array)), ValueError, "not called"),
]


@pytest.mark.parametrize(
    ("use", "error", "text"), [each[1:] for each in BAD_AXES], ids=[each[0] for each in BAD_AXES]
)
def test_bad_axes_and_shapes(
    use: Callable[[Array], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        use(array_of(MODEL, Queue(SIM), "device"))


def test_sixty_four_dimensions(q: Queue, kind: str) -> None:
    made = Array(Buffer(4, kind=kind, queue=q), (1,) * 64)
    made.fill(7)
    assert made.T[::-1].to_numpy().ravel().tolist() == [7]
    assert made.squeeze().shape == ()
    with pytest.raises(IndexError, match="64"):
        made[None]


def test_a_view_keeps_its_memory(q: Queue, kind: str) -> None:
    gc.collect()
    before = live()[0]
    view = array_of(MODEL, q, kind)[::-1].T[1:].reshape(3, 5, 6)
    gc.collect()
    assert live()[0] == before + 1
    assert (view.to_numpy() == MODEL[::-1].T[1:].reshape(3, 5, 6)).all()
    assert view.base is not None
    assert view.base.shape == SHAPE
    assert array_of(MODEL, q, kind).base is None


def test_a_shape_is_read_once() -> None:
    made = array_of(MODEL, Queue(SIM), "device").T
    assert made.reshape(iter((6, 20))).shape == (6, 20)
    assert made.reshape(iter((120,)), copy=True).shape == (120,)


def test_another_queue_is_a_view(q: Queue, kind: str) -> None:
    made = array_of(MODEL, q, kind)
    other = Queue(q.context)
    for seen in (
        made.on_queue(other),
        made[1:].on_queue(other),
        isthmus.asarray(made, queue=other),
    ):
        assert seen.base is made
        assert seen.queue == other


def test_no_other_flags() -> None:
    flags = array_of(MODEL, Queue(SIM), "device").flags
    for name in ("\ud800", "ALIGNED", 5, ("C",)):
        with pytest.raises(KeyError):
            flags[name]  # type: ignore[index]
