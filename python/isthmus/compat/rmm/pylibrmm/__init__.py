"""RMM's native modules by their names: device buffers, streams, resources, the logger."""

from __future__ import annotations

from .device_buffer import DeviceBuffer

__all__ = ["DeviceBuffer"]
