# SPDX-License-Identifier: Apache-2.0
"""The default location of a buffer: PyDotCompute's rules, expressed as devices and queues."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from isthmus._core import Device, Queue, current_queue

if TYPE_CHECKING:
    from isthmus import Array, UnifiedBuffer


@cache
def cupy() -> Any:
    """CuPy's module, or None. Cached, since a failing import takes 50 us."""
    try:
        import cupy
    except ImportError:
        return None
    return cupy


@cache
def host_queue() -> Queue:
    """The default queue of the host device, whose arrays are NumPy arrays."""
    return Device("host").default_queue


def default_queue(device: Device | str | None = None) -> Queue:
    """The queue for buffers on ``device``; None: the current queue.

    If the current device is a driver's device for the processor, it is the host device's queue
    instead: without a GPU, PyDotCompute's device arrays are NumPy arrays, which only the host
    device provides. On a CUDA device without an explicitly chosen queue it is CuPy's current
    stream, as in PyDotCompute.
    """
    if device is not None:
        return _queue_of(device)
    queue = current_queue()
    if queue.device.type == "cpu":
        return host_queue()
    return _queue_of(queue.device) if queue == queue.device.default_queue else queue


def _queue_of(device: Device | str) -> Queue:
    """CuPy's current stream on a CUDA device if CuPy is installed; else the default queue."""
    resolved = Device(device)
    return resolved.default_queue if _has_no_cupy(resolved) else _current_stream(resolved)


def cupy_device(queue: Queue) -> int | None:
    """The CUDA device number if ``queue`` is CuPy's current stream, otherwise None.

    With a number, the buffer's device arrays can be CuPy arrays.
    """
    device = queue.device
    if _has_no_cupy(device) or queue != _current_stream(device):
        return None
    return _number_of(device)


def _has_no_cupy(device: Device) -> bool:
    return device.backend != "cuda" or cupy() is None


# By the device's number and the stream's address. The queue keeps the stream alive, so that no
# other stream can have the same address.
_queues: dict[tuple[int, int], Queue] = {}
_MAX_STREAMS = 64
_PER_THREAD = 2  # CU_STREAM_PER_THREAD, a different stream on each thread


def _current_stream(device: Device) -> Queue:
    number = _number_of(device)
    stream = cupy().cuda.get_current_stream(number)
    queue = _queues.get((number, stream.ptr))
    if queue is None:
        queue = Queue.from_stream(stream, device)
        if len(_queues) >= _MAX_STREAMS:
            _queues.clear()
        if stream.ptr != _PER_THREAD:
            _queues[number, stream.ptr] = queue
    return queue


def _number_of(device: Device) -> int:
    """CUDA's number of a CUDA device."""
    return int(device.filter.rpartition(":")[2])


def as_cupy(array: Array, buf: UnifiedBuffer, number: int) -> Any:
    """The same memory as a CuPy array. Work on the buffer's queue is ordered after its copies."""
    cuda = cupy().cuda  # not through the array interface, for which CuPy blocks on the queue
    memory = cuda.UnownedMemory(array.ptr, buf.nbytes, array, number)
    return cupy().ndarray(buf.shape, dtype=buf.dtype, memptr=cuda.MemoryPointer(memory, 0))
