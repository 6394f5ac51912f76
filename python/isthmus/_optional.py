"""What needs a library that may not be there, or not have what it needs itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Given = TypeVar("Given")
Made = TypeVar("Made")


def made_or_why_not(make: Callable[[Given], Made], given: Given) -> Made | str:
    """What ``make(given)`` returns, or in words why it cannot be had here."""
    try:
        return make(given)
    except ModuleNotFoundError as missing:
        return f"{missing.name} is not installed"
    except Exception as reason:  # whatever a library raises where its driver is not here
        return f"{type(reason).__name__}: {reason}"
