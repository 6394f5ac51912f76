# SPDX-License-Identifier: Apache-2.0
"""Streams: queues of Isthmus under RMM's names."""

from __future__ import annotations

from enum import IntEnum
from threading import local
from typing import Any

from isthmus import Device, Queue
from isthmus.compat.rmm import _device
from isthmus.compat.rmm._cuda import BlockingStream

__all__ = [
    "DEFAULT_STREAM",
    "LEGACY_DEFAULT_STREAM",
    "PER_THREAD_DEFAULT_STREAM",
    "CudaStreamFlags",
    "Stream",
]

_PER_THREAD = 2  # CU_STREAM_PER_THREAD; 0 and 1, CU_STREAM_LEGACY, are the legacy default stream
_of_this_thread = local()


class CudaStreamFlags(IntEnum):
    """How a new stream synchronizes with CUDA's legacy default stream."""

    SYNC_DEFAULT = 0
    """The stream and the default stream wait for each other. Equal to NON_BLOCKING on other
    backends."""
    NON_BLOCKING = 1
    """Neither stream waits for the other."""


class Stream:
    """A stream: ``Stream(obj=None, flags=None)``.

    ``obj``: None for a new stream on the current device. Otherwise an existing stream, which is
    kept alive: a ``Stream``, a ``Queue`` of Isthmus, an object with ``__cuda_stream__`` (of version
    0, else NotImplementedError), or a stream of Numba, CuPy or PyTorch; TypeError for others.
    ``flags``: of ``CudaStreamFlags``, for new streams only, otherwise ValueError. A default stream
    represents the default stream of the device that it is used with; a stream over a device's
    default queue is that device's default stream. Default streams of one kind compare equal for all
    devices, as RMM's do. Immutable and thread-safe.
    """

    __slots__ = ("_number", "_queue")

    def __init__(self, obj: Any = None, flags: CudaStreamFlags | int | None = None) -> None:
        # A default stream has a number, and a queue only if it belongs to one device. Other streams
        # have only a queue.
        self._number: int | None = None
        self._queue: Queue | None = None
        if obj is None:
            chosen = CudaStreamFlags(CudaStreamFlags.SYNC_DEFAULT if flags is None else flags)
            self._queue = _new_queue(_device.current(), chosen)
        elif flags is not None:
            raise ValueError(
                f"flags may only be specified when obj is None; flags ({flags!r}) cannot be "
                "applied to an existing stream"
            )
        elif isinstance(obj, Stream):
            self._number, self._queue = obj._number, obj._queue
        elif isinstance(obj, Queue):
            self._adopt_queue(obj)
        else:
            self._wrap(obj)

    def __cuda_stream__(self) -> tuple[int, int]:
        """(0, handle), for libraries that accept CUDA streams. TypeError on other backends."""
        if self._number is None:
            return self.queue.__cuda_stream__()
        device = _device.current() if self._queue is None else self._queue.device
        if device.backend != "cuda":
            raise TypeError(f"__cuda_stream__: {device.filter} is not a CUDA device")
        exported_queue(device)
        return 0, self._number

    def synchronize(self) -> None:
        """Waits for all work on the stream. Releases the GIL; Ctrl-C interrupts the wait."""
        self.queue.wait()

    def is_default(self) -> bool:
        """Whether this is the legacy default stream, on which copies with the host block."""
        return self._number is not None and self._number != _PER_THREAD

    @property
    def queue(self) -> Queue:
        """The queue of Isthmus. A default stream without a device uses the current device."""
        queue = self._queue or self._queue_on(_device.current())
        return exported_queue(queue.device) if self.is_default() else queue

    def _queue_on(self, device: Device) -> Queue:
        if self._queue is not None:
            return self._queue
        return _queue_of_thread(device) if self._number == _PER_THREAD else device.default_queue

    def _adopt_queue(self, queue: Queue) -> None:
        self._queue = queue
        if queue == queue.device.default_queue:
            self._number = 0

    def _wrap(self, stream: Any) -> None:
        handle = _handle_of(stream)
        if handle is not None and 0 <= handle <= _PER_THREAD:
            self._number = handle
        elif hasattr(stream, "__cuda_stream__") or handle is None:
            self._queue = Queue.from_stream(stream)
        else:
            self._queue = Queue.from_stream(_Handle(handle, stream))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return False
        if self._number is None:
            return other._number is None and self._queue == other._queue
        return self._number == other._number

    def __hash__(self) -> int:
        return hash(self._queue) if self._number is None else self._number

    def __repr__(self) -> str:
        names = ("DEFAULT_STREAM", "LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM")
        name = repr(self._queue) if self._number is None else names[self._number]
        return f"<isthmus.compat.rmm Stream: {name}>"


class _Handle:
    """A stream handle with the CUDA stream protocol, which keeps the stream's owner alive."""

    def __init__(self, handle: int, owner: object) -> None:
        self._handle, self._owner = handle, owner

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def exported_queue(device: Device) -> Queue:
    """The queue of the legacy default stream, marked as having external work on CUDA.

    Requesting its native handle marks it: from then on its operations are ordered with work that
    other code submits, which costs more.
    """
    queue = device.default_queue
    if device.backend == "cuda":
        _ = queue.native_handle
    return queue


def as_stream(value: object) -> Stream:
    """Converts a ``stream`` argument. TypeError for None and for objects that are not streams."""
    if isinstance(value, Stream):
        return value
    if value is None:
        raise TypeError("stream argument cannot be None. Omit it for the default stream")
    return Stream(value)


def _handle_of(stream: Any) -> int | None:
    """The stream's handle; None unless it has CUDA's protocol or is a stream of Numba or CuPy."""
    if hasattr(stream, "__cuda_stream__"):
        version, handle = stream.__cuda_stream__()
        if version != 0:
            raise NotImplementedError(
                f"the CUDA stream protocol is not supported in version: '{version}', but in "
                "version 0"
            )
        return int(handle)
    if type(stream).__module__.startswith("numba") and hasattr(stream, "__int__"):
        return int(stream)
    if type(stream).__module__.startswith("cupy") and hasattr(stream, "ptr"):
        return int(stream.ptr)
    return None


def _new_queue(device: Device, flags: CudaStreamFlags) -> Queue:
    if flags is CudaStreamFlags.SYNC_DEFAULT and device.backend == "cuda":
        return Queue.from_stream(BlockingStream(device), device)
    return Queue(device)


def _queue_of_thread(device: Device) -> Queue:
    if device.backend == "cuda":
        return Queue.from_stream(_Handle(_PER_THREAD, None), device)
    queues: dict[Device, Queue] = _of_this_thread.__dict__.setdefault("queues", {})
    if device not in queues:
        queues[device] = Queue(device)
    return queues[device]


def _default(number: int) -> Stream:
    stream = Stream.__new__(Stream)
    stream._number, stream._queue = number, None
    return stream


DEFAULT_STREAM = _default(0)
LEGACY_DEFAULT_STREAM = _default(1)
PER_THREAD_DEFAULT_STREAM = _default(_PER_THREAD)
