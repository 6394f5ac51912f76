# SPDX-License-Identifier: Apache-2.0
"""Values and arrays convert to elements as in NumPy: results, errors and warnings are compared.

Where this library is stricter by design, as documented, a separate test covers the difference:
integers must fit, text and dates are no numbers, NaN is no integer, and asarray rejects foreign
byte orders.
"""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import isthmus

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    from numpy.exceptions import ComplexWarning
except ImportError:  # NumPy before 1.25
    from numpy import ComplexWarning

HOST: dict[str, Any] = {"kind": "host", "device": "host"}
TARGETS = ["?", "i2", "u1", "i8", "f2", "f4", "f8", "g", "F", "D", "G"]
NUMBERS: dict[str, Any] = {
    "True": True,
    "3": 3,
    "2.5": 2.5,
    "1.5+2j": 1.5 + 2j,
    "2+0j": 2 + 0j,
    **{
        f"{type(one).__name__}": one
        for one in (
            np.True_, np.int8(3), np.uint64(3), np.float16(2.5), np.float32(2.5), np.float64(2.5),
            np.longdouble(2.5), np.complex64(1 + 2j), np.complex128(1 + 2j), np.clongdouble(1 + 2j),
        )
    },
}  # fmt: skip
MORE: dict[str, Any] = {
    "mixed": [1, 2.5],
    "mixed with complex": [1, 2.5, 3j],
    "nested": [[1, 2], [3, 4]],
    "nested complex": [[1, 2], [3, 4j]],
    "range": range(1, 4),
    "decimals": [Decimal("1.5"), Decimal(2)],
    "fractions": [Fraction(3, 2)],
    "a list of an array": [np.arange(3.0)],
    "a list of a complex array": [np.arange(3) * 1j],
    "NaN": [float("nan")],
    "infinity": [float("inf")],
    "an integer for floats": [2**70],
    "other order": np.arange(3, dtype=">i4"),
    "other order, complex": (np.arange(3) * 1j).astype(">c16"),
}
SOURCES: dict[str, Any] = {
    **NUMBERS,
    **{f"[{name}]": [one] for name, one in NUMBERS.items()},
    **{f"({name},)": (one, one) for name, one in NUMBERS.items()},
    **{f"array of {name}": np.array([one, one]) for name, one in NUMBERS.items()},
    **{f"array of no dimensions of {name}": np.array(one) for name, one in NUMBERS.items()},
    **MORE,
}


def outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """The error class, or the elements and whether discarding an imaginary part warned."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            got = call()
        except Exception as error:
            kinds = (OverflowError, TypeError, ValueError)
            return (next((kind for kind in kinds if isinstance(error, kind)), type(error)),)
    warned = any(issubclass(each.category, ComplexWarning) for each in raised)
    return got.dtype, got.shape, got.tolist(), warned


def same(ours: tuple[Any, ...], numpys: tuple[Any, ...]) -> bool:
    return repr(ours) == repr(numpys)  # by repr, since NaN != NaN


def filled(made: Any, value: Any, key: Any) -> Any:
    made[key] = value
    return made


def copied(library: Any, made: Any, value: Any, rule: Any) -> Any:
    library.copyto(made, value, casting=rule)
    return made


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_asarray(source: Any) -> None:
    if isinstance(source, np.ndarray) and not source.dtype.isnative:
        with pytest.raises(TypeError, match="native byte order"):
            isthmus.asarray(source, **HOST)
        return
    for target in TARGETS:
        wanted = outcome(lambda target=target: np.asarray(source, target))
        got = outcome(lambda target=target: isthmus.asarray(source, target, **HOST))
        assert same(got, wanted), target


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_assignments(source: Any) -> None:
    try:
        shape = np.shape(source) or (2,)
    except ValueError:
        shape = (1,)
    for target in TARGETS:
        wanted = outcome(lambda target=target: filled(np.zeros(shape, target), source, ...))
        got = outcome(
            lambda target=target: filled(isthmus.zeros(shape, target, **HOST), source, ...)
        )
        assert same(got, wanted), target


@pytest.mark.parametrize("source", NUMBERS.values(), ids=NUMBERS)
def test_assignments_to_an_element(source: Any) -> None:
    for target in TARGETS:
        wanted = outcome(lambda target=target: filled(np.zeros(2, target), source, 0))
        got = outcome(lambda target=target: filled(isthmus.zeros(2, target, **HOST), source, 0))
        assert same(got, wanted), target


class Only:
    """Converts to a number by one method only."""

    def __init__(self, value: Any) -> None:
        self.value = value


def only(method: str, value: Any) -> Any:
    return type(f"Only{method}", (Only,), {method: lambda self: self.value})(value)


UNTYPED: dict[str, Any] = {
    "Decimal": Decimal("2.5"),
    "Decimal of NaN": Decimal("NaN"),
    "large Decimal": Decimal("1e400"),
    "negative Decimal": Decimal(-1),
    "Fraction": Fraction(5, 2),
    "large Fraction": Fraction(10**30),
    "__float__": only("__float__", 2.5),
    "__complex__": only("__complex__", 2.5 + 1j),
    "__index__": only("__index__", 3),
    "__int__": only("__int__", 3),
    "__float__ raises": only("__float__", "no float"),
}


@pytest.mark.parametrize("source", UNTYPED.values(), ids=UNTYPED)
def test_numbers_without_a_type(source: Any, dev: isthmus.Device, host_kind: str) -> None:
    """Converted by their methods, as NumPy does."""
    for target in TARGETS:
        for key in (0, ..., slice(1, None)):
            wanted = outcome(
                lambda target=target, key=key: filled(np.zeros(3, target), source, key)
            )
            made = isthmus.zeros(3, target, kind=host_kind, device=dev)
            got = outcome(lambda made=made, key=key: filled(made, source, key))
            assert same(got, wanted), (target, key)


@pytest.mark.parametrize("source", UNTYPED.values(), ids=UNTYPED)
def test_fills_with_numbers_without_a_type(source: Any) -> None:
    """As NumPy fills, except that integers accept no number that may have a fraction."""

    def fill(made: Any) -> Any:
        made.fill(source)
        return made

    is_integer = hasattr(source, "__index__")
    for target in TARGETS:
        wanted = outcome(lambda target=target: fill(np.zeros(3, target)))
        if np.dtype(target).kind in "?biu" and not is_integer:
            wanted = (TypeError,)
        assert same(outcome(lambda target=target: fill(isthmus.zeros(3, target, **HOST))), wanted)
        full = outcome(lambda target=target: isthmus.full(3, source, target, **HOST))
        assert same(full, wanted), target


@pytest.mark.parametrize("rule", ["no", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_copyto(source: Any, rule: Any) -> None:
    array = np.asarray(source)
    of_list = isinstance(source, (list, tuple))
    if rule == "no" and not array.dtype.isnative:
        return  # would need rule "equiv" here
    shape = array.shape or (2,)
    for target in TARGETS:
        model = np.dtype(target)
        if of_list and array.dtype.kind in "iu" and model.kind in "iu":
            continue  # a list's integers are converted straight to the destination's dtype
        if array.dtype.kind in "OM" or (array.dtype.kind == "f" and not np.isfinite(array).all()):
            continue
        wanted = outcome(lambda target=target: copied(np, np.zeros(shape, target), source, rule))
        made = isthmus.zeros(shape, target, **HOST)
        assert same(outcome(lambda made=made: copied(isthmus, made, source, rule)), wanted), target


NUMBERLESS: dict[str, Any] = {
    "text": "1.5",
    "text of an integer": "7",
    "text of no number": "one",
    "NumPy's text": np.str_("1.5"),
    "a list of text": ["1.5", "2"],
    "an array of text": np.array(["3", "4"]),
    "a list of bytes": [b"1.5", b"2"],
    "an array of bytes": np.array([b"3", b"4"]),
    "datetime": datetime.datetime(2020, 1, 1),
    "date": datetime.date(2020, 1, 1),
    "timedelta": datetime.timedelta(1),
    "datetime64": np.datetime64(5, "s"),
    "timedelta64": np.timedelta64(5, "s"),
    "an array of datetime64": np.array([5, 6], "M8[s]"),
    "an array of timedelta64": np.array([5, 6], ">m8[s]"),
    "None": None,
    "a list with None": [None, 1],
    "an object": object(),
    "a list of objects": [Decimal("1.5"), object()],
    "a record": np.zeros(2, [("field", "f4")]),
    "records": np.zeros(2, [("one", "f4"), ("two", "f4")]),
    "void": np.zeros(2, "V4"),
}
OBJECTS: dict[str, Any] = {
    "objects": np.array([Decimal("1.5"), Fraction(5, 2)], object),
    "integers as objects": np.array([1, 2], object),
    "large integers as objects": np.array([2**70, 1], object),
    "complex objects": np.array([1.5j, 1], object),
    "text as objects": np.array(["1.5", "2"], object),
    "None as an object": np.array([None, 1], object),
    "NaN as an object": np.array([float("nan"), 1], object),
    "an object array of no dimensions": np.array(Decimal("1.5"), object),
    "an object array of text": np.array("no number", object),
    "no number as an object": np.array([object(), 1], object),
    "an array of arrays": np.array([np.array(1.5), None], object),
}
WITHOUT_A_TYPE = UNTYPED | NUMBERLESS | OBJECTS


@pytest.mark.parametrize("rule", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("source", WITHOUT_A_TYPE.values(), ids=WITHOUT_A_TYPE)
def test_copyto_of_unsupported_types(source: Any, rule: Any) -> None:
    for target in TARGETS:
        wanted = outcome(lambda target=target: copied(np, np.zeros(2, target), source, rule))
        made = isthmus.zeros(2, target, **HOST)
        assert same(outcome(lambda made=made: copied(isthmus, made, source, rule)), wanted), target


@pytest.mark.parametrize("source", OBJECTS.values(), ids=OBJECTS)
def test_assignments_of_objects(source: Any) -> None:
    for target in TARGETS:
        for key in (..., slice(None), 0):
            if key == 0 and source.ndim:
                continue
            wanted = outcome(
                lambda target=target, key=key: filled(np.zeros(2, target), source, key)
            )
            made = isthmus.zeros(2, target, **HOST)
            got = outcome(lambda made=made, key=key: filled(made, source, key))
            assert same(got, wanted), (target, key)


def test_bytes_are_an_array_of_them() -> None:
    """By the buffer protocol, as elsewhere in the library; NumPy treats them as text."""
    for source in (b"15", bytearray(b"15"), memoryview(b"15")):
        for rule in ("safe", "unsafe"):
            made = copied(isthmus, isthmus.zeros(2, "f4", **HOST), source, rule)
            assert made.tolist() == [49, 53]


def test_a_value_that_does_not_convert_changes_nothing() -> None:
    made = isthmus.ones(2, **HOST)
    for source in (["1", "one"], np.array([2, object()], object), datetime.date(2020, 1, 1)):
        with pytest.raises((TypeError, ValueError)):
            isthmus.copyto(made, source, casting="unsafe")
    assert made.tolist() == [1, 1]


@pytest.mark.parametrize("name", TARGETS)
def test_astype(name: str) -> None:
    model = np.arange(6).astype(name).reshape(2, 3)
    for target in TARGETS:
        made = isthmus.asarray(model, **HOST)
        wanted = outcome(lambda target=target: model.astype(target))
        assert same(outcome(lambda target=target, made=made: made.astype(target)), wanted), target


@pytest.mark.parametrize("kind", ["host", "shared", "device"])
def test_bfloat16(kind: str) -> None:
    """NumPy lacks it, so the model is float32."""
    for source in SOURCES.values():
        if isinstance(source, np.ndarray) and source.dtype.byteorder == ">":
            continue
        shape = np.shape(source) or (2,)
        for make, model in (
            (lambda source=source: isthmus.asarray(source, "bfloat16", kind=kind, device="host"),
             lambda source=source: np.asarray(source, "f4")),
            (lambda source=source, shape=shape:
                filled(isthmus.zeros(shape, "bfloat16", kind=kind, device="host"), source, ...),
             lambda source=source, shape=shape: filled(np.zeros(shape, "f4"), source, ...)),
        ):  # fmt: skip
            assert same(outcome(make)[1:], outcome(model)[1:]), source
            assert len(outcome(make)) == len(outcome(model))


def test_all_float16_numbers_are_those_of_numpy() -> None:
    model = np.arange(2**16, dtype="u2").view("f2")
    made = isthmus.asarray(model, **HOST)
    np.testing.assert_array_equal(made.tolist(), model.astype("f8"))
    with isthmus.allow_scalar():
        assert all(made[i] == model[i] for i in range(0, 2**16, 7) if not np.isnan(model[i]))
    np.testing.assert_array_equal(made.astype("f4").to_numpy(), model.astype("f4"))


@pytest.mark.parametrize("source_type", ["f4", "f8"])
def test_rounding_to_float16_is_that_of_numpy(source_type: str) -> None:
    """Random numbers of every magnitude, the halfway points, and numbers next to these.

    Not of long double, which NumPy rounds twice, first to float64.
    """
    random = np.random.default_rng(3)
    halves = np.arange(0x7C00, dtype="u2").view("f2").astype(source_type)
    middles = (halves[:-1] + halves[1:]) / 2
    mantissas = random.uniform(-2, 2, 100_000).astype(source_type)
    source = np.concatenate(
        (
            np.ldexp(mantissas, random.integers(-30, 20, 100_000)),
            *(sign * np.nextafter(middles, limit) for sign in (1, -1) for limit in (0, np.inf)),
            middles,
            [65519.99, 65520, 1e30, np.inf, -np.inf, np.nan, 0.0, -0.0],
        )
    ).astype(source_type)
    with np.errstate(over="ignore"):
        wanted = source.astype("f2").view("u2")
    got = isthmus.asarray(source, **HOST).astype("f2").to_numpy().view("u2")
    np.testing.assert_array_equal(got, wanted)


def test_the_callers_line_is_warned_of() -> None:
    model = np.ones(2, "D")
    made = isthmus.asarray(model, **HOST)
    real = isthmus.zeros(2, **HOST)
    for call in (
        lambda: isthmus.asarray(model, "f4", **HOST),
        lambda: isthmus.array(made, "f4"),
        lambda: made.astype("i4"),
        lambda: isthmus.copyto(real, model, casting="unsafe"),
        lambda: real.__setitem__(..., made),
        lambda: real.__setitem__(0, model[0]),
    ):
        with pytest.warns(ComplexWarning, match="discards the imaginary part") as raised:
            call()
        assert [each.filename for each in raised] == [__file__]


def test_a_warning_that_is_an_error_changes_nothing() -> None:
    made = isthmus.zeros(2, **HOST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in (np.ones(2, "D"), isthmus.ones(2, "D", **HOST), np.complex64(1)):
            with pytest.raises(ComplexWarning):
                made[...] = source
    assert made.tolist() == [0, 0]


STRICTER: list[tuple[str, Any, type[Exception]]] = [
    ("u1", np.int64(300), OverflowError),
    ("u1", np.float64(300.5), OverflowError),
    ("i2", np.float64("nan"), ValueError),
    ("f4", "1.5", TypeError),
    ("f4", ["1.5"], TypeError),
    ("f4", None, TypeError),
    ("f4", np.str_("1.5"), TypeError),
    ("f4", np.array(["1.5"]), TypeError),
    ("i8", np.datetime64(5, "s"), TypeError),
    ("i8", np.array([5], "m8[s]"), TypeError),
    ("?", datetime.date(2020, 1, 1), TypeError),
]


@pytest.mark.parametrize(("target", "source", "error"), STRICTER)
def test_where_it_is_stricter(target: str, source: Any, error: type[Exception]) -> None:
    made = isthmus.ones(1, target, **HOST)
    for key in (..., 0):
        with pytest.raises(error):
            made[key] = source
    assert made.tolist() == [1]


def test_fills_reject_values_that_would_warn() -> None:
    """NumPy's full discards the imaginary part with a warning."""
    for value in (1j, np.complex64(1j)):
        with pytest.raises(TypeError):
            isthmus.full(3, value, "f4", **HOST)
        with pytest.raises(TypeError):
            isthmus.ones(3, "f4", **HOST).fill(value)
