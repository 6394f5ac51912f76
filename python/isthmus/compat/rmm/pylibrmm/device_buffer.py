# SPDX-License-Identifier: Apache-2.0
"""Untyped device memory, and copies between it, the host and any address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus import Buffer, ClosedError, strict
from isthmus._not_loaded import loads_pickles
from isthmus.compat.rmm import _device
from isthmus.compat.rmm._sizes import count_of

from ._endpoints import (
    CUDA_INTERFACE,
    contiguous_bytes,
    first_version_of,
    host_bytes,
    interface_of,
    is_pinned,
    memory_at,
)
from .memory_resource import DeviceMemoryResource, get_current_device_resource
from .memory_resource._per_device import resource_of
from .stream import DEFAULT_STREAM, Stream, as_stream, exported_queue

if TYPE_CHECKING:
    from typing_extensions import Self

    from isthmus import Queue

__all__ = [
    "DeviceBuffer",
    "copy_device_to_ptr",
    "copy_host_to_ptr",
    "copy_ptr_to_host",
    "to_device",
]

_HOST = -1  # CUDA's cudaCpuDeviceId
_MIN_VERSION = 2  # of the CUDA array interface that Isthmus reads; RMM's is 0


class DeviceBuffer:
    """``size`` bytes, from ``mr`` or the current device's resource, in the order of ``stream``.

    ``ptr``: an address of host or device memory from which ``size`` bytes are copied; 0: the bytes
    are uninitialized. Raises MemoryError if no memory is left, OverflowError for negative numbers,
    TypeError for non-integers and for ``stream=None``.

    Copies from and to the host complete before the call returns on the default stream, and if the
    host memory is not pinned. Otherwise they run in the stream's order, and the host memory must
    remain unchanged until the stream is synchronized. The buffer is freed with its last reference,
    at the end of ``with``, or by ``free()``, after which any use raises ClosedError; its memory is
    released once all work on it has completed. Thread-safe, except for calls that resize it.
    """

    __slots__ = ("__weakref__", "_memory", "_mr", "_size", "_stream")

    def __init__(
        self,
        *,
        ptr: int = 0,
        size: int = 0,
        stream: Stream = DEFAULT_STREAM,
        mr: DeviceMemoryResource | None = None,
    ) -> None:
        if mr is None:
            mr = get_current_device_resource()
        elif not isinstance(mr, DeviceMemoryResource):
            raise TypeError(f"mr must be a DeviceMemoryResource, not {mr!r}")
        if stream is DEFAULT_STREAM:
            queue = mr._default_queue
        else:
            stream = as_stream(stream)
            queue = stream._queue_on(mr._device)
        if size.__class__ is not int or size >> 63:
            size = count_of(size, "size")
        self._mr, self._stream, self._size = mr, stream, size
        self._memory = mr._buffer(size, queue)
        if ptr != 0:
            source = count_of(ptr, "ptr")
            if source and size:
                mr._export()
                endpoint = memory_at(source, size, queue)
                blocking = _is_blocking(endpoint, stream, queue)
                self._memory.copy_from(endpoint, queue=queue, blocking=blocking)

    @staticmethod
    def to_device(b: Any, stream: Stream = DEFAULT_STREAM) -> DeviceBuffer:
        """A new buffer with the bytes of ``b``, which must be unsigned, contiguous and 1-D.

        TypeError for objects without the buffer protocol, ValueError for other types and shapes.
        """
        return to_device(b, stream)

    @classmethod
    def from_buffer(
        cls,
        buffer: Buffer,
        *,
        stream: Stream = DEFAULT_STREAM,
        mr: DeviceMemoryResource | None = None,
    ) -> Self:
        """A DeviceBuffer over the memory of an ``isthmus.Buffer``, of any kind, without a copy.

        The memory may be adopted from C++, or imported from another process or by DLPack. To grow,
        the DeviceBuffer allocates from ``mr`` (None: its device's current resource). TypeError
        unless these are a buffer and a resource, ValueError for a resource of another device.
        """
        if not isinstance(buffer, Buffer):
            raise TypeError(f"buffer must be an isthmus.Buffer, not {buffer!r}")
        resource = resource_of(buffer.device) if mr is None else mr
        if not isinstance(resource, DeviceMemoryResource):
            raise TypeError(f"mr must be a DeviceMemoryResource, not {mr!r}")
        if resource.device != buffer.device:
            raise ValueError(
                f"mr allocates on {resource.device.filter}, but the buffer is on "
                f"{buffer.device.filter}: pass a resource of that device, or omit mr"
            )
        result = cls.__new__(cls)
        result._mr, result._stream = resource, as_stream(stream)
        result._size, result._memory = buffer.nbytes, buffer
        return result

    @property
    def ptr(self) -> int:
        """The address of the first byte; 0 if there is no memory."""
        self._mr._export()
        return self._memory.ptr

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._size

    @property
    def nbytes(self) -> int:
        """Same as ``size``."""
        return self._size

    @property
    def mr(self) -> DeviceMemoryResource:
        """The resource that allocated its memory."""
        return self._mr

    @property
    def stream(self) -> Stream:
        """The stream that the buffer was created on."""
        return self._stream

    @property
    def buffer(self) -> Buffer:
        """Its bytes as an ``isthmus.Buffer``, which keeps the memory alive."""
        return self._memory if self._memory.nbytes == self._size else self._memory[: self._size]

    def capacity(self) -> int:
        """The size that the buffer can reach without reallocation."""
        if self._memory.freed:
            raise ClosedError("this DeviceBuffer was freed")
        return self._memory.nbytes

    def reserve(self, new_capacity: int, stream: Stream = DEFAULT_STREAM) -> None:
        """Ensures a capacity of at least ``new_capacity`` bytes; the size does not change."""
        queue, capacity = self._queue(stream), count_of(new_capacity, "new_capacity")
        if capacity > self.capacity():
            self._move(capacity, queue)

    def resize(self, new_size: int, stream: Stream = DEFAULT_STREAM) -> None:
        """Changes the size to ``new_size`` bytes, keeping the contents up to that size.

        The address changes if this exceeds the capacity. On MemoryError nothing has changed.
        """
        queue, size = self._queue(stream), count_of(new_size, "new_size")
        if size > self.capacity():
            self._move(size, queue)
        self._size = size

    def copy_to_host(self, ary: Any = None, stream: Stream = DEFAULT_STREAM) -> Any:
        """Copies all bytes into ``ary`` and returns it.

        ``ary``: writable unsigned bytes, at least as many; ValueError if it is smaller or of
        another type. None: a new NumPy array of uint8.
        """
        queue = self._queue(stream)
        if ary is None:
            result = np.empty(self._size, np.uint8)
            self._memory.copy_to(result, nbytes=self._size, queue=queue)
            return result
        view = host_bytes(ary, "ary", writable=True)
        if len(view) < self._size:
            raise ValueError(
                f"Argument `ary` is too small. Need space for {self._size} bytes, not {len(view)}"
            )
        blocking = _is_blocking(view, stream, queue)
        self._memory.copy_to(view, nbytes=self._size, queue=queue, blocking=blocking)
        return ary

    def copy_from_host(self, ary: Any, stream: Stream = DEFAULT_STREAM) -> None:
        """Copies unsigned bytes to the beginning. ValueError if they exceed the size."""
        queue, view = self._queue(stream), host_bytes(ary, "ary")
        self._must_hold(len(view), "ary")
        self._memory.copy_from(view, queue=queue, blocking=_is_blocking(view, stream, queue))

    def copy_from_device(self, cuda_ary: Any, stream: Stream = DEFAULT_STREAM) -> None:
        """Copies the bytes of a device array to the beginning, in the stream's order.

        ``cuda_ary`` has ``__cuda_array_interface__``, of any version up to 3, or
        ``__sycl_usm_array_interface__``, and is kept alive until the copy has completed. ValueError
        for other objects, more than one dimension, gaps, or more bytes than the size.
        """
        queue = self._queue(stream)
        source: Any = cuda_ary.buffer if isinstance(cuda_ary, DeviceBuffer) else cuda_ary
        # Other objects are read by their interface, which orders their queue after pending work.
        if isinstance(source, Buffer):
            self._must_hold(source.nbytes, "cuda_ary")
        else:
            source = self._memory_of(cuda_ary, queue)
        # Nothing keeps the owner of plain host memory alive after the call, so the copy blocks.
        blocking = isinstance(source, memoryview)
        self._memory.copy_from(source, queue=queue, blocking=blocking)

    def _memory_of(self, cuda_ary: Any, queue: Queue) -> Any:
        name, interface = interface_of(cuda_ary)
        nbytes = contiguous_bytes(name, interface)
        self._must_hold(nbytes, "cuda_ary")
        self._mr._export()
        if name == CUDA_INTERFACE and interface["version"] < _MIN_VERSION:
            address = interface["data"][0]
            return memory_at(address, nbytes, queue, owner=cuda_ary) if nbytes else b""
        return cuda_ary

    def tobytes(self, stream: Stream = DEFAULT_STREAM) -> bytes:
        """A copy of all bytes. Blocks until it is complete."""
        queue = self._queue(stream)
        part = self.buffer
        return (part if part.queue == queue else part.on_queue(queue)).tobytes()

    def prefetch(self, device: int | None = None, stream: Stream | None = None) -> None:
        """Requests that shared memory move to the device of that number; None: the current one.

        -1, CUDA's cudaCpuDeviceId: the host. ``stream``: None for the buffer's own. This is a hint,
        without effect on memory that cannot migrate and for a device of another platform.
        ValueError for a device that does not exist, OverflowError for other negative numbers.
        """
        self.capacity()
        is_host = device == _HOST
        queue = self._queue(self._stream if stream is None else stream)
        if not is_host:
            target = _device.current() if device is None else _device.numbered(device)
            if target not in self._mr.device.platform.devices:
                return
            queue = queue if queue.device == target else target.default_queue
        movable = self._memory.kind == "shared" and "prefetch" in queue.device.capabilities
        if movable and self._size:
            self._memory.prefetch(nbytes=self._size, to_host=is_host, queue=queue, blocking=False)

    def copy(self) -> DeviceBuffer:
        """A new buffer with the same contents, stream and resource."""
        result = DeviceBuffer(size=self._size, stream=self._stream, mr=self._mr)
        if self._size:
            result._memory.copy_from(self.buffer, blocking=self._stream.is_default())
        return result

    def free(self) -> None:
        """Frees the buffer; later use raises ClosedError. Never blocks; idempotent."""
        self._memory.free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.free()

    def __len__(self) -> int:
        return self._size

    def __sizeof__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __copy__(self) -> DeviceBuffer:
        return self.copy()

    def __deepcopy__(self, memo: object) -> DeviceBuffer:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, (self.copy_to_host(),)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Of version 0, like RMM's: without a stream, so the caller must order accesses.

        AttributeError if the memory is not CUDA's.
        """
        self._mr._export()
        return first_version_of(self.buffer.__cuda_array_interface__)

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        return self.buffer.__sycl_usm_array_interface__

    @property
    def __array_interface__(self) -> dict[str, Any]:
        with strict():  # RMM's device memory is never host memory
            return self.buffer.__array_interface__

    def __dlpack__(self, **arguments: Any) -> Any:
        """As ``isthmus.Buffer.__dlpack__`` in strict mode, with its arguments and errors."""
        with strict():
            return self.buffer.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        """As ``isthmus.Buffer.__dlpack_device__`` in strict mode."""
        with strict():
            return self._memory.__dlpack_device__()

    def __repr__(self) -> str:
        if self._memory.freed:
            return "<isthmus.compat.rmm DeviceBuffer, freed>"
        return (
            f"<isthmus.compat.rmm DeviceBuffer of {self._size} bytes at {self._memory.ptr:#x} on "
            f"{self._memory.device.filter}>"
        )

    def _queue(self, stream: Stream) -> Queue:
        if stream is DEFAULT_STREAM:
            return self._mr._default_queue
        return as_stream(stream)._queue_on(self._mr._device)

    def _must_hold(self, nbytes: int, name: str) -> None:
        if nbytes > self._size:
            raise ValueError(
                f"Argument `{name}` is too large. Need space for {nbytes} bytes, and this buffer "
                f"has {self._size}"
            )

    def _move(self, capacity: int, queue: Queue) -> None:
        memory = self._mr._buffer(capacity, queue)
        if self._size:
            memory.copy_from(self._memory, nbytes=self._size, queue=queue, blocking=False)
        elif queue != self._memory.queue:
            self._memory.record(queue)
        self._memory = memory


def to_device(b: Any, stream: Stream = DEFAULT_STREAM) -> DeviceBuffer:
    """``DeviceBuffer.to_device``."""
    stream = as_stream(stream)
    view = host_bytes(b, "b")
    result = DeviceBuffer(size=len(view), stream=stream)
    queue = result._memory.queue
    result._memory.copy_from(view, queue=queue, blocking=_is_blocking(view, stream, queue))
    return result


@loads_pickles
def _load(contents: Any) -> DeviceBuffer:
    return to_device(contents)


def copy_ptr_to_host(db: int, hb: Any, stream: Stream = DEFAULT_STREAM) -> None:
    """Fills ``hb``, writable unsigned bytes, with the bytes at the address ``db``."""
    stream, view = as_stream(stream), host_bytes(hb, "hb", writable=True)
    queue = _queue_at(stream)
    _copy(queue, view, count_of(db, "db"), len(view), blocking=_is_blocking(view, stream, queue))


def copy_host_to_ptr(hb: Any, db: int, stream: Stream = DEFAULT_STREAM) -> None:
    """Copies unsigned bytes to the address ``db``."""
    stream, view = as_stream(stream), host_bytes(hb, "hb")
    queue = _queue_at(stream)
    blocking = _is_blocking(view, stream, queue)
    _copy(queue, count_of(db, "db"), view, len(view), blocking=blocking)


def copy_device_to_ptr(d_src: int, d_dst: int, count: int, stream: Stream = DEFAULT_STREAM) -> None:
    """Copies ``count`` bytes from one address to another, in the stream's order."""
    queue = _queue_at(as_stream(stream))
    source, target = count_of(d_src, "d_src"), count_of(d_dst, "d_dst")
    _copy(queue, target, source, count_of(count, "count"), blocking=False)


def _copy(
    queue: Queue, target: int | memoryview, source: int | memoryview, nbytes: int, *, blocking: bool
) -> None:
    if nbytes == 0:
        return
    destination, origin = (
        memory_at(each, nbytes, queue) if isinstance(each, int) else each
        for each in (target, source)
    )
    queue.copy(destination, origin, nbytes, blocking=blocking)


def _queue_at(stream: Stream) -> Queue:
    device = _device.current()
    exported_queue(device)
    return stream._queue_on(device)


def _is_blocking(endpoint: Any, stream: Stream, queue: Queue) -> bool:
    """Whether a copy must complete before the call returns, as in CUDA."""
    if stream.is_default():
        return True
    return isinstance(endpoint, memoryview) and len(endpoint) > 0 and not is_pinned(endpoint, queue)
