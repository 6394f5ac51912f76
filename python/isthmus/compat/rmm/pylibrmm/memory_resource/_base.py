# SPDX-License-Identifier: Apache-2.0
"""The base classes: a resource of Isthmus with the methods of RMM's resources."""

from __future__ import annotations

from isthmus import Buffer, Device, InvalidArgumentError, Queue
from isthmus.compat.rmm._sizes import count_of
from isthmus.compat.rmm.pylibrmm.stream import DEFAULT_STREAM, Stream, as_stream, exported_queue
from isthmus.memory import MemoryResource

from ._any_kind import of_one_kind

__all__ = ["DeviceMemoryResource", "UpstreamResourceAdaptor"]

# Buffers of allocate(). They exist until deallocate(), even if the resource is dropped earlier. An
# address can occur twice: for a CallbackMemoryResource and for the resource that its functions use.
_allocated: dict[tuple[DeviceMemoryResource, int], Buffer] = {}


class DeviceMemoryResource:
    """Wraps any resource of Isthmus: ``DeviceMemoryResource(resource)``.

    Derived classes create their own resource. Memory belongs to the device that was current when
    the resource was created. Thread-safe.
    """

    _is_exported = False
    _is_upstream = False  # whether another resource has this one as its upstream
    _is_mixed = False  # its memory may be of several kinds

    def __init__(self, resource: MemoryResource) -> None:
        if not isinstance(resource, MemoryResource):
            raise TypeError(f"resource must be one of isthmus.memory, not {resource!r}")
        self._use(resource)

    def _use(self, resource: MemoryResource) -> None:
        self._resource = resource
        self._device = resource.device
        self._default_queue = resource.device.default_queue

    def _export(self) -> None:
        """Must be called before an address is exposed: kernels may use it on the default stream."""
        if not self._is_exported:
            exported_queue(self._device)
            self._is_exported = True

    @property
    def resource(self) -> MemoryResource:
        """The wrapped resource, for ``isthmus.Buffer(..., resource=...)`` and ``using``."""
        return self._resource

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return self._device

    def allocate(self, nbytes: int, stream: Stream = DEFAULT_STREAM) -> int:
        """Allocates ``nbytes`` bytes in the stream's order; returns 0 for 0 bytes.

        The memory lives until ``deallocate``. MemoryError if no memory is left, OverflowError for a
        negative number, TypeError for ``stream=None``.
        """
        queue = as_stream(stream)._queue_on(self._device)
        size = count_of(nbytes, "nbytes")
        if size == 0:
            return 0
        self._export()
        buffer = self._buffer(size, queue)
        _allocated[self, buffer.ptr] = buffer
        return buffer.ptr

    def deallocate(self, ptr: int, nbytes: int, stream: Stream = DEFAULT_STREAM) -> None:
        """Frees memory of ``allocate``, ordered after all current work on ``stream``.

        Raises ValueError, without any effect, for an address that this resource did not allocate or
        that is freed already, and for a different size.
        """
        queue = as_stream(stream)._queue_on(self._device)
        address, size = count_of(ptr, "ptr"), count_of(nbytes, "nbytes")
        if address == 0 and size == 0:
            return
        buffer = _allocated.get((self, address))
        if buffer is not None and buffer.nbytes != size:
            raise ValueError(
                f"cannot deallocate {size} bytes at {address:#x}: they were allocated as "
                f"{buffer.nbytes}"
            )
        buffer = _allocated.pop((self, address), None)
        if buffer is None:
            raise ValueError(
                f"cannot deallocate {address:#x}: it was not allocated by {self!r}, or was freed "
                "already"
            )
        if queue != buffer.queue:
            buffer.record(queue)
        buffer.free()

    def _buffer(self, nbytes: int, queue: Queue) -> Buffer:
        """The allocation function of the package. MemoryError if the resource rejects the size."""
        try:
            return Buffer(nbytes, queue=queue, resource=self._resource)
        except InvalidArgumentError as refused:
            raise MemoryError(str(refused)) from refused

    def __repr__(self) -> str:
        return f"<isthmus.compat.rmm {type(self).__name__} on {self._device.filter}>"


class UpstreamResourceAdaptor(DeviceMemoryResource):
    """A resource with an upstream, which it keeps alive. TypeError for an invalid upstream."""

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        self._use(self._set_upstream(upstream_mr))

    def _set_upstream(self, upstream_mr: DeviceMemoryResource) -> MemoryResource:
        if upstream_mr is None:
            raise TypeError(
                "Argument `upstream_mr` must not be None: upstream_mr must be a "
                "DeviceMemoryResource"
            )
        if not isinstance(upstream_mr, DeviceMemoryResource):
            raise TypeError(
                "Argument 'upstream_mr' has incorrect type: upstream_mr must be a "
                f"DeviceMemoryResource, not {upstream_mr!r}"
            )
        self._upstream_mr = upstream_mr
        self._is_mixed = upstream_mr._is_mixed
        return upstream_mr.resource

    def _set_one_kind_upstream(self, upstream_mr: DeviceMemoryResource) -> MemoryResource:
        """As ``_set_upstream``, with memory of one kind, for resources that sub-allocate."""
        upstream = self._set_upstream(upstream_mr)
        if self._is_mixed:
            self._is_mixed, upstream = False, of_one_kind(upstream)
        return upstream

    def _use(self, resource: MemoryResource) -> None:
        super()._use(resource)
        self._upstream_mr._is_upstream = True

    @property
    def upstream_mr(self) -> DeviceMemoryResource:
        """The upstream resource."""
        return self._upstream_mr

    def get_upstream(self) -> DeviceMemoryResource:
        """The upstream resource."""
        return self._upstream_mr
