# SPDX-License-Identifier: Apache-2.0
"""``pipeline``: overlaps uploads, work and downloads of neighbouring batches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sized
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from isthmus._core import Device, Error, Event, Queue, copy_nd
from isthmus._iterables import iterator

from .layout import at_least
from .pool import BufferPool, queue_of
from .reader import Failure, Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from .buffer import UnifiedBuffer

__all__ = ["pipeline"]

_INTERFACES = ("__cuda_array_interface__", "__sycl_usm_array_interface__")


def pipeline(
    batches: Iterable[Any],
    fn: Callable[[Any], Any],
    depth: int = 2,
    *,
    device: Device | str | None = None,
    queue: Queue | None = None,
    pinned: bool = True,
    copy: bool = True,
    progress: bool = False,
    total: int | None = None,
) -> Generator[Any, None, None]:
    """Yields the results of ``fn`` for each batch, in order.

    While the device works on one batch, the next one is read and uploaded and, from ``depth=3`` on,
    the previous one is downloaded. ``batches``: arrays, or objects that NumPy converts to arrays,
    of any shape and dtype. They are read by a thread of the pipeline, one ahead, in the caller's
    context.

    ``fn(array)`` is called with the batch as in ``UnifiedBuffer.device``, on the caller's thread,
    with ``queue`` as the current queue, and submits its work there (None: the default queue of
    ``device``, or the current one). It must wait itself for work that it submits to other queues.
    The yielded value depends on its result:

    - None, or the array itself: it worked in place, and the batch's new contents are yielded, as a
      new array, or with ``copy=False`` as a view that is valid until the next step;
    - an ``Array`` or another array with ``__cuda_array_interface__`` or
      ``__sycl_usm_array_interface__``: downloaded, as a NumPy array;
    - anything else: unchanged, except that a NumPy array over the batch's memory is copied, or with
      ``copy=False`` valid until the next step.

    At most ``depth`` batches (1: nothing overlaps) are in memory at a time, in unified buffers that
    are reused, ``pinned`` or not. ``progress`` shows a bar on stderr if that is a terminal; the
    number of batches is ``total``, or their length if they have one.

    An error of ``batches``, of ``fn`` or of a copy is raised after the results before it. At the
    end, early or not, all memory is returned and the thread is joined: if ``batches`` blocks,
    ``close()`` waits for it. An exception of a signal handler, such as Ctrl-C, does not wait: the
    memory is released once it is unused, and later batches are dropped. In ``fn`` an Exception
    counts as an error of ``fn``, whatever raised it. No work starts before the first result is
    requested. TypeError and ValueError for impossible arguments are raised at once.
    """
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    if total is None and isinstance(batches, Sized):
        total = len(batches)
    work = queue_of(device, queue)
    source = iterator("batches", batches)
    return _Run(source, fn, at_least(1, "depth", depth), work, pinned, copy).results(
        progress, total
    )


class _Launched(NamedTuple):
    """A batch whose work and download are on their queues."""

    buf: UnifiedBuffer
    events: tuple[Event, ...]
    """The events of all operations that use the buffer, and of other downloads."""
    value: Any
    is_in_place: bool

    @property
    def done(self) -> bool:
        return all(event.done for event in self.events)


class _Run:
    """One pass over the batches."""

    def __init__(
        self,
        source: Iterator[Any],
        fn: Callable[[Any], Any],
        depth: int,
        work: Queue,
        pinned: bool,
        copy: bool,
    ) -> None:
        self._source, self._fn, self._depth = source, fn, depth
        self._work, self._pinned, self._copy = work, pinned, copy
        self._launched: deque[_Launched] = deque()
        # An error of the source, fn or a copy; raised after the launched batches were delivered.
        self._failure: BaseException | None = None
        self._exhausted = False
        self._is_interrupted = False

    def results(self, progress: bool, total: int | None) -> Generator[Any, None, None]:
        from isthmus.cli.output import progress as bar

        # On the same queue as the work, copies would be ordered after it.
        upload, self._download = (
            Queue(self._work.device, context=self._work.context) for _ in range(2)
        )
        pool = BufferPool(self._depth, (1 << 63) - 1)
        reader = Reader(self._source, pool, self._depth, (upload, self._work), self._pinned)
        try:
            with bar("pipeline", quiet=not progress) as report:
                suffix = "" if total is None else f" of {total}"
                for number, launched in enumerate(self._steps(reader), 1):
                    yield from self._deliver(launched, reader)
                    report(f"{number}{suffix}", min(number / total, 1.0) if total else 0.0)
            if self._failure is not None:
                raise self._failure
        except BaseException as error:
            self._is_interrupted = self._is_interrupted or self._is_interrupt(error)
            raise
        finally:
            self._failure = None  # its frames refer to this object
            self._end(reader, upload, pool)

    def _is_interrupt(self, error: BaseException) -> bool:
        # A signal handler may raise any exception, so all exceptions but these are interrupts.
        is_expected = error is self._failure or isinstance(
            error, (GeneratorExit, Error, MemoryError)
        )
        return not is_expected

    def _steps(self, reader: Reader) -> Iterator[_Launched]:
        """Launches batches, and yields them in order, each as late as the overlap requires."""
        reader.start()
        while not self._exhausted or self._launched:
            while self._launched and self._is_due(reader):
                yield self._launched.popleft()
            if not self._exhausted:
                self._step(reader)

    def _is_due(self, reader: Reader) -> bool:
        # While the next batch is being uploaded, this one is not yet due: the next one can be
        # launched soon, before the wait for this one. While the next batch is being read, the time
        # until it can be launched is unknown.
        return (
            self._exhausted
            or len(self._launched) >= self._depth
            or self._launched[0].done
            or reader.is_reading
        )

    def _step(self, reader: Reader) -> None:
        try:
            item = reader.get()
        except BaseException:  # get() raises nothing: this is from a signal handler
            self._is_interrupted = True
            raise
        if item is None or isinstance(item, Failure):
            self._exhausted = True
            self._failure = item.error if item is not None else None
            return
        try:
            self._launched.append(self._launch(item))
        except Exception as failed:  # others, such as KeyboardInterrupt, do not wait for results
            if failed is not self._failure and not isinstance(failed, _COPY_ERRORS):
                raise
            self._exhausted = True
            self._failure = failed

    def _launch(self, buf: UnifiedBuffer) -> _Launched:
        import numpy as np

        array = buf.device
        with self._work:
            result = self._call(self._fn, array)
        work_done = self._work.fence()
        if result is None or result is array:
            buf.mark_device_dirty()
            self._download.fence(after=[work_done])
            download = buf.sync_to_host(queue=self._download, blocking=False)
            return _Launched(
                buf, (work_done,) if download is None else (work_done, download), None, True
            )
        if isinstance(result, (np.ndarray, np.generic)):
            if self._copy and isinstance(array, np.ndarray) and np.may_share_memory(result, array):
                result = result.copy()
            return _Launched(buf, (work_done,), result, False)
        host = self._call(_empty_like, result)
        if host is None:
            return _Launched(buf, (work_done,), result, False)
        events = (work_done, *self._fetch(host, result, work_done))
        return _Launched(buf, events, host, False)

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function of the user: its exceptions are failures of the pipeline."""
        try:
            return function(*args)
        except Exception as failed:
            self._failure = failed
            raise

    def _fetch(self, host: Any, result: Any, work_done: Event) -> tuple[Event, ...]:
        if host.size == 0:
            return ()
        download = copy_nd(host, result, queue=self._download, after=[work_done], blocking=False)
        return () if download is None else (download,)

    def _deliver(self, launched: _Launched, reader: Reader) -> Iterator[Any]:
        Event.wait_for(launched.events)
        value = launched.buf.to_numpy() if launched.is_in_place else launched.value
        if self._copy:
            if launched.is_in_place:
                value = value.copy()
            reader.recycle(launched.buf)
            yield value
        else:
            yield value
            reader.recycle(launched.buf)

    def _end(self, reader: Reader, upload: Queue, pool: BufferPool) -> None:
        is_idle = False
        try:
            reader.stop()
            timeout = _INTERRUPTED_SECONDS if self._is_interrupted else None
            reader.join(timeout)
            is_idle = self._wait(reader, upload, timeout)
        finally:
            # An interrupt, also one during these waits, waits neither for the source nor for the
            # work. The work keeps its memory alive until it has completed.
            if is_idle:
                self._free(reader, upload, pool)
            else:
                arguments = (reader, upload, pool)
                threading.Thread(target=self._free_later, args=arguments, daemon=True).start()

    def _free_later(self, reader: Reader, upload: Queue, pool: BufferPool) -> None:
        self._wait(reader, upload, None)
        self._free(reader, upload, pool)

    def _wait(self, reader: Reader, upload: Queue, timeout: float | None) -> bool:
        """Whether no buffer is in use; waits at most ``timeout`` seconds for each event of those in
        use.
        """
        if not reader.is_idle(timeout):
            return False
        fences: list[Event] = []
        if reader.in_use:  # after an error, or an early end: work may still use them
            for queue in (upload, self._work, self._download):
                with suppress(Error):
                    fences.append(queue.fence())
        return _wait_for(fences, timeout)

    def _free(self, reader: Reader, upload: Queue, pool: BufferPool) -> None:
        self._launched.clear()
        for buf in list(reader.in_use.values()):
            buf.free()
        pool.clear()
        upload.close()
        self._download.close()


_INTERRUPTED_SECONDS = 0.1
# Raised by copies, also of results that are not arrays. Others are from a signal handler.
_COPY_ERRORS = (Error, MemoryError, TypeError, ValueError, BufferError)


def _wait_for(events: list[Event], timeout: float | None) -> bool:
    """Whether all events have completed, successfully or not; waits up to ``timeout`` for each."""
    for event in events:
        with suppress(Error):
            event.wait(timeout)
    return all(event.done for event in events)


def _empty_like(result: Any) -> Any:
    """An array for a download; None if there is nothing to download."""
    import numpy as np

    for name in _INTERFACES:
        interface: dict[str, Any] | None = getattr(result, name, None)
        if interface is not None:
            return np.empty(
                interface["shape"], getattr(result, "dtype", None) or interface["typestr"]
            )
    return None
