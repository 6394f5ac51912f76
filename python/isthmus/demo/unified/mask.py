# SPDX-License-Identifier: Apache-2.0
"""A real map, from an installed package: the cells of the Earth that are land.

It is derived from the GLOBE elevations at 30 arc seconds: 21600 rows from the north by 43200
columns from 180 degrees west, of one byte each: 1 is land, 0 is sea. The package's own module would
load all 933 MB.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.demo import shipped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Cells = NDArray[np.uint8]

LAND = np.uint8(1)  # bit of a cell
ROWS, COLUMNS = 21600, 43200
_FILE = ("global_land_mask", "globe_combined_mask_compressed.npz")
_MIDDLE = 5400  # the row at 45 degrees north, around which there is the most coast
_CHUNK = 4 << 20
_CELL_KM = 6371.0 * np.pi / ROWS  # from north to south; from west to east at the equator


@dataclass
class Mask:
    """Rows of the map around 45 degrees north: bytes of 0 and 1, and the latitude of each row."""

    path: str
    cells: Cells
    latitudes: NDArray[np.float64]

    def area(self, land_cells: NDArray[np.uint32]) -> float:
        """The area of land in square kilometres, from the number of land cells in each row."""
        return float(land_cells @ np.cos(np.radians(self.latitudes))) * _CELL_KM**2


def find() -> str:
    """The path of the map. FileNotFoundError if the package is not installed."""
    path = shipped.find(*_FILE)
    if path is None:
        raise FileNotFoundError("no map found: pip install global-land-mask, or 'isthmus[demo]'")
    return path


def load(path: str, rows: int) -> Mask:
    """Loads ``rows`` rows of the map, 1 to ROWS, allocating only COLUMNS bytes for each."""
    first = min(max(_MIDDLE - rows // 2, 0), ROWS - rows)
    with zipfile.ZipFile(path) as archive:
        with archive.open("lat.npy") as stream:
            latitudes = np.lib.format.read_array(stream)
        with archive.open("mask.npy") as stream:
            _check_header(stream, path)
            _skip(stream, first * COLUMNS)
            cells = np.empty((rows, COLUMNS), np.uint8)
            _fill(stream, cells.data.cast("B"), path)
    np.bitwise_xor(cells, LAND, out=cells)  # in the package 1 is sea
    return Mask(path, cells, latitudes[first : first + rows])


def _check_header(stream: Any, path: str) -> None:
    np.lib.format.read_magic(stream)
    shape, by_columns, kind = np.lib.format.read_array_header_1_0(stream)
    if (shape, by_columns, kind) != ((ROWS, COLUMNS), False, np.dtype(np.bool_)):
        raise ValueError(f"{path} contains {shape} of {kind}, not the expected map")


def _skip(stream: Any, nbytes: int) -> None:
    while nbytes:
        nbytes -= len(stream.read(min(nbytes, _CHUNK)))


def _fill(stream: Any, target: memoryview, path: str) -> None:
    position = 0
    while position < len(target):
        count = stream.readinto(target[position : position + _CHUNK])
        if not count:
            raise ValueError(f"{path} is truncated")
        position += count
