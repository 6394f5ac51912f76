# SPDX-License-Identifier: Apache-2.0
"""The dirty parts of the map: for each block of a coarse grid, how much was dirty and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .mask import LAND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from .mask import Cells


def lines_of(start: int, stop: int, width: int) -> Iterator[tuple[int, int, int]]:
    """The part of a range of flat elements in each row of ``width``: row, first column, column past
    the last.
    """
    for row in range(start // width, (stop - 1) // width + 1):
        yield row, max(start - row * width, 0), min(stop - row * width, width)


class DirtyMap:
    """A grid of at most (rows, columns) blocks over an array of ``shape``."""

    def __init__(self, shape: tuple[int, int], grid: tuple[int, int]) -> None:
        self._size = shape
        self._block = tuple(-(-size // limit) for size, limit in zip(shape, grid, strict=True))
        self.shape = tuple(-(-size // b) for size, b in zip(shape, self._block, strict=True))
        self._dirty = np.zeros(self.shape, np.int64)
        self._rounds = np.zeros(self.shape, np.int64)
        self._edges = np.minimum(np.arange(self.shape[1] + 1) * self._block[1], shape[1])

    def add(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Adds the dirty ranges of one round, (start, stop) in flat elements."""
        before = self._dirty.copy()
        for start, stop in ranges:
            for row, first, last in lines_of(start, stop, self._size[1]):
                edges = np.clip(self._edges, first, last)
                self._dirty[row // self._block[0]] += np.diff(edges)
        self._rounds += self._dirty > before

    def rounds(self) -> NDArray[np.int64]:
        """For each block, the number of rounds in which a cell of it was dirty."""
        return self._rounds

    def shares(self) -> NDArray[np.float64]:
        """For each block, the dirty cells of all rounds together divided by the block's cells."""
        high = np.diff(np.minimum(np.arange(self.shape[0] + 1) * self._block[0], self._size[0]))
        cells: NDArray[np.int64] = high[:, None] * np.diff(self._edges)
        return self._dirty / cells

    def land(self, cells: Cells) -> NDArray[np.float64]:
        """The share of land in each block, estimated from sixteen of its cells."""
        rows, columns = (
            np.minimum(np.arange(4 * count) * block // 4, size - 1)
            for count, block, size in zip(self.shape, self._block, cells.shape, strict=True)
        )
        bits = cells[np.ix_(rows, columns)] & LAND
        shares: NDArray[np.float64] = bits.reshape(self.shape[0], 4, -1, 4).mean(axis=(1, 3))
        return shares
