# SPDX-License-Identifier: Apache-2.0
"""The unified buffer, and utilities for it."""

from .accelerator import Accelerator, MemoryInfo, get_accelerator
from .array import UnifiedPart
from .batches import batches
from .buffer import UnifiedBuffer, synchronize
from .pipeline import pipeline
from .pool import BufferPool, BufferPoolStats, get_memory_pool
from .registry import BufferRegistry, UnknownBufferError, get_buffer_registry
from .state import BufferState, DirtyRanges, TransferStatistics

__all__ = [
    "Accelerator",
    "BufferPool",
    "BufferPoolStats",
    "BufferRegistry",
    "BufferState",
    "DirtyRanges",
    "MemoryInfo",
    "TransferStatistics",
    "UnifiedBuffer",
    "UnifiedPart",
    "UnknownBufferError",
    "batches",
    "get_accelerator",
    "get_buffer_registry",
    "get_memory_pool",
    "pipeline",
    "synchronize",
]
