# SPDX-License-Identifier: Apache-2.0
"""The memory interface of ``pydotcompute.core``."""

from .accelerator import Accelerator
from .memory_pool import MemoryPool
from .unified_buffer import BufferState, UnifiedBuffer

__all__ = ["Accelerator", "BufferState", "MemoryPool", "UnifiedBuffer"]
