"""What RMM calls experimental."""

from __future__ import annotations

from isthmus import UnsupportedError
from isthmus.compat.rmm import _device
from isthmus.compat.rmm._cuda.pools import default_managed_pool
from isthmus.memory import PoolResource

from ._any_kind import any_kind
from ._base import DeviceMemoryResource

__all__ = ["CudaAsyncManagedMemoryResource"]


class CudaAsyncManagedMemoryResource(DeviceMemoryResource):
    """The default pool of managed memory that CUDA has from version 13 on.

    Elsewhere a pool of shared memory, which is Isthmus' own.
    """

    def __init__(self) -> None:
        device = _device.current()
        self._pool = default_managed_pool(device) if device.backend == "cuda" else None
        self._is_mixed = self._pool is not None
        if self._pool is None:
            self._use(PoolResource("shared", device))
        else:
            self._use(any_kind(self._pool, "shared", device))

    def pool_handle(self) -> int:
        """The pool's ``cudaMemPool_t``. UnsupportedError, a RuntimeError, of Isthmus' own."""
        if self._pool is None:
            raise UnsupportedError("the pool is Isthmus' own and has no handle of CUDA's")
        return self._pool.handle
