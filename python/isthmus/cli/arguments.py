"""Arguments of several commands, read from their text."""

from __future__ import annotations

import argparse

__all__ = ["whole_number"]


def whole_number(text: str, least: int, most: int) -> int:
    """``argparse``'s error for another text, and for a number outside of the two."""
    if not (text.isdecimal() and least <= int(text) <= most):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} to {most}")
    return int(text)
