# SPDX-License-Identifier: Apache-2.0
"""The resources that RMM calls experimental."""

from __future__ import annotations

from isthmus import UnsupportedError
from isthmus.compat.rmm import _device
from isthmus.compat.rmm._cuda.pools import default_managed_pool
from isthmus.memory import PoolResource

from ._any_kind import any_kind
from ._base import DeviceMemoryResource

__all__ = ["CudaAsyncManagedMemoryResource"]


class CudaAsyncManagedMemoryResource(DeviceMemoryResource):
    """CUDA's default pool of managed memory, which exists from CUDA 13 on.

    Without that pool, a pool of Isthmus with shared memory.
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
        """The pool's ``cudaMemPool_t``. UnsupportedError, a RuntimeError, for Isthmus' pool."""
        if self._pool is None:
            raise UnsupportedError("the pool is a pool of Isthmus, which has no CUDA handle")
        return self._pool.handle
