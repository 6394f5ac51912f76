# SPDX-License-Identifier: Apache-2.0
"""RMM's native modules under their names: device buffers, streams, resources, the logger."""

from __future__ import annotations

from .cuda_stream_pool import CudaStreamPool
from .device_buffer import DeviceBuffer
from .stream import CudaStreamFlags

__all__ = ["CudaStreamFlags", "CudaStreamPool", "DeviceBuffer"]
