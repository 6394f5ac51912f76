# SPDX-License-Identifier: Apache-2.0
"""The user-defined kernel: Sobel edges of each colour as ink on white paper, in integers.

For each byte it computes ``255 - min(255, (|gx| + |gy|) >> 1)``, with neighbours at a distance of
``reach`` pixels; neighbours outside of the picture are replaced by the edge. A kernel in OpenCL C,
one in CUDA C, PyTorch tensors and a function for ``queue.submit`` compute the same bytes as the
NumPy reference, with which they are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]

# Each work item computes 16 bytes: as a vector if all neighbours are inside, else one by one.
BYTES_PER_ITEM = 16
OPENCL = """
#define TAP(line, at) convert_short16(vload16(0, (line) + (at)))

uchar ink_at(__global const uchar* above, __global const uchar* here, __global const uchar* below,
             int at, int row, int reach) {
  const int left = at < reach ? at % 3 : at - reach;
  const int right = at >= row - reach ? row - 3 + at % 3 : at + reach;
  const int gx = above[right] + 2 * here[right] + below[right]
               - above[left] - 2 * here[left] - below[left];
  const int gy = below[left] + 2 * below[at] + below[right]
               - above[left] - 2 * above[at] - above[right];
  return 255 - min(255, (int)(abs(gx) + abs(gy)) >> 1);
}

__kernel __attribute__((vec_type_hint(short16)))  // the code is vectorized already
void ink(__global const uchar* photo, __global uchar* result, int width, int height,
         int reach_in_pixels) {
  const int row = 3 * width;
  const int reach = 3 * reach_in_pixels;
  const int at = 16 * get_global_id(0);
  const int y = get_global_id(1);
  __global const uchar* above = photo + (size_t)max(y - reach_in_pixels, 0) * row;
  __global const uchar* here = photo + (size_t)y * row;
  __global const uchar* below = photo + (size_t)min(y + reach_in_pixels, height - 1) * row;
  __global uchar* line = result + (size_t)y * row;
  if (at < reach || at + 16 + reach > row) {
    for (int each = at; each < min(at + 16, row); ++each) {
      line[each] = ink_at(above, here, below, each, row, reach);
    }
    return;
  }
  const short16 corners = TAP(below, at + reach) - TAP(above, at - reach);
  const short16 others = TAP(above, at + reach) - TAP(below, at - reach);
  const short16 across = TAP(here, at + reach) - TAP(here, at - reach);
  const short16 down = TAP(below, at) - TAP(above, at);
  const ushort16 gx = abs(corners + others + across + across);
  const ushort16 gy = abs(corners - others + down + down);
  const ushort16 strength = min((gx + gy) >> (ushort16)1, (ushort16)255);
  vstore16(convert_uchar16((ushort16)255 - strength), 0, line + at);
}
"""

# Each thread computes one byte.
CUDA = """
extern "C" __global__ void ink(const unsigned char* photo, unsigned char* result, int width,
                               int height, int reach_in_pixels) {
  const int row = 3 * width;
  const int reach = 3 * reach_in_pixels;
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y;
  if (at >= row) return;
  const unsigned char* above = photo + (size_t)max(y - reach_in_pixels, 0) * row;
  const unsigned char* here = photo + (size_t)y * row;
  const unsigned char* below = photo + (size_t)min(y + reach_in_pixels, height - 1) * row;
  const int left = at < reach ? at % 3 : at - reach;
  const int right = at >= row - reach ? row - 3 + at % 3 : at + reach;
  const int gx = above[right] + 2 * here[right] + below[right]
               - above[left] - 2 * here[left] - below[left];
  const int gy = below[left] + 2 * below[at] + below[right]
               - above[left] - 2 * above[at] - above[right];
  result[(size_t)y * row + at] = 255 - min(255, (abs(gx) + abs(gy)) >> 1);
}
"""

# Rows of tensors processed at a time, to keep intermediate tensors small.
_TENSOR_BAND = 1024
# Rows processed at a time, so that intermediate values fit in the processor's cache.
_BAND = 8
_SOBEL_X = ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1))


def function(shape: tuple[int, ...], reach: int) -> Callable[[memoryview, memoryview], None]:
    """The kernel as a function for ``queue.submit(function, photo, result)``."""

    def ink(photo: memoryview, result: memoryview) -> None:
        source = np.frombuffer(photo, np.uint8).reshape(shape)
        target = np.frombuffer(result, np.uint8).reshape(shape)
        for rows in _bands(shape[0]):
            target[rows] = _separated(source, rows, reach)

    return ink


def draw_with_torch(torch: Any, photo: Any, result: Any, reach: int) -> None:
    """The kernel as operations of PyTorch on tensors of shape (height, width, 3)."""
    lines = torch.arange(photo.shape[0], device=photo.device)
    columns = torch.arange(photo.shape[1], device=photo.device)

    def row(rows: Any, step: int) -> Any:
        return photo[(rows + step).clamp(0, photo.shape[0] - 1)].to(torch.int16)

    def shifted(values: Any, step: int) -> Any:
        return values[:, (columns + step).clamp(0, photo.shape[1] - 1)]

    for band in lines.split(_TENSOR_BAND):
        above, here, below = (row(band, step) for step in (-reach, 0, reach))
        smooth, slope = above + 2 * here + below, below - above
        gx = shifted(smooth, reach) - shifted(smooth, -reach)
        gy = shifted(slope, -reach) + 2 * slope + shifted(slope, reach)
        result[band] = (255 - ((gx.abs() + gy.abs()) >> 1).clamp(max=255)).to(torch.uint8)


def reference(photo: Picture, reach: int) -> Picture:
    """The NumPy reference: the sum over the nine neighbours, written out."""
    result = np.empty_like(photo)
    for rows in _bands(photo.shape[0]):
        above, here, below = (_row_of(photo, rows, step, reach) for step in (-1, 0, 1))
        gx: Any = 0
        gy: Any = 0
        for j, row in enumerate((above, here, below)):
            for i in range(3):
                values = row[:, i * reach : i * reach + photo.shape[1]]
                gx, gy = _add(gx, _SOBEL_X[j][i], values), _add(gy, _SOBEL_X[i][j], values)
        result[rows] = _as_ink(gx, gy)
    return result


def _bands(height: int) -> Iterator[slice]:
    return (slice(y, min(y + _BAND, height)) for y in range(0, height, _BAND))


def _row_of(photo: Picture, rows: slice, step: int, reach: int) -> NDArray[np.int16]:
    """The rows ``step * reach`` away, padded at both ends with ``reach`` copies of the edge."""
    wanted = np.clip(np.arange(rows.start, rows.stop) + step * reach, 0, photo.shape[0] - 1)
    return np.pad(photo[wanted].astype(np.int16), ((0, 0), (reach, reach), (0, 0)), "edge")


def _add(total: Any, weight: int, values: NDArray[np.int16]) -> Any:
    return total if weight == 0 else total + weight * values


def _as_ink(gx: NDArray[np.int16], gy: NDArray[np.int16]) -> Picture:
    strength = (np.abs(gx) + np.abs(gy)) >> 1
    ink: Picture = (255 - np.minimum(strength, 255)).astype(np.uint8)
    return ink


def _separated(photo: Picture, rows: slice, reach: int) -> Picture:
    """Separated into columns first, then rows: half the work, the same integers."""
    above, here, below = (_row_of(photo, rows, step, reach) for step in (-1, 0, 1))
    smooth = above + 2 * here + below
    slope = below - above
    gx = smooth[:, 2 * reach :] - smooth[:, : -2 * reach]
    gy = slope[:, 2 * reach :] + 2 * slope[:, reach:-reach] + slope[:, : -2 * reach]
    return _as_ink(gx, gy)
