# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on arrays, buffers and unified buffers.

NumPy computes on the host, on views of the memory. If the host cannot access the memory, the view
raises TypeError, which names the alternatives. Without these methods, functions such as
``numpy.array_equal`` would treat this error as a difference between the arrays.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ._core import Array

# Functions whose implementations read no elements: they use attributes and methods of their
# arguments, which arrays of every kind have.
_WITHOUT_ELEMENTS = frozenset(
    (
        *("can_cast", "iscomplexobj", "isrealobj", "moveaxis", "ndim", "result_type"),
        *("shape", "size", "squeeze", "swapaxes", "transpose"),
    )
)


class NumpyFunctions:
    """Base class: NumPy's two dispatch methods."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        outputs = options.get("out", ())
        if any(map(_is_foreign, (*inputs, *outputs))):
            return NotImplemented  # the other library decides
        result = getattr(ufunc, method)(*viewed(inputs), **viewed(options))
        if not any(map(is_ours, outputs)):
            return result
        return outputs[0] if len(outputs) == 1 else _replaced(result, outputs)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        import numpy as np

        if not all(issubclass(each, np.ndarray) or _has_these_methods(each) for each in types):
            return NotImplemented  # the other library decides
        if function.__name__ in _WITHOUT_ELEMENTS:
            # NumPy's own implementation, called with the arguments as they are.
            return np.empty(0).__array_function__(function, (), args, kwargs)
        result = function(*viewed(args), **viewed(kwargs))
        out = kwargs.get("out")
        return out if is_ours(out) else result


def add_methods(base: type, cls: type) -> None:
    """Adds the methods of ``base`` to a native class, which cannot inherit from it."""
    for name, method in vars(base).items():
        if isinstance(method, FunctionType):
            setattr(cls, name, method)


def is_ours(obj: object) -> bool:
    """Whether ``obj`` is an array, a buffer or a unified buffer."""
    return _has_these_methods(type(obj))


def _has_these_methods(cls: type) -> bool:
    return getattr(cls, "__array_ufunc__", None) is NumpyFunctions.__array_ufunc__


def _is_foreign(operand: object) -> bool:
    """Whether another library implements NumPy's functions for the operand."""
    method = getattr(type(operand), "__array_ufunc__", None)
    if method is None or method is NumpyFunctions.__array_ufunc__:
        return False
    import numpy as np

    return not isinstance(operand, np.ndarray)


def viewed(argument: Any) -> Any:
    """The argument, with views in place of our objects, also in lists, tuples and dictionaries."""
    if is_ours(argument):
        return _view_of(argument)
    if type(argument) in (list, tuple):
        return type(argument)(map(viewed, argument))
    if type(argument) is dict:
        return {key: viewed(value) for key, value in argument.items()}
    return argument


def _view_of(obj: Any) -> Any:
    """NumPy's array over the memory. That of bfloat16 is a copy, and therefore read-only, because
    writes to it would be lost.
    """
    import numpy as np

    view = np.asarray(obj)
    if isinstance(obj, Array) and view.dtype.kind not in "biufc":  # bfloat16
        view.flags.writeable = False
    return view


def _replaced(results: tuple[Any, ...], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results, with the caller's own objects in place of views of them."""
    pairs = zip(results, outputs, strict=True)
    return tuple(result if output is None else output for result, output in pairs)
