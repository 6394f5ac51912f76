# SPDX-License-Identifier: Apache-2.0
"""array[key] = value, copyto, copies to other dtypes, kinds and devices; compared with NumPy."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from array_support import (
    MODEL,
    NAMES,
    PLAIN,
    SHAPE,
    WHERE,
    array_of,
    follow,
    models,
    same,
    views,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sim

import isthmus
from isthmus import Queue

pytestmark = pytest.mark.sim_and_host
SIM = sim(effect="late")
HOST = Queue("host")
# These tests combine more choices than others and need more examples to cover them.
more_examples = settings(max_examples=max(150, settings.default.max_examples))
RULES = ("no", "safe", "same_kind", "unsafe")


def placed(model: np.ndarray, where: str) -> Any:
    """The model on a device, on another device or on the host, or as a NumPy array."""
    if where == "numpy":
        return model.copy()
    queue = {"device": Queue(SIM), "other": Queue(sim()), "host": HOST}[where]
    return array_of(model, queue, "host" if where == "host" else "device")


PLACES = st.sampled_from(["device", "other", "host", "numpy"])


@more_examples
@given(views(), PLAIN, PLACES, st.data())
def test_any_copy(view: tuple[np.ndarray, list[Any]], name: str, place: str, data: Any) -> None:
    """Any strides, dtypes and places, with broadcasting, compared with numpy.copyto."""
    model, steps = view
    made, target = array_of(model, *data.draw(WHERE)), model.copy()
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


@pytest.mark.every_backend
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
    """Assignment by key, compared with NumPy."""
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
    ("f4", 1j, TypeError, "converted to an element of float32"),
    ("f4", None, TypeError, "dtype must be"),
    ("f4", "1", TypeError, "dtype must be"),
    ("f4", object(), TypeError, "dtype must be"),
    ("f4", np.array(["2020"], "M8[D]"), TypeError, "dates"),
    ("f4", [1, 2, 3], ValueError, r"shape \(3,\) does not broadcast to the shape \(6, 5, 4\)"),
    ("f4", np.zeros((2, 6, 5, 4)), ValueError, "does not broadcast"),
    ("f4", [[1], [1, 2]], ValueError, "inhomogeneous"),
]


@pytest.mark.parametrize(("name", "value", "error", "text"), BAD_VALUES)
@pytest.mark.host_only
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


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_type_to_every_other(q: Queue, kind: str) -> None:
    for name, other in itertools.product(NAMES, NAMES):
        model = (np.arange(24) % 7).astype(name).reshape(4, 6)
        made = array_of(model, q, kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = model[::-1].astype(other)
        got = made[::-1].astype(other)
        assert same(got, wanted), other
        assert (got.kind, got.queue) == (kind, q)
        for rule in RULES:
            if not np.can_cast(model.dtype, other, rule):
                with pytest.raises(TypeError, match=f"to the casting rule '{rule}'"):
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
    with pytest.raises(TypeError, match="converted to an element of int32"):
        isthmus.copyto(array_of(MODEL.astype("i4"), q, "device"), 1.5)


NUMBERS = [True, 5, 1.5, 1j, np.True_, np.int8(3), np.int64(5), np.float32(1), np.float64(1)]
INTO = ["?", "u1", "i4", "i8", "f4", "f8", "g", "F", "D"]


@pytest.mark.parametrize("rule", ["no", "safe", "same_kind"])
def test_numbers_follow_the_casting_rule(rule: Any) -> None:
    for name, number in itertools.product(INTO, NUMBERS):
        model, made = np.zeros(2, name), isthmus.zeros(2, name, kind="host", device="host")
        taken = True
        try:
            np.copyto(model, number, casting=rule)
        except TypeError:
            taken = False
        with contextlib.nullcontext() if taken else pytest.raises(TypeError):
            isthmus.copyto(made, number, casting=rule)
        assert (made.to_numpy() == model).all()


def test_a_fill_takes_any_number_of_the_kind() -> None:
    flags, small = (isthmus.zeros(2, name, kind="host", device="host") for name in ("?", "u1"))
    flags.fill(5)
    small.fill(np.int64(7))
    assert (flags.tolist(), small.tolist()) == ([True, True], [7, 7])


@pytest.mark.host_only
@pytest.mark.parametrize("given", [[1, 2, 70000], (1, -32769, 3), [[0, 0, 1 << 40]]])
def test_integers_of_a_list_that_do_not_fit(q: Queue, kind: str, given: Any) -> None:
    made = isthmus.zeros((2, 3), "i2", kind=kind, queue=q)
    with pytest.raises(OverflowError):
        made[...] = given
    with pytest.raises(OverflowError):
        isthmus.copyto(made, given)
    assert made.tolist() == [[0] * 3] * 2
    made[...] = [1.9, True, -2]
    assert made.tolist() == [[1, 1, -2]] * 2
