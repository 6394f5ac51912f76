# SPDX-License-Identifier: Apache-2.0
"""Zero-dimensional arrays of other libraries, and lists of them, where a number is expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_foreign_sources import HOST, ByAttribute, ByDlpack, ByNumpy, BySycl, NotANumber

import isthmus
from isthmus import Array, Queue, UnifiedBuffer


class Refusing(BySycl):
    """Like arrays of dpnp and CuPy, which convert to NumPy only by an explicit call."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use .asnumpy()")


class Keeping(ByAttribute):
    def __init__(self, of: Array) -> None:
        super().__init__(of)
        self.of = of


WRAPPERS = pytest.mark.parametrize(
    "wrap", [Refusing, BySycl, ByDlpack, ByNumpy, Keeping, lambda of: of, Array.to_numpy]
)


def number(value: Any, dtype: Any) -> Array:
    return isthmus.full((), value, dtype, **HOST)


@WRAPPERS
@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "c8", "?", "u1"])
def test_full(wrap: Any, dtype: str) -> None:
    given = wrap(number(1, dtype))
    for made in (
        isthmus.full(4, given, **HOST),
        isthmus.full(4, given, dtype, **HOST),
        isthmus.full_like(np.zeros(4, dtype), given, **HOST),
    ):
        assert (made.dtype, made.tolist()) == (np.dtype(dtype), [1] * 4)


@WRAPPERS
def test_numbers_that_fit(wrap: Any) -> None:
    """An integer of any width and sign is treated like a Python integer."""
    given = wrap(number(200, "i8"))
    for dtype in ("u1", "i2", "u8", "f4", "c16", "?"):
        made = isthmus.full(3, given, dtype, **HOST)
        assert made.tolist() == [np.array(200).astype(dtype).item()] * 3
    made = isthmus.zeros(3, "u1", **HOST)
    made.fill(given)
    made[1] = wrap(number(7, "i8"))
    made[2:] = wrap(number(8, "f8"))
    assert made.tolist() == [200, 7, 8]


@WRAPPERS
@pytest.mark.parametrize(
    ("value", "dtype", "into", "error"),
    [
        (300, "i8", "u1", OverflowError),
        (-1, "i4", "u8", OverflowError),
        (1.5, "f8", "i4", TypeError),
        (1j, "c8", "f4", TypeError),
    ],
)
def test_numbers_that_do_not(wrap: Any, value: Any, dtype: str, into: str, error: Any) -> None:
    made = isthmus.ones(3, into, **HOST)
    with pytest.raises(error):
        made.fill(wrap(number(value, dtype)))
    with pytest.raises(error):
        isthmus.full(3, wrap(number(value, dtype)), into, **HOST)
    assert made.tolist() == [1] * 3


@WRAPPERS
def test_more_than_one_is_no_number(wrap: Any) -> None:
    with pytest.raises(ValueError, match="one value, not an array"):
        isthmus.full(3, wrap(isthmus.ones((1, 2), **HOST)), **HOST)


def test_of_a_device(q: Queue, kind: str) -> None:
    given = isthmus.full((), 5, "i8", kind=kind, queue=q)
    made = isthmus.full(3, given, kind=kind, queue=q)
    assert (made.dtype, made.to_numpy().tolist()) == (np.dtype("i8"), [5] * 3)
    made = isthmus.full(3, given, "u1", kind=kind, queue=q)
    assert made.to_numpy().tolist() == [5] * 3


@WRAPPERS
@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_lists(wrap: Any, dtype: str) -> None:
    one, two = (wrap(number(each, dtype)) for each in (1, 2))
    for source in ([one, two], (one, two)):
        made = isthmus.asarray(source, **HOST)
        assert made.tolist() == [1, 2]
    assert isthmus.asarray([[one, two], [two, 4]], "f4", **HOST).tolist() == [[1, 2], [2, 4]]
    made = isthmus.zeros(2, "f8", **HOST)
    made[...] = [two, one]
    assert made.tolist() == [2, 1]
    isthmus.copyto(made, [one, two])
    assert made.tolist() == [1, 2]
    unified = UnifiedBuffer(2, dtype, device="host")
    unified.copy_from([two, one])
    assert unified.host.tolist() == [2, 1]


@WRAPPERS
def test_lists_keep_the_type_of_their_items(wrap: Any) -> None:
    assert isthmus.asarray([wrap(number(1, "f4"))] * 2, **HOST).dtype == np.float32


def test_what_an_item_raises_is_the_cause() -> None:
    for source in ([NotANumber()], [[1.0, NotANumber()]]):
        with pytest.raises(TypeError) as raised:
            isthmus.asarray(source, "f4", **HOST)
        assert raised.value.__cause__ is not None


def test_lists_that_hold_themselves() -> None:
    own: list[Any] = [1]
    own.append(own)
    with pytest.raises((TypeError, ValueError)):
        isthmus.asarray(own, **HOST)


def test_of_dpctl() -> None:
    tensor = pytest.importorskip("dpctl.tensor")
    one = tensor.asarray(3, dtype="i4")
    made = isthmus.full(2, one, **HOST)
    assert (made.dtype, made.tolist()) == (np.dtype("i4"), [3, 3])
    assert isthmus.asarray([one, one], **HOST).tolist() == [3, 3]


def test_of_torch() -> None:
    torch = pytest.importorskip("torch")
    made = isthmus.full(2, torch.tensor(3.0), **HOST)
    assert (made.dtype, made.tolist()) == (np.dtype("f4"), [3, 3])
    made[0] = torch.tensor(4)
    made.fill(torch.tensor(5))
    assert isthmus.asarray([torch.tensor(3), torch.tensor(4)], **HOST).tolist() == [3, 4]
