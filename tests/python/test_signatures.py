# SPDX-License-Identifier: Apache-2.0
"""inspect.signature of native functions, methods and classes."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any

import pytest
from support import ROOT

import isthmus
from isthmus import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

STUB = ast.parse((ROOT / "python" / "isthmus" / "_core.pyi").read_text())


def parameters_of(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs]
    return [each.arg for each in every if each is not None and each.arg != "self"]


def functions_of_the_stub() -> Iterator[tuple[str, list[str]]]:
    """The public functions, and for a class its constructor: names and parameters."""
    seen = set()
    for node in STUB.body:
        scope = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for each in scope:
            if not isinstance(each, ast.FunctionDef) or f"{prefix}{each.name}" in seen:
                continue
            is_property = any("property" in ast.unparse(one) for one in each.decorator_list)
            is_setter = any("setter" in ast.unparse(one) for one in each.decorator_list)
            if each.name == "__init__" or not each.name.startswith("_"):
                seen.add(f"{prefix}{each.name}")
                if not is_property and not is_setter:
                    yield f"{prefix}{each.name}".removesuffix(".__init__"), parameters_of(each)


@pytest.mark.parametrize(("name", "expected"), list(functions_of_the_stub()))
def test_a_signature_has_the_parameters_of_the_stub(name: str, expected: list[str]) -> None:
    native: Any = _core
    for part in name.split("."):
        native = getattr(native, part)
    parameters = inspect.signature(native).parameters
    assert [each for each in parameters if each != "self"] == expected


def test_a_class_a_method_and_a_bound_method() -> None:
    assert next(iter(inspect.signature(isthmus.Buffer.fill).parameters)) == "self"
    signature = inspect.signature(isthmus.Buffer(4, kind="host").fill)
    assert str(signature) == (
        "(value: 'object' = 0, *, offset: 'int' = 0, nbytes: 'ByteCount | None' = None, "
        "queue: 'Queue | None' = None, after: 'Event | Sequence[Event]' = (), "
        "blocking: 'bool' = True) -> 'Event | None'"
    )
    assert inspect.signature(isthmus.Buffer).parameters["kind"].default == "device"


def test_a_subclass_has_the_signature_of_its_own_constructor() -> None:
    class Image(isthmus.Buffer):
        def __init__(self, width: int, height: int = 1) -> None:
            super().__init__(width * height)

    class Other(isthmus.Buffer):
        pass

    assert list(inspect.signature(Image).parameters) == ["width", "height"]
    assert inspect.signature(Other) == inspect.signature(isthmus.Buffer)


def test_a_class_without_a_constructor_has_no_signature() -> None:
    with pytest.raises(ValueError, match="no signature"):
        inspect.signature(isthmus.Pin)
