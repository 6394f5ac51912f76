# SPDX-License-Identifier: Apache-2.0
"""Methods of other libraries' arrays that arrays and unified buffers do not have.

The error of their use names the alternatives. ``hasattr`` returns False, because libraries query
these methods to recognize arrays.
"""

from __future__ import annotations

from typing import Any

_COPIES = ("cpu", "get", "numpy")
_MATHEMATICS = (
    *("all", "any", "argmax", "argmin", "argsort", "clip", "cumsum", "dot", "max", "mean", "min"),
    *("prod", "round", "sort", "std", "sum", "var"),
)


def add_absent_methods(cls: type) -> None:
    """Adds the descriptors to a class, which has the method ``to_numpy``."""
    for name in _COPIES:
        setattr(cls, name, _Absent(name, "use to_numpy()"))
    for name in _MATHEMATICS:
        remedy = (
            f"use NumPy, as in x.to_numpy().{name}(), or a library for the device, as in "
            f"cupy.asarray(x).{name}() or torch.from_dlpack(x).{name}()"
        )
        setattr(cls, name, _Absent(name, remedy))
    cls.__dir__ = _names  # type: ignore[assignment,method-assign]


class _Absent:
    """Raises AttributeError when it is read. An attribute of an instance takes precedence."""

    def __init__(self, name: str, remedy: str) -> None:
        self._name = name
        self._remedy = remedy

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError(f"{owner.__name__} has no method {self._name}(): {self._remedy}")


def _names(self: object) -> list[str]:
    return [name for name in object.__dir__(self) if name not in _COPIES + _MATHEMATICS]
