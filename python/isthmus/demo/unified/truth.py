"""NumPy's own copy of the map, edited beside the unified buffer: what every result must be."""

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
    """The cells, and exact counts of each row; rows that nobody wrote are not counted again."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.counts = np.zeros((cells.shape[0], 2), np.uint32)
        self._count(range(cells.shape[0]))

    def edit(self, edit: Edit) -> None:
        """What the host does."""
        edit.apply(self.cells)
        self._count(edit.touched().tolist())

    def stamp(self, rows: slice, number: int) -> None:
        """What the device does; land stays land, so the counts stay."""
        kernels.stamp_cells(self.cells[rows], number)

    def wrong_rows(self, counts: NDArray[np.uint32]) -> int:
        """Rows of which a count differs."""
        return int(np.count_nonzero((counts != self.counts).any(axis=1)))

    def _count(self, rows: range | list[int]) -> None:
        for row in rows:
            land = np.flatnonzero(self.cells[row] & LAND)
            self.counts[row] = land.size, land.sum()
