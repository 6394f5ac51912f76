"""Streams that are made once and handed out in turn."""

from __future__ import annotations

from itertools import count

from isthmus.compat.rmm._sizes import RefusedError, count_of

from .stream import CudaStreamFlags, Stream

__all__ = ["CudaStreamPool"]


class CudaStreamPool:
    """``pool_size`` streams on the current device, made at once.

    RuntimeError for 0 of them. May be used from any thread.
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
        """The next one in turn, or that of a number, of which what exceeds the size goes round."""
        number = next(self._turns) if stream_id is None else count_of(stream_id, "stream_id")
        return self._streams[number % len(self._streams)]

    def get_pool_size(self) -> int:
        """How many they are."""
        return len(self._streams)
