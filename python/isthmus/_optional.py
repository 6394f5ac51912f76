# SPDX-License-Identifier: Apache-2.0
"""Use of optional libraries, which may be missing or lack a dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def try_call(function: Callable[[Argument], Result], argument: Argument) -> Result | str:
    """The result of ``function(argument)``, or the reason for its failure as text."""
    try:
        return function(argument)
    except ModuleNotFoundError as missing:
        return f"{missing.name} is not installed"
    except Exception as reason:  # libraries raise any type of error if their driver is absent
        return f"{type(reason).__name__}: {reason}"
