"""Where a buffer is if nobody says: what PyDotCompute has for devices, in Isthmus' words."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from isthmus._core import Device, Queue, current_queue

if TYPE_CHECKING:
    from isthmus import Array, UnifiedBuffer


@cache
def cupy() -> Any:
    """CuPy's module, or None. Looked for once: a search that fails takes 50 us."""
    try:
        import cupy
    except ImportError:
        return None
    return cupy


@cache
def host_queue() -> Queue:
    """Of the device whose arrays are NumPy's."""
    return Device("host").default_queue


def default_queue(device: Device | str | None = None) -> Queue:
    """That of ``device``; None: the current one, but the host's where a driver has the processor.

    Without a GPU PyDotCompute's device arrays are NumPy's, which only the host device's are. On a
    CUDA device whose queue nobody chose it is CuPy's current stream, as there.
    """
    if device is not None:
        return _queue_of(device)
    queue = current_queue()
    if queue.device.type == "cpu":
        return host_queue()
    return _queue_of(queue.device) if queue == queue.device.default_queue else queue


def _queue_of(device: Device | str) -> Queue:
    """CuPy's current stream on a CUDA device, if there is CuPy; else the device's own."""
    found = Device(device)
    return found.default_queue if _has_no_cupy(found) else _current_stream(found)


def cupys_device(queue: Queue) -> int | None:
    """CUDA's number of its device if it is CuPy's current stream, so that arrays may be CuPy's."""
    device = queue.device
    if _has_no_cupy(device) or queue != _current_stream(device):
        return None
    return _number_of(device)


def _has_no_cupy(device: Device) -> bool:
    return device.backend != "cuda" or cupy() is None


# By the device's number and the stream's address, which the queue keeps from being another's.
_queues: dict[tuple[int, int], Queue] = {}
_MOST_STREAMS = 64
_PER_THREAD = 2  # CU_STREAM_PER_THREAD, another stream on each thread


def _current_stream(device: Device) -> Queue:
    number = _number_of(device)
    stream = cupy().cuda.get_current_stream(number)
    found = _queues.get((number, stream.ptr))
    if found is None:
        found = Queue.from_stream(stream, device)
        if len(_queues) >= _MOST_STREAMS:
            _queues.clear()
        if stream.ptr != _PER_THREAD:
            _queues[number, stream.ptr] = found
    return found


def _number_of(device: Device) -> int:
    """CUDA's, of a CUDA device."""
    return int(device.filter.rpartition(":")[2])


def as_cupys(array: Array, of: UnifiedBuffer, number: int) -> Any:
    """The same memory as CuPy's array; what is put on the buffer's queue comes behind copies."""
    cuda = cupy().cuda  # not by the interface, at which CuPy waits on the host for the queue
    memory = cuda.UnownedMemory(array.ptr, of.nbytes, array, number)
    return cupy().ndarray(of.shape, dtype=of.dtype, memptr=cuda.MemoryPointer(memory, 0))
