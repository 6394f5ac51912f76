# SPDX-License-Identifier: Apache-2.0
"""A NumPy copy of the map with the same edits as the unified buffer: the expected results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import kernels
from .mask import LAND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .edits import Edit
    from .mask import Cells


class Truth:
    """The cells, and the exact counts of each row. Only rows that were written are recounted."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.counts = np.zeros((cells.shape[0], 2), np.uint32)
        self._count(range(cells.shape[0]))

    def edit(self, edit: Edit) -> None:
        """Applies the host's edit."""
        edit.apply(self.cells)
        self._count(edit.touched().tolist())

    def stamp(self, rows: slice, number: int) -> None:
        """Applies the device's stamp. Land remains land, so the counts do not change."""
        kernels.stamp_cells(self.cells[rows], number)

    def wrong_rows(self, counts: NDArray[np.uint32]) -> int:
        """The number of rows with a differing count."""
        return int(np.count_nonzero((counts != self.counts).any(axis=1)))

    def _count(self, rows: range | list[int]) -> None:
        for row in rows:
            land = np.flatnonzero(self.cells[row] & LAND)
            self.counts[row] = land.size, land.sum()
