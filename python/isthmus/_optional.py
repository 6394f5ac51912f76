# SPDX-License-Identifier: Apache-2.0
"""Features of an optional library, which or whose dependencies may be absent."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def try_make(make: Callable[[Argument], Result], argument: Argument) -> Result | str:
    """The result of ``make(argument)``, or the reason why it is not available."""
    try:
        return make(argument)
    except ModuleNotFoundError as missing:
        return f"{missing.name} is not installed"
    except Exception as reason:  # libraries raise any type of error if their driver is absent
        return f"{type(reason).__name__}: {reason}"
