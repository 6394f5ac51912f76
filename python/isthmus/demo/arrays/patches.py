# SPDX-License-Identifier: Apache-2.0
"""Real pixels: square patches of photographs from installed packages, all at different positions.

A patch is a position in a photograph or its mirror image; it has three planes of ``SIDE`` rows of
``SIDE`` bytes. The order is random and determined by the seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isthmus.demo import photo

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Batch = NDArray[np.uint8]

SIDE = 10
BYTES = 3 * SIDE * SIDE


class Patches:
    """Batches of patches of some photographs, each of shape (height, width, 3)."""

    def __init__(self, photographs: list[NDArray[np.uint8]], seed: int) -> None:
        self._windows = [_windows(image) for each in photographs for image in (each, each[:, ::-1])]
        self._ends = np.cumsum([image.shape[0] * image.shape[1] for image in self._windows])
        self._order = np.random.default_rng(seed).permutation(self._ends[-1])

    @property
    def count(self) -> int:
        """The number of different patches."""
        return int(self._ends[-1])

    def batch(self, number: int, size: int) -> Batch:
        """Batch ``number`` of ``size`` patches: (size, 3, SIDE, SIDE). Wraps around at the end."""
        indices = np.arange(number * size, (number + 1) * size) % self.count
        return self.select(self._order[indices])

    def select(self, indices: NDArray[np.int64]) -> Batch:
        """The patches of these numbers."""
        batch = np.empty((len(indices), 3, SIDE, SIDE), np.uint8)
        photographs = np.searchsorted(self._ends, indices, side="right")
        for index, windows in enumerate(self._windows):
            mine = np.flatnonzero(photographs == index)
            inside = indices[mine] - (self._ends[index] - windows.shape[0] * windows.shape[1])
            rows, columns = np.divmod(inside, windows.shape[1])
            batch[mine] = windows[rows, columns]
        return batch


def _windows(photograph: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A view of all patches: (rows of positions, columns of positions, 3, SIDE, SIDE)."""
    return np.lib.stride_tricks.sliding_window_view(photograph, (SIDE, SIDE), axis=(0, 1))


def load(seed: int) -> tuple[list[str], Patches]:
    """The paths of the photographs found, and their patches."""
    paths = photo.find_all()
    return paths, Patches([photo.load(path) for path in paths], seed)
