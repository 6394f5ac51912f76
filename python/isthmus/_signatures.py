# SPDX-License-Identifier: Apache-2.0
"""``inspect.signature`` of native functions and classes. Imported when a signature is read."""

from __future__ import annotations

import ast
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def signature_of(native: Any) -> Signature:
    """The signature of a native function, method, bound method, or class.

    That of the first overload if there are several. AttributeError for a class whose constructor is
    not native, so that inspect looks at the constructor itself.
    """
    is_class = isinstance(native, type)
    function = native.__init__ if is_class else native
    text = function.__nb_signature__[0][0]
    definition = ast.parse(f"{text}: ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    parameters = list(_parameters(definition.args))
    returns = None if definition.returns is None else ast.unparse(definition.returns)
    is_bound = is_class or type(native).__name__ == "nb_bound_method"
    return Signature(
        parameters[1:] if is_bound else parameters,
        return_annotation=Signature.empty if is_class or returns is None else returns,
    )


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(positional) - len(arguments.defaults))
    for index, (each, default) in enumerate(
        zip(positional, [*missing, *arguments.defaults], strict=True)
    ):
        is_keyword = index >= len(arguments.posonlyargs)
        kind = Parameter.POSITIONAL_OR_KEYWORD if is_keyword else Parameter.POSITIONAL_ONLY
        yield _parameter(each, kind, default)
    if arguments.vararg is not None:
        yield _parameter(arguments.vararg, Parameter.VAR_POSITIONAL, None)
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(each, Parameter.KEYWORD_ONLY, default)
    if arguments.kwarg is not None:
        yield _parameter(arguments.kwarg, Parameter.VAR_KEYWORD, None)


def _parameter(argument: ast.arg, kind: Any, default: ast.expr | None) -> Parameter:
    annotation = (
        Parameter.empty if argument.annotation is None else ast.unparse(argument.annotation)
    )
    value = Parameter.empty if default is None else ast.literal_eval(default)
    return Parameter(argument.arg, kind, default=value, annotation=annotation)
