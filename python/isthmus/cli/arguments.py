# SPDX-License-Identifier: Apache-2.0
"""Arguments of several subcommands, parsed from text."""

from __future__ import annotations

import argparse

import isthmus

__all__ = ["byte_count", "whole_number"]


def whole_number(text: str, minimum: int, maximum: int) -> int:
    """A whole number; argparse's error for other text, or outside of the two bounds."""
    if not (text.isdecimal() and minimum <= int(text) <= maximum):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {minimum} to {maximum}")
    return int(text)


def byte_count(text: str) -> int:
    """A size above 0, as ``isthmus.parse_bytes`` reads it; argparse's error for other text."""
    try:
        nbytes = isthmus.parse_bytes(text)
    except ValueError as failure:
        raise argparse.ArgumentTypeError(str(failure).removeprefix("value: ")) from None
    if nbytes == 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0 bytes")
    return nbytes
