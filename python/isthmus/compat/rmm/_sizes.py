# SPDX-License-Identifier: Apache-2.0
"""Parsing and validation of byte counts in the forms that RMM accepts."""

from __future__ import annotations

import re
import reprlib
from fractions import Fraction
from math import isfinite
from operator import index

_UNITS = ("", "k", "m", "g", "t", "p")
_FACTORS = {"": 1, "b": 1} | {
    f"{unit}{tail}": base**power
    for power, unit in enumerate(_UNITS)
    if unit
    for tail, base in (("b", 1000), ("ib", 1024))
}
_TEXT = re.compile(r"([0-9]+(?:\.[0-9]*)?)[\t ]*([A-Za-z]*)$")
_MAX_DIGITS = 400  # a finite number has fewer before its decimal point
_WORD = 1 << 64


class RefusedError(RuntimeError, ValueError):
    """Contradictory arguments: a ``ValueError`` that is also RMM's ``RuntimeError``."""


def count_of(value: object, name: str) -> int:
    """An unsigned 64-bit integer. TypeError for non-integers, OverflowError out of range."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if not 0 <= number < _WORD:
        raise OverflowError(f"{name} must be from 0 to 2**64 - 1, not {number}")
    return number


def bytes_of(value: object, name: str) -> int:
    """As ``count_of``, or text with a unit: "1GiB", "2 kib", "1.5MB". ValueError for other text.

    The computation is exact; fractions of a byte are truncated. OverflowError from 2**64 on.
    """
    if not isinstance(value, str):
        return count_of(value, name)
    found = _TEXT.match(value)
    factor = _FACTORS.get(found[2].lower()) if found else None
    if found is None or factor is None or not isfinite(float(found[1])):
        raise ValueError(
            f"{name}: Could not parse {reprlib.repr(value)} as a byte specification: a number, "
            "then nothing, or one of B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB"
        )
    digits = found[1].lstrip("0")[:_MAX_DIGITS]  # later digits are fractions of a byte
    return count_of(int(Fraction(f"0{digits}") * factor), name)
