# SPDX-License-Identifier: Apache-2.0
"""A pool of streams that are created once and returned in rotation."""

from __future__ import annotations

from itertools import count

from isthmus.compat.rmm._sizes import RefusedError, count_of

from .stream import CudaStreamFlags, Stream

__all__ = ["CudaStreamPool"]


class CudaStreamPool:
    """``pool_size`` streams on the current device, created by the constructor.

    RuntimeError if ``pool_size`` is 0. Thread-safe.
    """

    def __init__(
        self, pool_size: int = 16, flags: CudaStreamFlags | int = CudaStreamFlags.SYNC_DEFAULT
    ) -> None:
        size = count_of(pool_size, "pool_size")
        if size == 0:
            raise RefusedError("pool_size must be 1 or more, not 0")
        self._streams = tuple(Stream(flags=flags) for _ in range(size))
        self._turns = count()

    def get_stream(self, stream_id: int | None = None) -> Stream:
        """The next stream in rotation, or the one of number ``stream_id`` modulo the size."""
        number = next(self._turns) if stream_id is None else count_of(stream_id, "stream_id")
        return self._streams[number % len(self._streams)]

    def get_pool_size(self) -> int:
        """The number of streams."""
        return len(self._streams)
