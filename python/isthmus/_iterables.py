# SPDX-License-Identifier: Apache-2.0
"""Arguments that are iterables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")


def iterator(name: str, values: Iterable[T]) -> Iterator[T]:
    """An iterator over ``values``. TypeError, which names the argument, if it is not iterable."""
    try:
        return iter(values)
    except TypeError as failed:
        raise TypeError(f"{name} must be iterable, not {type(values).__name__}") from failed
