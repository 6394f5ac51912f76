"""array[key] = value, copyto, copies to other types, kinds and devices; against NumPy."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from array_support import (
    MODEL,
    NAMES,
    PLAIN,
    SHAPE,
    SHAPES,
    array_of,
    follow,
    models,
    same,
    views,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from support import sim

import isthmus
from isthmus import Array, Buffer, Event, Queue

if TYPE_CHECKING:
    from collections.abc import Callable

SIM = sim(effect="late")
HOST = Queue("host")
RULES = ("no", "safe", "same_kind", "unsafe")


def placed(model: np.ndarray, where: str) -> Any:
    """The model on a device, another device, the host; or as it is."""
    if where == "numpy":
        return model.copy()
    queue = {"device": Queue(SIM), "other": Queue(sim()), "host": HOST}[where]
    return array_of(model, queue, "host" if where == "host" else "device")


PLACES = st.sampled_from(["device", "other", "host", "numpy"])


@settings(max_examples=300, deadline=None)
@given(views(), PLAIN, PLACES, st.data())
def test_any_copy(view: tuple[np.ndarray, list[Any]], name: str, place: str, data: Any) -> None:
    """Of any strides, types and places, broadcast, against numpy.copyto."""
    model, steps = view
    made, target = array_of(model, Queue(SIM), "device"), model.copy()
    seen, ours = follow(target, steps), follow(made, steps)
    if any(n > 1 and s == 0 for n, s in zip(seen.shape, seen.strides, strict=True)):
        return
    dropped = data.draw(st.integers(0, seen.ndim))
    shape = [data.draw(st.sampled_from([n, 1])) for n in seen.shape[dropped:]]
    axes = data.draw(st.permutations(range(len(shape))))
    dense = models(data.draw, tuple(shape[axis] for axis in axes), name)
    back = np.argsort(axes)
    other = placed(dense, place)
    source, given_source = dense.transpose(back), other.transpose(back)
    rule = data.draw(st.sampled_from(RULES))
    if not np.can_cast(source.dtype, seen.dtype, "no" if rule == "no" else rule):
        with pytest.raises(TypeError, match=f"casting rule '{rule}'"):
            isthmus.copyto(ours, given_source, casting=rule)
        assert np.array_equal(made.to_numpy(), model)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.copyto(seen, source, casting=rule)
    isthmus.copyto(ours, given_source, casting=rule)
    assert np.array_equal(made.to_numpy(), target)


@settings(max_examples=200, deadline=None)
@given(SHAPES, st.data())
def test_overlapping_views(shape: tuple[int, ...], data: Any) -> None:
    model = models(data.draw, shape or (3,), "i4")
    queue, kind = (Queue(SIM), "device") if data.draw(st.booleans()) else (HOST, "host")
    made = array_of(model, queue, kind)
    key = data.draw(nps.basic_indices(model.shape, allow_newaxis=False))
    if not isinstance(model[key], np.ndarray):
        return
    other = data.draw(nps.basic_indices(model.shape, allow_newaxis=False))
    for one, two in ((key, other), (..., (slice(None, None, -1),) * model.ndim)):
        if not isinstance(model[two], np.ndarray) or model[one].shape != model[two].shape:
            continue
        model[one] = model[two]
        made[one] = made[two]
        assert np.array_equal(made.to_numpy(), model)


def test_shifts_in_place(q: Queue, kind: str) -> None:
    made, model = array_of(MODEL, q, kind), MODEL.copy()
    for to, of in (
        ((slice(1, None),), (slice(None, -1),)),
        ((..., slice(None, -1)), (..., slice(1, None))),
        ((slice(None, None, -1),), (slice(None),)),
    ):
        made[to] = made[of]
        model[to] = model[of].copy()
        assert (made.to_numpy() == model).all()
    made.copy_from(made[:, ::-1])
    assert (made.to_numpy() == model[:, ::-1]).all()


VALUES: list[tuple[str, Any]] = [
    *(
        ("f4", value)
        for value in (3, 2.5, True, np.float64(0.5), np.int8(-3), np.float16(2), 1e300)
    ),
    *(("i2", value) for value in (-3, 2.9, -2.9, False, np.uint8(7), np.float32(3.7), np.array(5))),
    *(("u1", value) for value in (255, 254.9, np.True_)),
    *(("?", value) for value in (0, 5, 0.5, np.float32(0))),
    *(("F", value) for value in (1, 2.5, 3 - 4j, np.complex128(1j), np.float32(2))),
    *(("D", value) for value in (1j, 2**70)),
    *(("f2", value) for value in (0.1, 70000, np.float64(1e-7))),
    *(("g", value) for value in (0.1, 3)),
    *(("f8", value) for value in ([1, 2, 3, 4], [[1], [2], [3], [4], [5]], [2.5], [[[9]]])),
    *(
        ("i4", value)
        for value in (np.arange(4), np.arange(4.0), range(4), np.arange(4, dtype=">i2"))
    ),
    *(("i4", value) for value in (bytearray(b"\1\2\3\4"), np.float32([[[1.5]]]))),
]


@pytest.mark.parametrize(("name", "value"), VALUES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_assignments(q: Queue, kind: str, name: str, value: Any) -> None:
    """By key, as NumPy assigns."""
    for key in (..., slice(1, 3), (slice(None, None, -2), ..., slice(None)), (2, 1), slice(3, 3)):
        model = (np.arange(120) % 7).astype(name).reshape(SHAPE)
        made = array_of(model, q, kind)
        plain = np.array(value) if isinstance(value, (list, range)) else value
        try:
            model[key] = plain
        except ValueError:
            with pytest.raises(ValueError, match="does not broadcast"):
                made[key] = value
            continue
        made[key] = value
        assert np.array_equal(made.to_numpy(), model), key


BAD_VALUES: list[tuple[str, Any, type[Exception], str]] = [
    ("u1", 256, OverflowError, "256 does not fit in uint8"),
    ("u1", -1, OverflowError, "-1 does not fit"),
    ("i1", 128.5, OverflowError, "128 does not fit in int8"),
    ("i8", 2**63, OverflowError, "does not fit"),
    ("i4", float("nan"), ValueError, "NaN"),
    ("i4", float("inf"), OverflowError, "infinity"),
    ("f8", 10**400, OverflowError, "does not fit"),
    ("f4", 1j, TypeError, "no value for elements of float32"),
    ("f4", np.complex64(1), TypeError, "no value"),
    ("f4", None, TypeError, "dtype must be"),
    ("f4", "1", TypeError, "dtype must be"),
    ("f4", object(), TypeError, "dtype must be"),
    ("f4", np.array(["2020"], "M8[D]"), TypeError, "dates"),
    ("f4", [1, 2, 3], ValueError, r"shape \(3,\) does not broadcast to the shape \(6, 5, 4\)"),
    ("f4", np.zeros((2, 6, 5, 4)), ValueError, "does not broadcast"),
    ("f4", [[1], [1, 2]], ValueError, "inhomogeneous"),
]


@pytest.mark.parametrize(("name", "value", "error", "text"), BAD_VALUES)
def test_bad_assignments(
    q: Queue, kind: str, name: str, value: Any, error: type[Exception], text: str
) -> None:
    model = (np.arange(120) % 7).astype(name).reshape(SHAPE)
    made = array_of(model, q, kind)
    with pytest.raises(error, match=text):
        made[...] = value
    assert np.array_equal(made.to_numpy(), model)


def test_deleting(q: Queue) -> None:
    with pytest.raises(TypeError, match="cannot be deleted"):
        del array_of(MODEL, q, "device")[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_type_to_every_other(q: Queue, kind: str, name: str) -> None:
    model = (np.arange(24) % 7).astype(name).reshape(4, 6)
    made = array_of(model, q, kind)
    for other in NAMES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = model[::-1].astype(other)
        got = made[::-1].astype(other)
        assert same(got, wanted), other
        assert (got.kind, got.queue) == (kind, q)
        for rule in RULES:
            if not np.can_cast(model.dtype, other, rule):
                with pytest.raises(TypeError, match=f"by the casting rule '{rule}'"):
                    made.astype(other, casting=rule)
            else:
                assert same(made[::-1].astype(other, casting=rule), wanted)


def test_casting_names(q: Queue) -> None:
    made = array_of(MODEL, q, "device")
    isthmus.copyto(made, MODEL + 1, casting="equiv")
    assert (made.to_numpy() == MODEL + 1).all()
    with pytest.raises(ValueError, match="'same_kind' or 'unsafe', not 'nonsense'"):
        isthmus.copyto(made, MODEL, casting="nonsense")
    with pytest.raises(TypeError, match="must be a str"):
        isthmus.copyto(made, MODEL, casting=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="casting rule 'same_kind'"):
        isthmus.copyto(array_of(MODEL.astype("i4"), q, "device"), MODEL)
    with pytest.raises(TypeError, match="no value for elements of int32"):
        isthmus.copyto(array_of(MODEL.astype("i4"), q, "device"), 1.5)


def test_copies_out(q: Queue, kind: str) -> None:
    """Destinations of others."""
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
    """An array of another library's, of which DLPack alone is known."""

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
    """With strides of any sign, as source and as destination."""
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


def test_events_and_what_they_keep(q: Queue, kind: str, gate: Event) -> None:
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
    for use in (lambda: made.__setitem__(..., np.zeros((4, 4))), lambda: isthmus.copyto(made, 1)):
        with pytest.raises(isthmus.InvalidArgumentError):
            use()


def test_a_freed_array(q: Queue, kind: str) -> None:
    made = array_of(MODEL, q, kind)
    view = made[::-1]
    made.buffer.free()
    uses: list[Callable[[], object]] = [
        lambda: made.__setitem__(..., 1),
        lambda: view.__setitem__(0, MODEL[0]),
        lambda: isthmus.copyto(MODEL.copy(), view),
        lambda: view.copy(),
        lambda: view.astype("f8"),
        lambda: view.tolist(),
        lambda: view.view("i4"),
        lambda: made.reshape(-1, copy=True),
    ]
    if kind != "device":
        uses += [lambda: view[0, 0, 0], lambda: view.__setitem__((0, 0, 0), 1)]
    for use in uses:
        with pytest.raises(isthmus.ClosedError):
            use()
    assert view.T.shape == SHAPE[::-1]


def test_devices_without_a_way_between_them(q: Queue) -> None:
    """Their contexts are others': copies go by the host."""
    made = array_of(MODEL, Queue(sim()), "device")
    other = array_of(np.zeros(SHAPE, "f8"), q, "device")
    other[:, ::-1] = made
    assert (other.to_numpy()[:, ::-1] == MODEL).all()
    made[::2, ..., ::-1] = other[:3]
    model = MODEL.copy()
    model[::2, ..., ::-1] = MODEL[:3, ::-1]
    assert (made.to_numpy() == model).all()
    with pytest.raises(isthmus.WrongContextError):
        made.on_queue(q)
