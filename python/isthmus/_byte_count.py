# SPDX-License-Identifier: Apache-2.0
"""Arguments that are numbers of bytes."""

from __future__ import annotations

from . import _core
from ._integers import integer

__all__ = ["ByteCount", "byte_count"]

# What ``isthmus.parse_bytes`` converts: an integer, a float that is a whole number, or text.
ByteCount = int | float | str


def byte_count(name: str, value: object) -> int:
    """``value`` as ``isthmus.parse_bytes`` converts it, and objects with ``__index__``. Errors name
    the argument ``name``.
    """
    return _core._to_bytes(value, name) if isinstance(value, str | float) else integer(name, value)
