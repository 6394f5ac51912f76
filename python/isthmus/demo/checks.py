"""What both demos check: where the picture goes, and whether two arrays are the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tell = Callable[[str, float], None]  # what is at work now, how much of the whole lies behind


def differing(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> int:
    """Bytes that differ; in bands, since a whole mask would be another such array."""
    rows = range(0, left.shape[0], 256)
    return sum(int(np.count_nonzero(left[y : y + 256] != right[y : y + 256])) for y in rows)


def check_output(output: str) -> None:
    """Found out now, not after half a minute."""
    os.makedirs(output, exist_ok=True)
    if not os.access(output, os.W_OK):
        raise PermissionError(f"cannot write into {output}")
