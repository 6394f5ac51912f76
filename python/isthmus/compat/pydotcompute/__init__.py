# SPDX-License-Identifier: Apache-2.0
"""PyDotCompute's memory interface on Isthmus: that of release 0.2.0 and that of its documentation.

Change the imports: ``from isthmus.compat.pydotcompute import UnifiedBuffer``. The submodules have
the same paths: ``core.unified_buffer``, ``core.memory_pool``, ``core.accelerator``, ``exceptions``.
Actors, messages, kernels and Metal are not provided.
"""

from .core import Accelerator, BufferState, MemoryPool, UnifiedBuffer
from .core.accelerator import DeviceProperties, get_accelerator
from .core.memory_pool import PoolStatistics, configure_memory_pool, get_memory_pool
from .exceptions import (
    BufferError,  # noqa: A004 (its name there)
    BufferNotAllocatedError,
    BufferSyncError,
    PyDotComputeError,
)

__all__ = [
    "Accelerator",
    "BufferError",
    "BufferNotAllocatedError",
    "BufferState",
    "BufferSyncError",
    "DeviceProperties",
    "MemoryPool",
    "PoolStatistics",
    "PyDotComputeError",
    "UnifiedBuffer",
    "configure_memory_pool",
    "get_accelerator",
    "get_memory_pool",
]
