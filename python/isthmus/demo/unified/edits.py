"""What happens to the map on the host: a survey follows the coast, corrections fall anywhere on it.

The survey's window moves along the coast; by turns its sea takes a cell of the land all along the
shore, and its land one of the sea. Each correction is one cell. The same edit gives the same cells
to any array that held the same, which is how NumPy's copy stays beside the unified buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .mask import LAND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .mask import Cells

WINDOW = (48, 512)  # rows, columns
CORRECTIONS = 32  # a round
_BAND = 256  # rows searched at a time
_KEPT = 65536  # cells of coast, of all found


@dataclass
class Edit:
    """One round's changes."""

    window: tuple[slice, slice]
    floods: bool
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    def apply(self, cells: Cells) -> None:
        """Writes into ``cells``, which may be any writable array of the map's shape."""
        shore = _shore(cells[self.window] & LAND, self.floods)
        cells[self.window] ^= shore
        cells[self.rows, self.columns] ^= LAND

    def touched(self) -> NDArray[np.int64]:
        """The rows written, in order."""
        return np.union1d(np.arange(self.window[0].start, self.window[0].stop), self.rows)


class Coast:
    """Where sea lies to the east or west of land, and the edits along it."""

    def __init__(self, cells: Cells, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._shape = cells.shape
        found = _coast_of(cells)
        if found.size == 0:
            raise ValueError("these rows of the map have no coast to edit")
        if found.size > _KEPT:
            found = self._random.choice(found, _KEPT, replace=False)
        self._rows, self._columns = np.divmod(found, cells.shape[1])
        start = self._random.integers(found.size)
        self._at = int(self._rows[start]), int(self._columns[start])

    def edit(self, number: int) -> Edit:
        """The changes of the round of that number."""
        row, column = self._at
        picked = np.unique(self._random.integers(self._rows.size, size=CORRECTIONS))
        window = (
            _about(row, WINDOW[0], self._shape[0]),
            _about(column, WINDOW[1], self._shape[1]),
        )
        self._move()
        return Edit(window, number % 2 == 0, self._rows[picked], self._columns[picked])

    def _move(self) -> None:
        """To the coast that is nearest to half a window further east, round the globe."""
        row, column = self._at
        width = self._shape[1]
        east = (self._columns - column) % width
        distance = np.abs(east - WINDOW[1] // 2) + np.abs(self._rows - row)
        nearest = int(np.argmin(distance))
        self._at = int(self._rows[nearest]), int(self._columns[nearest])


def _coast_of(cells: Cells) -> NDArray[np.int64]:
    """Flat places of cells unlike their neighbour to the west."""
    width = cells.shape[1]
    found = []
    for first in range(0, cells.shape[0], _BAND):
        band = cells[first : first + _BAND]
        rows, columns = np.nonzero(band[:, 1:] != band[:, :-1])
        found.append((first + rows) * width + columns + 1)
    return np.concatenate(found)


def _about(middle: int, length: int, limit: int) -> slice:
    start = min(max(middle - length // 2, 0), max(limit - length, 0))
    return slice(start, min(start + length, limit))


def _shore(land: Cells, floods: bool) -> Cells:
    """1 where land has sea beside it if it ``floods``, else where sea has land beside it."""
    ours = land if floods else land ^ LAND
    around = np.pad(ours, 1, "edge")
    inner = around[:-2, 1:-1] & around[2:, 1:-1] & around[1:-1, :-2] & around[1:-1, 2:]
    shore: Cells = ours & (inner ^ LAND)
    return shore
