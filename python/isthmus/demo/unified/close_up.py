# SPDX-License-Identifier: Apache-2.0
"""A close-up of one round: the cells around the window that were written, and those copied."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median_low
from typing import TYPE_CHECKING

import numpy as np

from .dirty_map import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .mask import Cells

    Region = tuple[slice, slice]

UNTOUCHED, DIRTY, WRITTEN = 0, 1, 2
_SIZE = (64, 6144)  # rows, columns: a page of 4 KiB is two thirds of a row


@dataclass(frozen=True)
class CloseUp:
    """A region of the map, with UNTOUCHED, DIRTY or WRITTEN for each cell."""

    number: int  # of the round
    region: Region
    window: Region
    cells: NDArray[np.uint8]
    range_bytes: int  # the median of the dirty ranges; 0 if there is none


def region_around(window: Region, shape: tuple[int, int]) -> Region:
    """Rows and columns of fixed numbers around the window, inside of the map."""
    rows, columns = (
        _centered((part.start + part.stop) // 2, length, limit)
        for part, length, limit in zip(window, _SIZE, shape, strict=True)
    )
    return rows, columns


def _centered(middle: int, length: int, limit: int) -> slice:
    start = min(max(middle - length // 2, 0), max(limit - length, 0))
    return slice(start, min(start + length, limit))


def close_up(
    number: int, window: Region, region: Region, before: Cells, cells: Cells,
    ranges: Sequence[tuple[int, int]],
) -> CloseUp:  # fmt: skip
    """``before`` is the region before the edit, and ``cells`` the whole map after it."""
    rows, columns = region
    width = before.shape[1]
    seen = np.full(before.shape, UNTOUCHED, np.uint8)
    for start, stop in ranges:
        for row, first, last in lines_of(start, stop, cells.shape[1]):
            if rows.start <= row < rows.stop:
                begin, end = np.clip((first - columns.start, last - columns.start), 0, width)
                seen[row - rows.start, begin:end] = DIRTY
    seen[before != cells[region]] = WRITTEN
    range_bytes = median_low([stop - start for start, stop in ranges] or [0])
    return CloseUp(number, region, window, seen, range_bytes)
