"""PyDotCompute's memory side, as its 0.2.0 releases it and as it documents it, on Isthmus.

Change the imports: ``from isthmus.compat.pydotcompute import UnifiedBuffer``. Paths below are the
same: ``core.unified_buffer``, ``core.memory_pool``, ``core.accelerator``, ``exceptions``. Actors,
messages and kernels are not here, nor is Metal.
"""

from .core import Accelerator, BufferState, MemoryPool, UnifiedBuffer
from .core.accelerator import get_accelerator

__all__ = ["Accelerator", "BufferState", "MemoryPool", "UnifiedBuffer", "get_accelerator"]
