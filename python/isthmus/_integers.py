# SPDX-License-Identifier: Apache-2.0
"""Integers as arguments."""

from __future__ import annotations

import operator

from ._core import Error


def integer(name: str, value: object) -> int:
    """``value`` as an integer. TypeError if it is not one, caused by what ``__index__`` raised.

    MemoryError, an isthmus.Error and what is not an Exception are raised unchanged.
    """
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except (MemoryError, Error):
        raise
    except Exception as failed:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from failed
