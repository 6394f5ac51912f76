"""What RMM calls experimental."""

from __future__ import annotations

from isthmus import UnsupportedError
from isthmus.compat.rmm import _device
from isthmus.memory import PoolResource

from ._base import DeviceMemoryResource

__all__ = ["CudaAsyncManagedMemoryResource"]


class CudaAsyncManagedMemoryResource(DeviceMemoryResource):
    """A pool of shared memory, on any device and with any CUDA."""

    def __init__(self) -> None:
        self._use(PoolResource("shared", _device.current()))

    def pool_handle(self) -> int:
        """UnsupportedError, a RuntimeError: the pool is Isthmus' own, not one of the driver's."""
        raise UnsupportedError("the pool is Isthmus' own and has no handle of CUDA's")
