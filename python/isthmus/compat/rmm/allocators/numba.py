# SPDX-License-Identifier: Apache-2.0
"""The current device's resource as Numba's memory manager.

Use ``cuda.set_memory_manager(RMMNumbaManager)``, or set ``NUMBA_CUDA_MEMORY_MANAGER`` to this
module's name.
"""

from __future__ import annotations

from typing import Any

from isthmus import Device
from isthmus.compat.rmm.pylibrmm.memory_resource._per_device import resource_of
from isthmus.numba import MemoryManager

__all__ = ["RMMNumbaManager"]


class RMMNumbaManager(MemoryManager):
    """``isthmus.numba.MemoryManager`` that uses the resource current at each allocation."""

    def memalloc(self, size: int) -> Any:
        """Allocates memory for a Numba array. MemoryError if none is left."""
        current = resource_of(Device(f"cuda:{int(self.context.device.id)}"))
        self._resource = current.resource  # type: ignore[assignment] # the parent's is a pool
        return super().memalloc(size)


_numba_memory_manager = RMMNumbaManager  # the name by which Numba finds it
