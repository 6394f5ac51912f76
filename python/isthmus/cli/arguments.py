# SPDX-License-Identifier: Apache-2.0
"""Arguments of several subcommands, parsed from text."""

from __future__ import annotations

import argparse

__all__ = ["whole_number"]


def whole_number(text: str, minimum: int, maximum: int) -> int:
    """A whole number; argparse's error for other text, or outside of the two bounds."""
    if not (text.isdecimal() and minimum <= int(text) <= maximum):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {minimum} to {maximum}")
    return int(text)
