# SPDX-License-Identifier: Apache-2.0
"""The kernels of the device: one counts land, the other stamps bands of the map with a number.

``count`` computes two integers for each row: its number of land cells, and the sum of their
columns, which also detects a misplaced cell (at most 43200 * 43199 / 2, less than 2**32). ``stamp``
preserves each cell's lowest bit and writes a number above it. There are forms in OpenCL C, in CUDA
C, as operations of PyTorch, and as functions for ``queue.submit``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .mask import LAND

if TYPE_CHECKING:
    from collections.abc import Callable

    from .mask import Cells

STAMPS = 127  # numbers that fit above the lowest bit, from 1
ITEMS_PER_ROW = 256  # each strides by this many, so that adjacent items read adjacent bytes
OPENCL = """
__kernel void count(__global const uchar* cells, __global uint* counts, int width) {
  __global const uchar* row = cells + (size_t)get_global_id(1) * width;
  uint land = 0, columns = 0;
  for (int x = get_global_id(0); x < width; x += get_global_size(0)) {
    const uint one = row[x] & 1;
    land += one;
    columns += one * x;
  }
  atomic_add(counts + 2 * get_global_id(1), land);
  atomic_add(counts + 2 * get_global_id(1) + 1, columns);
}

__kernel void stamp(__global uchar* cells, int number, int size) {
  const int at = get_global_id(0);
  if (at < size) cells[at] = (cells[at] & 1) | (number << 1);
}
"""

CUDA = """
extern "C" __global__ void count(const unsigned char* cells, unsigned* counts, int width) {
  const unsigned char* row = cells + (size_t)blockIdx.y * width;
  unsigned land = 0, columns = 0;
  for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < width; x += gridDim.x * blockDim.x) {
    const unsigned one = row[x] & 1;
    land += one;
    columns += one * x;
  }
  atomicAdd(counts + 2 * blockIdx.y, land);
  atomicAdd(counts + 2 * blockIdx.y + 1, columns);
}

extern "C" __global__ void stamp(unsigned char* cells, int number, int size) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < size) cells[at] = (cells[at] & 1) | (number << 1);
}
"""

_BAND = 64  # rows processed at a time


def count_rows(cells: Cells, counts: Any) -> None:
    """Fills ``counts``, of shape (rows, 2) and any numeric type that can hold the sums."""
    columns = np.arange(cells.shape[1], dtype=np.float64)  # represents the sums exactly
    for first in range(0, cells.shape[0], _BAND):
        land = cells[first : first + _BAND] & LAND
        counts[first : first + _BAND, 0] = land.sum(axis=1, dtype=np.uint32)
        counts[first : first + _BAND, 1] = land @ columns


def stamp_cells(cells: Cells, number: int) -> None:
    """Writes the number, 1 to STAMPS, above the lowest bit of every cell."""
    np.bitwise_and(cells, LAND, out=cells)
    np.bitwise_or(cells, number << 1, out=cells)


def counting(width: int) -> Callable[[memoryview, memoryview], None]:
    """``count`` as a function for ``queue.submit(function, cells, counts)``."""

    def count(cells: memoryview, counts: memoryview) -> None:
        rows = np.frombuffer(cells, np.uint8).reshape(-1, width)
        count_rows(rows, np.frombuffer(counts, np.uint32).reshape(-1, 2))

    return count


def stamping(number: int) -> Callable[[memoryview], None]:
    """``stamp`` as a function for ``queue.submit(function, cells)``."""

    def stamp(cells: memoryview) -> None:
        stamp_cells(np.frombuffer(cells, np.uint8), number)

    return stamp


def count_with_torch(torch: Any, cells: Any, counts: Any) -> None:
    """``count`` on a tensor of shape (rows, width); ``counts`` is int32 of shape (rows, 2)."""
    columns = torch.arange(cells.shape[1], dtype=torch.int32, device=cells.device)
    for band, result in zip(cells.split(_BAND), counts.split(_BAND), strict=True):
        land = band & int(LAND)
        result[:, 0] = land.sum(1)
        result[:, 1] = (land * columns).sum(1)


def stamp_with_torch(cells: Any, number: int) -> None:
    """``stamp`` on a tensor of bytes, of any shape."""
    cells.bitwise_and_(int(LAND)).bitwise_or_(number << 1)
