# SPDX-License-Identifier: Apache-2.0
"""Features of a library that may be absent, or may lack what it needs itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Given = TypeVar("Given")
Made = TypeVar("Made")


def made_or_why_not(make: Callable[[Given], Made], given: Given) -> Made | str:
    """What ``make(given)`` returns, or a text that says why it is not available here."""
    try:
        return make(given)
    except ModuleNotFoundError as missing:
        return f"{missing.name} is not installed"
    except Exception as reason:  # any error that a library raises if its driver is absent
        return f"{type(reason).__name__}: {reason}"
