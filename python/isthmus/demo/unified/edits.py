# SPDX-License-Identifier: Apache-2.0
"""The edits on the host: a survey that follows the coast, and corrections anywhere on it.

The survey's window moves along the coast. Alternately, one cell of land becomes sea all along the
shore in the window, and one cell of sea becomes land. Each correction is one cell. An edit is
deterministic: it makes the same changes in equal arrays, which keeps the NumPy copy equal to the
unified buffer.
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
CORRECTIONS = 32  # per round
_BAND = 256  # rows searched at a time
_MAX_CELLS = 65536  # maximum cells of coast, a random choice of those found


@dataclass
class Edit:
    """The changes of one round."""

    window: tuple[slice, slice]
    floods: bool
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    def apply(self, cells: Cells) -> None:
        """Applies the changes to ``cells``, any writable array of the map's shape."""
        shore = _shore(cells[self.window] & LAND, self.floods)
        cells[self.window] ^= shore
        cells[self.rows, self.columns] ^= LAND

    def touched(self) -> NDArray[np.int64]:
        """The rows written, in order."""
        return np.union1d(np.arange(self.window[0].start, self.window[0].stop), self.rows)


class Coast:
    """The cells where land and sea are adjacent in a row, and the edits along them."""

    def __init__(self, cells: Cells, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._shape = cells.shape
        found = _coast_of(cells)
        if found.size == 0:
            raise ValueError("these rows of the map have no coast to edit")
        if found.size > _MAX_CELLS:
            found = self._random.choice(found, _MAX_CELLS, replace=False)
        self._rows, self._columns = np.divmod(found, cells.shape[1])
        self._position = self._start()

    def _start(self) -> tuple[int, int]:
        """A random cell of the coast, in the second quarter of the columns if there is one.

        From there the window moves east for many rounds until it reaches the edge of the map.
        """
        quarter = self._shape[1] // 4
        inside = np.flatnonzero((self._columns >= quarter) & (self._columns < 2 * quarter))
        candidates = inside if inside.size else np.arange(self._columns.size)
        start = self._random.choice(candidates)
        return int(self._rows[start]), int(self._columns[start])

    def edit(self, number: int) -> Edit:
        """The changes of the round of that number."""
        row, column = self._position
        picked = np.unique(self._random.integers(self._rows.size, size=CORRECTIONS))
        window = (
            _centered(row, WINDOW[0], self._shape[0]),
            _centered(column, WINDOW[1], self._shape[1]),
        )
        self._move()
        return Edit(window, number % 2 == 0, self._rows[picked], self._columns[picked])

    def _move(self) -> None:
        """Moves to the coast nearest to half a window further east, around the globe."""
        row, column = self._position
        width = self._shape[1]
        east = (self._columns - column) % width
        distance = np.abs(east - WINDOW[1] // 2) + np.abs(self._rows - row)
        nearest = int(np.argmin(distance))
        self._position = int(self._rows[nearest]), int(self._columns[nearest])


def _coast_of(cells: Cells) -> NDArray[np.int64]:
    """Flat indices of the cells that differ from their western neighbour."""
    width = cells.shape[1]
    found = []
    for first in range(0, cells.shape[0], _BAND):
        band = cells[first : first + _BAND]
        rows, columns = np.nonzero(band[:, 1:] != band[:, :-1])
        found.append((first + rows) * width + columns + 1)
    return np.concatenate(found)


def _centered(middle: int, length: int, limit: int) -> slice:
    start = min(max(middle - length // 2, 0), max(limit - length, 0))
    return slice(start, min(start + length, limit))


def _shore(land: Cells, floods: bool) -> Cells:
    """1 for land cells next to sea if ``floods``, otherwise for sea cells next to land."""
    cells = land if floods else land ^ LAND
    around = np.pad(cells, 1, "edge")
    inner = around[:-2, 1:-1] & around[2:, 1:-1] & around[1:-1, :-2] & around[1:-1, 2:]
    shore: Cells = cells & (inner ^ LAND)
    return shore
