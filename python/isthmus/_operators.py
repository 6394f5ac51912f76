# SPDX-License-Identifier: Apache-2.0
"""Operators of arrays and unified buffers: NumPy's functions, whose results are NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import _is_array, _is_of_numpy
from ._numpy_functions import NumpyFunctions, is_ours, viewed

if TYPE_CHECKING:
    from collections.abc import Callable

    Operator = Callable[..., Any]


def _compute(function: str, *operands: Any, **options: Any) -> Any:
    import numpy as np

    # On views: calls that NumPy has to dispatch take twice as long.
    return getattr(np, function)(*viewed(operands), **viewed(options))


def _is_operand(obj: object) -> bool:
    """Whether NumPy computes with the other operand. If not, that operand's operator decides."""
    return isinstance(obj, (int, float, complex, list, tuple)) or is_ours(obj) or _is_of_numpy(obj)


def _is_foreign_array(obj: object) -> bool:
    return not isinstance(obj, type) and _is_array(obj)


def _foreign(name: str, self: Any, other: Any) -> Any:
    """The result of the operator of ``other``, which Python calls next. If that is an array without
    the operator, Python would compare its identity, or raise TypeError without advice.
    """
    if not _is_foreign_array(other):
        return NotImplemented
    operator = getattr(other, f"__{name}__", None)
    result = NotImplemented if operator is None else operator(self)
    if result is NotImplemented:
        raise _unsupported(self, other)
    return result


def _unsupported(self: Any, other: Any) -> TypeError:
    return TypeError(
        f"{type(self).__name__} and {type(other).__name__} have no common operator: convert one of "
        "them, as with to_numpy(), cupy.asarray(x) or torch.from_dlpack(x)"
    )


def _binary(function: str, reflected: str) -> Operator:
    def operator(self: Any, other: Any) -> Any:
        if _is_operand(other):
            return _compute(function, self, other)
        return _foreign(reflected, self, other)

    return operator


def _reflected(function: str) -> Operator:
    def operator(self: Any, other: Any) -> Any:
        if _is_operand(other):
            return _compute(function, other, self)
        if not _is_foreign_array(other):
            return NotImplemented
        raise _unsupported(self, other)  # the other operand's operator was called before

    return operator


def _in_place(function: str) -> Operator:
    # Never the operator of the other operand: Python would bind the name to its result, and the
    # memory would not be written.
    def operator(self: Any, other: Any) -> Any:
        if _is_operand(other):
            _compute(function, self, other, out=self)
            return self
        raise _unsupported(self, other)

    return operator


def _all_forms(function: str, name: str) -> tuple[Operator, Operator, Operator]:
    return _binary(function, f"r{name}"), _reflected(function), _in_place(function)


def _unary(function: str) -> Operator:
    def operator(self: Any) -> Any:
        return _compute(function, self)

    return operator


class NumpyOperators(NumpyFunctions):
    """Base class: operators. Objects are hashed by their identity."""

    __slots__ = ()

    __eq__, __ne__ = _binary("equal", "eq"), _binary("not_equal", "ne")
    __hash__ = object.__hash__
    __lt__, __le__ = _binary("less", "gt"), _binary("less_equal", "ge")
    __gt__, __ge__ = _binary("greater", "lt"), _binary("greater_equal", "le")

    __neg__, __pos__ = _unary("negative"), _unary("positive")
    __abs__, __invert__ = _unary("absolute"), _unary("invert")

    __add__, __radd__, __iadd__ = _all_forms("add", "add")
    __sub__, __rsub__, __isub__ = _all_forms("subtract", "sub")
    __mul__, __rmul__, __imul__ = _all_forms("multiply", "mul")
    __matmul__, __rmatmul__, __imatmul__ = _all_forms("matmul", "matmul")
    __truediv__, __rtruediv__, __itruediv__ = _all_forms("true_divide", "truediv")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _all_forms("floor_divide", "floordiv")
    __mod__, __rmod__, __imod__ = _all_forms("remainder", "mod")
    __divmod__, __rdivmod__ = _binary("divmod", "rdivmod"), _reflected("divmod")
    __pow__, __rpow__, __ipow__ = _all_forms("power", "pow")
    __lshift__, __rlshift__, __ilshift__ = _all_forms("left_shift", "lshift")
    __rshift__, __rrshift__, __irshift__ = _all_forms("right_shift", "rshift")
    __and__, __rand__, __iand__ = _all_forms("bitwise_and", "and")
    __or__, __ror__, __ior__ = _all_forms("bitwise_or", "or")
    __xor__, __rxor__, __ixor__ = _all_forms("bitwise_xor", "xor")
