# SPDX-License-Identifier: Apache-2.0
"""Arguments that are iterables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")


def iterator(name: str, given: Iterable[T]) -> Iterator[T]:
    """An iterator over ``given``. TypeError, which names the argument, if it is not iterable."""
    try:
        return iter(given)
    except TypeError as failed:
        raise TypeError(f"{name} must be iterable, not {type(given).__name__}") from failed
