# SPDX-License-Identifier: Apache-2.0
"""The current device's resource as CuPy's allocator."""

from __future__ import annotations

from typing import Any

from isthmus.compat.rmm.pylibrmm.device_buffer import DeviceBuffer
from isthmus.compat.rmm.pylibrmm.stream import Stream

try:
    import cupy
except ImportError:
    cupy = None

__all__ = ["rmm_cupy_allocator"]


def rmm_cupy_allocator(nbytes: int) -> Any:
    """An allocator for ``cupy.cuda.set_allocator`` that uses the resource current at each call.

    It allocates on CuPy's current stream; a ``DeviceBuffer`` owns the memory. Raises
    ModuleNotFoundError without CuPy, MemoryError if no memory is left. ``isthmus.cupy`` is faster.
    """
    if cupy is None:
        raise ModuleNotFoundError("No module named 'cupy'", name="cupy")
    buffer = DeviceBuffer(size=nbytes, stream=Stream(cupy.cuda.get_current_stream()))
    address = buffer.ptr
    # CuPy derives the device from the address, which it cannot for address 0.
    device = -1 if address else cupy.cuda.device.get_device_id()
    memory = cupy.cuda.UnownedMemory(address, nbytes, buffer, device)
    return cupy.cuda.MemoryPointer(memory, 0)
