"""The current device's resource as Numba's memory manager.

``cuda.set_memory_manager(RMMNumbaManager)``, or ``NUMBA_CUDA_MEMORY_MANAGER=`` this module's name.
"""

from __future__ import annotations

from typing import Any

from isthmus import Device
from isthmus.compat.rmm.pylibrmm.memory_resource._current import resource_of
from isthmus.numba import MemoryManager

__all__ = ["RMMNumbaManager"]


class RMMNumbaManager(MemoryManager):
    """``isthmus.numba.MemoryManager`` with memory of the resource that is current then."""

    def memalloc(self, size: int) -> Any:
        """Memory for an array of Numba's. MemoryError where there is none left."""
        current = resource_of(Device(f"cuda:{int(self.context.device.id)}"))
        self._resource = current.resource  # type: ignore[assignment] # a pool's in the parent
        return super().memalloc(size)


_numba_memory_manager = RMMNumbaManager  # by which Numba finds it
