# SPDX-License-Identifier: Apache-2.0
"""Array's methods and properties on an object whose __init__ never ran, and on other types."""

from __future__ import annotations

import copy
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import isthmus
from isthmus import Array
from isthmus._operators import NumpyOperators

MADE_BY_PYTHON = {"__doc__", "__init__", "__module__", "__new__", "__weakref__"}
GIVES_ITSELF = {"__enter__"}
OPERATORS = {
    name for name, method in vars(NumpyOperators).items() if isinstance(method, FunctionType)
}
ADDED = OPERATORS | {"__dir__"}  # by the package; operators return NotImplemented for other types
ABSENT = {name for name in vars(Array) if not hasattr(Array, name)}
NAMES = sorted(set(vars(Array)) - MADE_BY_PYTHON - GIVES_ITSELF - ADDED - ABSENT)
FUNCTIONS = ["expand_dims", "flip", "squeeze"]

pytestmark = pytest.mark.filterwarnings("ignore:nanobind")


def refuses(use: Any, *arguments: object) -> None:
    with pytest.raises((AttributeError, TypeError, ValueError)):
        use(*arguments)


@pytest.mark.parametrize("name", NAMES)
def test_each_refuses(name: str) -> None:
    member, never = vars(Array)[name], Array.__new__(Array)
    if isinstance(member, property):
        assert member.fget is not None
        refuses(getattr, never, name)
        refuses(member.fget, object())
        return
    for arguments in [(), ("f4",), (0,), (0, 1), (np.zeros(3, "f4"),)]:
        refuses(getattr(never, name), *arguments)
        refuses(member, object(), *arguments)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operators_refuse(name: str) -> None:
    never = Array.__new__(Array)
    operator = getattr(never, name)
    takes_one = operator.__code__.co_argcount == 2
    for arguments in [(1,), (np.zeros(3, "f4"),), (never,)] if takes_one else [()]:
        refuses(operator, *arguments)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_refuse(name: str) -> None:
    for given in (Array.__new__(Array), np.zeros(3)):
        refuses(getattr(isthmus, name), given)


def test_what_python_calls_itself() -> None:
    never = Array.__new__(Array)
    for use in (copy.copy, copy.deepcopy, memoryview, len, iter, bool, int, repr):
        refuses(use, never)
    refuses(np.asarray, never)
    refuses(isthmus.asarray, never)
