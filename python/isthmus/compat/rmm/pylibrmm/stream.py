"""Streams: queues of Isthmus by RMM's names."""

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
    """How a stream is made."""

    SYNC_DEFAULT = 0
    """CUDA's default stream waits for it and is waited for. The same as the other elsewhere."""
    NON_BLOCKING = 1
    """Neither."""


class Stream:
    """A stream: ``Stream(obj=None, flags=None)``.

    ``obj`` None: a new one on the current device. Else an existing one: a ``Stream``, a ``Queue``
    of Isthmus, an object with ``__cuda_stream__`` (version 0, else NotImplementedError), a stream
    of Numba, CuPy or PyTorch, which is kept alive; TypeError for others. ``flags``, of
    ``CudaStreamFlags``, only for a new one: ValueError. The default streams are those of whichever
    device they are used for, and one over a device's default queue is that device's; all of them
    are equal, as RMM's. Never changes, and may be used from any thread.
    """

    __slots__ = ("_number", "_queue")

    def __init__(self, obj: Any = None, flags: CudaStreamFlags | int | None = None) -> None:
        # Of a default stream, which has a queue where it is one device's; others have that alone.
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
            self._take(obj)
        else:
            self._wrap(obj)

    def __cuda_stream__(self) -> tuple[int, int]:
        """(0, handle), for libraries that take CUDA streams. TypeError on other back-ends."""
        if self._number is None:
            return self.queue.__cuda_stream__()
        device = _device.current() if self._queue is None else self._queue.device
        if device.backend != "cuda":
            raise TypeError(f"__cuda_stream__: {device.filter} is no device of CUDA's")
        lent_queue(device)
        return 0, self._number

    def synchronize(self) -> None:
        """Waits for all on it. Lets other threads run; Ctrl-C interrupts the wait."""
        self.queue.wait()

    def is_default(self) -> bool:
        """Whether it is the legacy default stream: copies on it end before they return."""
        return self._number is not None and self._number != _PER_THREAD

    @property
    def queue(self) -> Queue:
        """Isthmus' queue; of a default stream of no device, that of the current one."""
        queue = self._queue or self._queue_on(_device.current())
        return lent_queue(queue.device) if self.is_default() else queue

    def _queue_on(self, device: Device) -> Queue:
        if self._queue is not None:
            return self._queue
        return _queue_of_thread(device) if self._number == _PER_THREAD else device.default_queue

    def _take(self, queue: Queue) -> None:
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
    """A stream's handle as an object of CUDA's protocol, which keeps what it is of."""

    def __init__(self, handle: int, owner: object) -> None:
        self._handle, self._owner = handle, owner

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def lent_queue(device: Device) -> Queue:
    """The queue of the legacy default stream, on which others may have put work on CUDA.

    From here on all that is done there takes that into account, which costs more.
    """
    queue = device.default_queue
    if device.backend == "cuda":
        _ = queue.native_handle
    return queue


def as_stream(given: object) -> Stream:
    """What a ``stream`` argument stands for. TypeError for None and for what is no stream."""
    if isinstance(given, Stream):
        return given
    if given is None:
        raise TypeError("stream argument cannot be None. Leave it out for the default stream")
    return Stream(given)


def _handle_of(stream: Any) -> int | None:
    """None: the object does not tell as those of CUDA's protocol, Numba and CuPy do."""
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
    made = Stream.__new__(Stream)
    made._number, made._queue = number, None
    return made


DEFAULT_STREAM = _default(0)
LEGACY_DEFAULT_STREAM = _default(1)
PER_THREAD_DEFAULT_STREAM = _default(_PER_THREAD)
