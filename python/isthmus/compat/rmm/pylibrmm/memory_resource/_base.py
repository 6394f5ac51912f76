"""What all resources have in common: a resource of Isthmus, asked by RMM's methods."""

from __future__ import annotations

from isthmus import Buffer, Device, InvalidArgumentError, Queue
from isthmus.compat.rmm._sizes import count_of
from isthmus.compat.rmm.pylibrmm.stream import DEFAULT_STREAM, Stream, as_stream, lent_queue
from isthmus.memory import MemoryResource

from ._any_kind import of_one_kind

__all__ = ["DeviceMemoryResource", "UpstreamResourceAdaptor"]

# What allocate() handed out: it lives until it is given back, even if the resource is dropped
# before. An address may be there twice: of a CallbackMemoryResource, and of what its functions ask.
_lent: dict[tuple[DeviceMemoryResource, int], Buffer] = {}


class DeviceMemoryResource:
    """Any resource of Isthmus as one of RMM's: ``DeviceMemoryResource(resource)``.

    The classes below make theirs. Memory belongs to the device that was current when the resource
    was made. Safe to use from any thread.
    """

    _is_lent = False
    _is_below = False  # another resource stands on this one
    _is_mixed = False  # its memory may be of several kinds

    def __init__(self, resource: MemoryResource) -> None:
        if not isinstance(resource, MemoryResource):
            raise TypeError(f"resource must be one of isthmus.memory, not {resource!r}")
        self._use(resource)

    def _use(self, resource: MemoryResource) -> None:
        self._resource = resource
        self._device = resource.device
        self._default_queue = resource.device.default_queue

    def _lend(self) -> None:
        """Before an address leaves this package: kernels may use it on the default stream."""
        if not self._is_lent:
            lent_queue(self._device)
            self._is_lent = True

    @property
    def resource(self) -> MemoryResource:
        """Isthmus' resource behind it, for ``isthmus.Buffer(..., resource=...)`` and ``using``."""
        return self._resource

    @property
    def device(self) -> Device:
        """The device whose memory it is."""
        return self._device

    def allocate(self, nbytes: int, stream: Stream = DEFAULT_STREAM) -> int:
        """The address of ``nbytes`` new bytes, for work in the stream's order; 0 for 0 bytes.

        It stays until ``deallocate``. MemoryError where there is none left, OverflowError for a
        negative number, TypeError for ``stream=None``.
        """
        queue = as_stream(stream)._queue_on(self._device)
        size = count_of(nbytes, "nbytes")
        if size == 0:
            return 0
        self._lend()
        buffer = self._buffer(size, queue)
        _lent[self, buffer.ptr] = buffer
        return buffer.ptr

    def deallocate(self, ptr: int, nbytes: int, stream: Stream = DEFAULT_STREAM) -> None:
        """Takes back what ``allocate`` gave, behind all that is on ``stream`` now.

        ValueError, and nothing happens, for an address that it did not give, or has back already,
        and for another size.
        """
        queue = as_stream(stream)._queue_on(self._device)
        address, size = count_of(ptr, "ptr"), count_of(nbytes, "nbytes")
        if address == 0 and size == 0:
            return
        buffer = _lent.get((self, address))
        if buffer is not None and buffer.nbytes != size:
            raise ValueError(
                f"cannot deallocate {size} bytes at {address:#x}: they were allocated as "
                f"{buffer.nbytes}"
            )
        buffer = _lent.pop((self, address), None)
        if buffer is None:
            raise ValueError(
                f"cannot deallocate {address:#x}: {self!r} has allocated nothing there, or has it "
                "back already"
            )
        if queue != buffer.queue:
            buffer.record(queue)
        buffer.free()

    def _buffer(self, nbytes: int, queue: Queue) -> Buffer:
        """All that this package allocates. A size that a resource refuses is MemoryError."""
        try:
            return Buffer(nbytes, queue=queue, resource=self._resource)
        except InvalidArgumentError as refused:
            raise MemoryError(str(refused)) from refused

    def __repr__(self) -> str:
        return f"<isthmus.compat.rmm {type(self).__name__} on {self._device.filter}>"


class UpstreamResourceAdaptor(DeviceMemoryResource):
    """A resource over another, which it keeps. TypeError for an upstream that is none."""

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        self._use(self._stand_on(upstream_mr))

    def _stand_on(self, upstream_mr: DeviceMemoryResource) -> MemoryResource:
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

    def _cut_from(self, upstream_mr: DeviceMemoryResource) -> MemoryResource:
        """The same for what cuts blocks out of larger ones: all are of one kind."""
        upstream = self._stand_on(upstream_mr)
        if self._is_mixed:
            self._is_mixed, upstream = False, of_one_kind(upstream)
        return upstream

    def _use(self, resource: MemoryResource) -> None:
        super()._use(resource)
        self._upstream_mr._is_below = True

    @property
    def upstream_mr(self) -> DeviceMemoryResource:
        """What it stands on."""
        return self._upstream_mr

    def get_upstream(self) -> DeviceMemoryResource:
        """What it stands on."""
        return self._upstream_mr
