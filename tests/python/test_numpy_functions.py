# SPDX-License-Identifier: Apache-2.0
"""Operators and NumPy's functions on arrays, buffers and unified buffers."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import filled

import isthmus
from isthmus import Array, Buffer, PortabilityWarning, Queue, UnifiedBuffer
from isthmus._absent_methods import _COPIES, _MATHEMATICS

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = np.arange(1, 17, dtype=np.int32).reshape(4, 4)
OTHER = MODEL[::-1] % 5 + 1
BINARY = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift"),
    *("and_", "or_", "xor", "eq", "ne", "lt", "le", "gt", "ge"),
)
IN_PLACE = (
    "iadd",
    "isub",
    "imul",
    "ifloordiv",
    "imod",
    "ilshift",
    "irshift",
    "iand",
    "ior",
    "ixor",
)
UNARY = ("neg", "pos", "abs", "invert")
NUMPY: dict[str, Callable[[Any], Any]] = {
    "array_equal": lambda x: np.array_equal(x, MODEL),
    "array_equiv": lambda x: np.array_equiv(MODEL, x),
    "allclose": lambda x: np.allclose(x, MODEL),
    "sum": np.sum,
    "max": np.max,
    "sort": lambda x: np.sort(x, axis=None),
    "concatenate": lambda x: np.concatenate([x, MODEL, (x)]),
    "block": lambda x: np.block([[x, x], [MODEL, x]]),
    "where": lambda x: np.where(x == 3, x, 0),
    "einsum": lambda x: np.einsum("ij,jk", x, x),
    "add": lambda x: np.add(x, 1),
    "sqrt": np.sqrt,
    "divmod": lambda x: divmod(x, 3)[1],
    "rdivmod": lambda x: divmod(100, x)[1],
}
operation = pytest.mark.parametrize("name", BINARY)
numpy_function = pytest.mark.parametrize("function", NUMPY.values(), ids=NUMPY)


def array_of(queue: Queue, kind: str, model: np.ndarray = MODEL) -> Array:
    return Array(filled(model, kind=kind, queue=queue), model.shape, model.dtype)


def is_result(result: Any, model: Any) -> bool:
    return type(result) is type(model) and bool(np.array_equal(result, model))


@operation
@pytest.mark.sim_and_host
def test_binary_operators(q: Queue, name: str) -> None:
    compute = getattr(operator, name)
    array = array_of(q, "shared")
    expected = compute(MODEL, OTHER)
    for other in (OTHER, array_of(q, "shared", OTHER), OTHER.tolist()):
        assert is_result(compute(array, other), expected)
    assert is_result(compute(OTHER, array), compute(OTHER, MODEL))
    if name != "matmul":
        for number in (3, np.int32(3)):
            assert is_result(compute(array, number), compute(MODEL, number))
            assert is_result(compute(number, array), compute(number, MODEL))
    assert is_result(array.to_numpy(), MODEL)


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.sim_and_host
def test_in_place_operators_write_to_the_array(q: Queue, name: str) -> None:
    compute = getattr(operator, name)
    array, model = array_of(q, "shared"), MODEL.copy()
    part = array[1:, ::2]
    assert compute(part, 3) is part
    compute(model[1:, ::2], 3)
    assert is_result(array.to_numpy(), model)
    with pytest.raises(TypeError):
        array /= 2  # NumPy does not cast the result to int32


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.sim_and_host
def test_unary_operators(q: Queue, name: str) -> None:
    compute = getattr(operator, name)
    assert is_result(compute(array_of(q, "shared")), compute(MODEL))


@numpy_function
@pytest.mark.sim_and_host
def test_numpys_functions(q: Queue, function: Callable[[Any], Any]) -> None:
    assert is_result(function(array_of(q, "shared")), function(MODEL))


@numpy_function
def test_device_memory_raises_with_the_remedy(q: Queue, function: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"to_numpy\(\).*cupy\.asarray.*torch\.from_dlpack"):
        function(array_of(q, "device"))


@pytest.mark.parametrize("name", [*BINARY, *IN_PLACE])
@pytest.mark.sim_and_host
def test_operators_of_device_memory(q: Queue, name: str) -> None:
    compute = getattr(operator, name)
    array = array_of(q, "device")
    for operands in ((array, OTHER), (array, array), (array, 1), (OTHER, array)):
        with pytest.raises(TypeError, match=r"to_numpy\(\)"):
            compute(*operands)
    with isthmus.strict(False):
        if q.device.backend == "host":
            with pytest.warns(PortabilityWarning) as issued:
                result = compute(array, OTHER)
            assert {each.filename for each in issued} == {__file__}
            assert np.array_equal(
                result.to_numpy() if result is array else result, compute(MODEL.copy(), OTHER)
            )
        else:
            with pytest.raises(TypeError, match=r"to_numpy\(\)"):
                compute(array, OTHER)


def test_buffers_are_not_silently_different(q: Queue) -> None:
    data = np.arange(8, dtype=np.uint8)
    with pytest.raises(TypeError, match=r"to_numpy\(\)"):
        np.array_equal(filled(data, kind="device", queue=q), data)
    if "shared" in q.device.kinds:
        shared = filled(data, kind="shared", queue=q)
        assert np.array_equal(shared, data)
        assert (np.add(shared, 1) == data + 1).all()


def test_freed_arrays_raise(q: Queue) -> None:
    array = array_of(q, q.device.kinds[-1])
    array.free()
    for compute in (lambda: array == array, lambda: array + 1, lambda: np.array_equal(array, 1)):
        with pytest.raises(isthmus.ClosedError):
            compute()


@pytest.mark.host_only
def test_methods_of_ufuncs(q: Queue) -> None:
    """Not with device kind: NumPy leaks operands whose __array_ufunc__ raises in reduce()."""
    array = array_of(q, "host")
    assert is_result(np.multiply.reduce(array, axis=1), np.multiply.reduce(MODEL, axis=1))
    assert is_result(np.add.outer(array, array[0]), np.add.outer(MODEL, MODEL[0]))


@pytest.mark.host_only
def test_results_in_arrays(q: Queue) -> None:
    array, out, rest = (array_of(q, "host") for _ in range(3))
    assert np.add(array, 1, out=out) is out
    assert np.add(MODEL, 1, out=(out,)) is out
    assert is_result(out.to_numpy(), MODEL + 1)
    quotient, remainder = np.divmod(array, 5, out=(None, rest))
    assert remainder is rest
    assert is_result(quotient, MODEL // 5)
    assert is_result(rest.to_numpy(), MODEL % 5)
    assert np.concatenate([array[:2], array[2:]], out=out) is out
    assert is_result(out.to_numpy(), MODEL)
    np.copyto(out, 0, where=array == 3)
    np.add.at(out, (0, 0), 9)
    assert (out[0, 0], out[0, 2]) == (10, 0)
    locked = isthmus.broadcast_to(array, (2, 4, 4))
    with pytest.raises(ValueError, match="read-only"):
        locked += 1


@pytest.mark.host_only
def test_results_in_bfloat16_are_not_lost(q: Queue) -> None:
    array = isthmus.zeros(4, isthmus.bfloat16, queue=q, kind="host")
    with pytest.raises((TypeError, ValueError)):
        np.copyto(array, 1)
    with pytest.raises((TypeError, ValueError)):
        array += 1
    assert array.tolist() == [0] * 4


def test_functions_that_read_no_elements(q: Queue) -> None:
    array = array_of(q, "device")[:3]
    assert (np.shape(array), np.ndim(array), np.size(array)) == ((3, 4), 2, 12)
    assert np.result_type(array, np.float64) == np.float64
    assert not np.iscomplexobj(array)
    for turned in (np.transpose(array), np.swapaxes(array, 0, 1), np.moveaxis(array, 0, 1)):
        assert isinstance(turned, Array)
        assert turned.shape == (4, 3)
    assert np.squeeze(array[:1]).shape == (4,)


class Foreign:
    """An array of another library, with its own operators and NumPy functions."""

    shape = (4, 4)
    __array_priority__ = 100

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("the host cannot access it")

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> Any:
        return f"foreign {ufunc.__name__}"

    def __array_function__(self, function: Any, *_: Any) -> Any:
        return f"foreign {function.__name__}"

    def __radd__(self, other: Any) -> Any:
        return "foreign radd"

    def __eq__(self, other: object) -> Any:
        return "foreign eq"

    __hash__ = None  # type: ignore[assignment]


class WithoutOperators:
    def __array__(self, *_: Any, **__: Any) -> Any:
        return MODEL


@pytest.mark.sim_and_host
def test_other_libraries_decide_on_their_arrays(q: Queue, kind: str) -> None:
    array, foreign = array_of(q, kind), Foreign()
    assert array + foreign == "foreign radd"
    assert (array == foreign, foreign == array) == ("foreign eq", "foreign eq")
    assert np.add(array, foreign) == np.add(foreign, array) == "foreign add"
    assert np.concatenate([array, foreign]) == "foreign concatenate"
    for name in (*BINARY, *IN_PLACE):
        with pytest.raises(TypeError, match=r"to_numpy\(\).*from_dlpack"):
            getattr(operator, name)(array, WithoutOperators())
    with pytest.raises(TypeError, match=r"to_numpy\(\).*from_dlpack"):
        WithoutOperators() + array


@pytest.mark.sim_and_host
@pytest.mark.parametrize("name", IN_PLACE)
def test_operators_in_place_never_bind_another_object(q: Queue, kind: str, name: str) -> None:
    class Reflecting(Foreign):
        def __getattr__(self, attribute: str) -> Any:
            return lambda *_: "another object"

    array = array_of(q, kind)
    before = array.to_numpy()
    for other in (Reflecting(), Foreign(), None, "text"):
        with pytest.raises(TypeError):
            getattr(operator, name)(array, other)
    np.testing.assert_array_equal(array.to_numpy(), before)


@pytest.mark.sim_and_host
def test_comparisons_with_other_objects(q: Queue, kind: str) -> None:
    array = array_of(q, kind)
    for other in (None, "text", {}, Queue, Array, np.ndarray):
        assert (array == other) is False
        assert (array != other) is True
    assert array in {array, None}
    assert {array: 1}[array] == 1
    assert hash(array) == object.__hash__(array)


@pytest.mark.sim_and_host
def test_absent_methods(q: Queue, kind: str) -> None:
    array = array_of(q, kind)
    for obj in (array, UnifiedBuffer((4, 4), queue=q)):
        for name in _COPIES + _MATHEMATICS:
            assert not hasattr(obj, name)
            assert name not in dir(obj)
            with pytest.raises(AttributeError, match=rf"{type(obj).__name__}.*to_numpy\(\)"):
                getattr(obj, name)

    class Summed(Array):
        def sum(self) -> int:
            return 3

    assert Summed(array.buffer, (4, 4), "i4").sum() == 3


def test_unified_buffers(q: Queue) -> None:
    unified = UnifiedBuffer((4, 4), np.int32, queue=q, separate=True).copy_from(MODEL)
    assert is_result(unified == MODEL, MODEL == MODEL)
    assert is_result(unified[1:3] + OTHER[:2], MODEL[1:3] + OTHER[:2])
    assert is_result(10 - unified, 10 - MODEL)
    assert np.array_equal(unified, MODEL)
    assert isthmus.asarray(unified.device).to_numpy()[0, 0] == 1
    same = unified
    unified += 1
    assert unified is same
    assert isthmus.asarray(unified.device).to_numpy()[0, 0] == 2, "the write was detected"
    assert unified in {unified}
    assert (unified == None) is False  # noqa: E711


def test_buffers_compare_by_identity(q: Queue) -> None:
    buffer = Buffer(4, queue=q)
    assert buffer == buffer
    assert buffer != Buffer(4, queue=q)
