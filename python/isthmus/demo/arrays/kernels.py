# SPDX-License-Identifier: Apache-2.0
"""The kernel computes the contrast of a patch, one 32-bit floating-point number.

The contrast is the sum of the absolute differences of all neighbours in a plane, along rows and
columns: 2 * 3 * SIDE * (SIDE - 1) * 255 at most, which a float represents exactly. There is a form
in OpenCL C, in CUDA C, as operations of PyTorch, as a function for ``queue.submit``, and the NumPy
reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .patches import BYTES, SIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .patches import Batch

# Each work item computes one patch.
_BODY = """
  int sum = 0;
  for (int plane = 0; plane < 3; ++plane) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const int here = patch[(plane * side + y) * side + x];
        if (x + 1 < side) sum += abs(patch[(plane * side + y) * side + x + 1] - here);
        if (y + 1 < side) sum += abs(patch[(plane * side + y + 1) * side + x] - here);
      }
    }
  }
"""
OPENCL = f"""
__kernel void contrast(__global const uchar* patches, __global float* result, int side,
                       int count) {{
  const int at = get_global_id(0);
  if (at >= count) return;
  __global const uchar* patch = patches + (size_t)at * 3 * side * side;
  {_BODY}
  result[at] = sum;
}}
"""
CUDA = f"""
extern "C" __global__ void contrast(const unsigned char* patches, float* result, int side,
                                    int count) {{
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const unsigned char* patch = patches + (size_t)at * 3 * side * side;
  {_BODY}
  result[at] = sum;
}}
"""


def reference(batch: Batch) -> NDArray[np.float32]:
    """The NumPy reference: straightforward differences in 16 bits."""
    wide = batch.astype(np.int16)
    total = sum(np.abs(np.diff(wide, axis=axis)).sum(axis=(1, 2, 3)) for axis in (2, 3))
    return np.asarray(total, np.float32)


def function(patches: memoryview, result: memoryview) -> None:
    """``contrast`` as a function for ``queue.submit(function, patches, result)``, on bytes."""
    planes = np.frombuffer(patches, np.uint8).reshape(-1, 3, SIDE, SIDE)
    total = np.zeros(len(planes), np.uint32)
    for left, right in (
        (planes[:, :, :-1], planes[:, :, 1:]),
        (planes[..., :-1], planes[..., 1:]),
    ):
        difference = np.maximum(left, right)
        difference -= np.minimum(left, right)
        total += difference.reshape(len(planes), -1).sum(axis=1, dtype=np.uint32)
    np.frombuffer(result, np.float32)[:] = total


def measure_with_torch(torch: Any, patches: Any, result: Any) -> None:
    """``contrast`` on flat tensors of bytes; the bytes of ``result`` represent floats."""
    planes = patches.view(patches.numel() // BYTES, 3, SIDE, SIDE).to(torch.int16)
    total = planes.diff(dim=2).abs().sum((1, 2, 3)) + planes.diff(dim=3).abs().sum((1, 2, 3))
    result.view(torch.float32).copy_(total)
