# SPDX-License-Identifier: Apache-2.0
"""Checks that the demos share: the output directory, and the equality of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Progress = Callable[[str, float], None]  # the current step, and the completed share of the work


def differing(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> int:
    """The number of differing bytes. Compares in bands, to avoid a mask as large as the arrays."""
    rows = range(0, left.shape[0], 256)
    return sum(int(np.count_nonzero(left[y : y + 256] != right[y : y + 256])) for y in rows)


def check_output(output: str) -> None:
    """Raises at the start, rather than after half a minute, if the output cannot be written."""
    os.makedirs(output, exist_ok=True)
    if not os.access(output, os.W_OK):
        raise PermissionError(f"cannot write into {output}")
