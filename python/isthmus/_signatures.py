# SPDX-License-Identifier: Apache-2.0
"""``inspect.signature`` of native functions and classes. Imported when a signature is read."""

from __future__ import annotations
import __future__

import inspect
from typing import Any


def signature_of(native: Any) -> inspect.Signature:
    """The signature of a native function, method, bound method, or class.

    That of the first overload if there are several. AttributeError for a class whose constructor is
    not native, so that inspect looks at the constructor itself.
    """
    is_class = isinstance(native, type)
    function = native.__init__ if is_class else native
    text = function.__nb_signature__[0][0]
    # With this flag annotations remain text, so that they need not be resolved.
    flag = __future__.annotations.compiler_flag
    scope: dict[str, Any] = {}
    exec(compile(f"{text}: ...", "<signature>", "exec", flag), scope)
    signature = inspect.signature(scope.popitem()[1])
    parameters = list(signature.parameters.values())
    is_bound = is_class or type(native).__name__ == "nb_bound_method"
    return signature.replace(
        parameters=parameters[1:] if is_bound else parameters,
        return_annotation=(inspect.Signature.empty if is_class else signature.return_annotation),
    )
