# SPDX-License-Identifier: Apache-2.0
"""Integers as arguments."""

from __future__ import annotations

import operator

from ._core import Error


def integer(name: str, value: object) -> int:
    """``value`` as an integer. TypeError if it is not one, with the exception of ``__index__`` as
    the cause.

    MemoryError, isthmus.Error and exceptions that are not an Exception are raised unchanged.
    """
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except (MemoryError, Error):
        raise
    except Exception as failed:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from failed
