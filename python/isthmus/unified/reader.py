# SPDX-License-Identifier: Apache-2.0
"""The thread of a pipeline that reads batches ahead and starts their uploads."""

from __future__ import annotations

import contextvars
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from isthmus._host_arrays import host_array

from .contents import readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isthmus._core import Queue

    from .buffer import UnifiedBuffer
    from .pool import BufferPool


class Failure(NamedTuple):
    """The exception of reading a batch or filling its buffer, in place of the batch."""

    error: BaseException


class Reader:
    """Fills buffers of ``pool`` from ``source``, ``depth`` at a time, until it is stopped.

    ``queues``: that of the uploads, and that of the buffers.
    """

    def __init__(
        self,
        source: Iterator[Any],
        pool: BufferPool,
        depth: int,
        queues: tuple[Queue, Queue],
        pinned: bool,
    ) -> None:
        self._source, self._pool, self._pinned = source, pool, pinned
        self._upload, self._queue = queues
        self._slots = threading.Semaphore(depth)
        self._filled: SimpleQueue[UnifiedBuffer | Failure | None] = SimpleQueue()
        self._stopped = threading.Event()
        self._idle = threading.Event()  # cleared before `_stopped` is checked
        self._idle.set()
        self._is_in_source = True
        self.in_use: dict[int, UnifiedBuffer] = {}  # filled and not recycled, by id()
        # The caller's current device, resource and tag apply to the source.
        run = contextvars.copy_context().run
        # A daemon, as a source may block indefinitely and an interrupted program must be able to
        # end.
        self._thread = threading.Thread(
            target=run, args=(self._run,), name="isthmus.pipeline", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def get(self) -> UnifiedBuffer | Failure | None:
        """Waits for the next filled buffer and returns it. None at the end."""
        return self._filled.get()

    @property
    def is_reading(self) -> bool:
        """Whether ``get`` would wait for the source, and not for a copy."""
        return self._is_in_source and self._filled.empty()

    def recycle(self, buf: UnifiedBuffer) -> None:
        """Allows a buffer to be filled again. Pre: it is no longer used."""
        del self.in_use[id(buf)]
        self._pool.release(buf)
        self._slots.release()

    def stop(self) -> None:
        """Drops all batches that are read from now on."""
        self._stopped.set()
        self._slots.release()

    def join(self, timeout: float | None) -> None:
        """Returns when the thread has ended, or after that time."""
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def is_idle(self, timeout: float | None) -> bool:
        """Whether the reader no longer uses any buffer; waits at most ``timeout`` seconds.

        Pre: it was stopped. The thread itself may still be blocked in the source.
        """
        return self._idle.wait(timeout)

    def _run(self) -> None:
        try:
            for batch in self._source:
                self._is_in_source = False
                self._slots.acquire()
                self._idle.clear()
                if self._stopped.is_set():
                    return
                filled = self._fill(batch)
                self._idle.set()
                self._is_in_source = True  # set before the buffer is available, for `is_reading`
                self._filled.put(filled)
                if self._stopped.is_set():
                    return
            self._filled.put(None)
        except BaseException as failed:  # `get` returns any exception to the caller
            self._filled.put(Failure(failed))
        finally:
            self._idle.set()
            del self._source

    def _fill(self, batch: Any) -> UnifiedBuffer:
        array = host_array(readable(batch))
        buf = self._pool.acquire(array.shape, array.dtype, pinned=self._pinned, queue=self._queue)
        self.in_use[id(buf)] = buf
        buf.copy_from(array)
        buf.sync_to_device(queue=self._upload, blocking=False)
        return buf
