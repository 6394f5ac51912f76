# SPDX-License-Identifier: Apache-2.0
"""Isthmus as Numba's memory manager.

Call ``numba.cuda.set_memory_manager(isthmus.numba.MemoryManager)`` before Numba uses a device, or
set ``NUMBA_CUDA_MEMORY_MANAGER=isthmus.numba`` in the environment. Numba does not report which
stream an array is used on, so freed memory is reused after all work that was on the streams at the
time of the free has completed. This excludes streams that do not synchronize with the default
stream: wait for their work before the last reference to an array is dropped.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from . import Buffer, Queue, UnsupportedError, _frameworks

try:
    from numba import cuda as _cuda
except ImportError as absent:
    raise ImportError(
        "isthmus.numba needs Numba with CUDA: pip install 'numba-cuda[cu13]', or the extra for "
        "your CUDA version",
        name="numba",
    ) from absent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["MemoryManager"]

_LEGACY = 1  # CU_STREAM_LEGACY, ordered after all streams that wait for it


class _DefaultStream:
    def __init__(self, device: int) -> None:
        self.device_index = device

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, _LEGACY


class MemoryManager(_cuda.HostOnlyCUDAMemoryManager):  # type: ignore[misc]
    """Allocates from the pool that CuPy and PyTorch also use by default on each device.

    Numba still allocates pinned and managed memory itself. One object serves one context.
    """

    @property
    def interface_version(self) -> int:
        """The version of Numba's interface for memory managers."""
        return 1

    def initialize(self) -> None:
        """Called by Numba each time that it makes the context current."""
        if not hasattr(self, "_queue"):
            number = int(self.context.device.id)
            self._resource = _frameworks.device_pool(number)
            self._queue = Queue.from_stream(_DefaultStream(number))
            self._live: dict[int, Buffer] = {}  # by a number, since addresses are reused
            self._last_id = 0
            self._deferred: list[Buffer] = []
            self._deferring = 0

    def memalloc(self, size: int) -> Any:
        """Memory for a Numba array. MemoryError if there is none left."""
        buffer = Buffer(size, queue=self._queue, resource=self._resource)
        self._last_id += 1
        self._live[self._last_id] = buffer
        pointer = _pointer_type()(buffer.ptr)
        return _cuda.MemoryPointer(
            self.context, pointer, size, finalizer=self._finalizer(self._last_id)
        )

    def get_memory_info(self) -> Any:
        """Free memory is the sum of the driver's free memory and the pool's cached memory."""
        memory = self._queue.device.memory_info()
        return _cuda.MemoryInfo(free=memory[0] + self._resource.free_bytes, total=memory[1])

    def get_ipc_handle(self, memory: object) -> Any:  # noqa: ARG002
        """UnsupportedError: memory of a pool that remaps cannot be shared with other processes."""
        raise UnsupportedError(
            "memory of Isthmus' pools cannot be shared with other processes through Numba: "
            "create such an array before set_memory_manager, with Numba's own manager"
        )

    def reset(self) -> None:
        """Frees the memory that arrays still hold, as Numba does when it closes a context."""
        super().reset()
        if hasattr(self, "_queue"):
            self._live.clear()
            self._deferred.clear()
            self._resource.trim()

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """Defers all frees until the end of the block."""
        with super().defer_cleanup():
            self._deferring += 1
            try:
                yield
            finally:
                self._deferring -= 1
                if self._deferring == 0:
                    self._deferred.clear()

    def _finalizer(self, number: int) -> Callable[[], None]:
        def finalize() -> None:
            buffer = self._live.pop(number, None)
            if buffer is not None and self._deferring:
                self._deferred.append(buffer)

        return finalize


def _pointer_type() -> Any:
    from ctypes import c_void_p

    return c_void_p


_numba_memory_manager = MemoryManager  # the name that Numba looks up
