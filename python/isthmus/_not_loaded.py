# SPDX-License-Identifier: Apache-2.0
"""What a pickle becomes in a forked child, which cannot load it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ._core import ForkedError

if TYPE_CHECKING:
    from collections.abc import Callable

_Load = TypeVar("_Load", bound="Callable[..., Any]")


class NotLoaded:
    """Stands for an object whose pickle a forked child received. Its use raises ForkedError.

    The load itself must not raise: a worker of ``multiprocessing.Pool`` would end while it receives
    its task, and the parent would wait for the result indefinitely. The error of a use is passed to
    the parent like any other. ``repr`` works, and so does a pickle, which the parent can load.
    """

    __slots__ = ("_pickled", "_state")

    _pickled: tuple[Callable[..., Any], tuple[Any, ...]]
    _state: Any

    def __init__(self, load: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        object.__setattr__(self, "_pickled", (load, arguments))
        object.__setattr__(self, "_state", None)

    def __setstate__(self, state: Any) -> None:
        object.__setattr__(self, "_state", state)

    def __reduce_ex__(self, protocol: object) -> Any:
        load, arguments = self._pickled
        return (load, tuple(_with_own_bytes(each) for each in arguments), self._state)

    def __repr__(self) -> str:
        return "<an object of isthmus that this forked process cannot load>"

    def __getattr__(self, name: str) -> NoReturn:
        raise ForkedError(
            "this process received a pickle, but it was forked and cannot use its parent's "
            "drivers: start it with spawn, for example by multiprocessing.get_context('spawn')"
        )

    __hash__ = object.__hash__


def _with_own_bytes(argument: Any) -> Any:
    """Copies what was pickled out of band: a pickle takes no memoryview, nor every PickleBuffer."""
    from pickle import PickleBuffer

    if isinstance(argument, (memoryview, PickleBuffer)):
        return bytes(argument)
    return argument


def _refuse(self: NotLoaded, *_: object) -> NoReturn:
    self.__getattr__("")


# Operators and built-in functions look for these in the class only.
for _name in (
    *("array", "bool", "bytes", "call", "complex", "contains", "copy", "deepcopy", "delattr"),
    *("delitem", "enter", "exit", "float", "getitem", "index", "int", "iter", "len", "setattr"),
    *("setitem", "eq", "ne", "lt", "le", "gt", "ge", "abs", "invert", "neg", "pos"),
    *(
        side + name
        for name in ("add", "and", "floordiv", "matmul", "mod", "mul", "or", "pow", "sub", "xor")
        for side in ("", "r", "i")
    ),
    *("truediv", "rtruediv", "itruediv", "lshift", "rlshift", "rshift", "rrshift", "divmod"),
):
    setattr(NotLoaded, f"__{_name}__", _refuse)


def loads_pickles(load: _Load) -> _Load:
    """Decorates a function that pickles name: in a forked child it returns a `NotLoaded`."""

    @functools.wraps(load)
    def load_unless_forked(*arguments: Any) -> Any:
        if any(type(each) is NotLoaded for each in arguments):
            return NotLoaded(load_unless_forked, arguments)
        try:
            return load(*arguments)
        except ForkedError:
            return NotLoaded(load_unless_forked, arguments)

    return load_unless_forked  # type: ignore[return-value]
