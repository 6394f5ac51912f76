# SPDX-License-Identifier: Apache-2.0
"""Resources whose memory may be of several kinds, and their restriction to one kind."""

from __future__ import annotations

from contextlib import suppress
from threading import local
from typing import TYPE_CHECKING, Protocol

from isthmus import Buffer
from isthmus.memory import CustomResource, FallbackResource, MemoryResource, query

if TYPE_CHECKING:
    from isthmus import Device, Queue
    from isthmus._kinds import Kind

__all__ = ["any_kind", "of_one_kind"]

_PROBED = 2 << 20  # bytes, the size of a pool's requests


class _Allocator(Protocol):
    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int: ...
    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None: ...


def any_kind(allocator: _Allocator, kind: Kind, device: Device) -> MemoryResource:
    """A chain of custom resources, one for each kind that the device supports.

    A custom resource has one kind, but the allocator may return memory of any. The first resource
    calls the allocator. If the memory is of another kind, it passes the memory to the resource of
    that kind, within the same request and thread, so that each block is recorded with its own kind.
    """
    handoff = local()
    chain: MemoryResource = CustomResource(_FirstAllocator(allocator, kind, handoff), kind, device)
    for other in ("device", "shared", "host"):
        if other != kind and other in device.kinds:
            other_allocator = _OtherKindAllocator(allocator, other, handoff)
            chain = FallbackResource(chain, CustomResource(other_allocator, other, device))
    return chain


def of_one_kind(resource: MemoryResource) -> MemoryResource:
    """The same memory as a resource of one kind, for resources that sub-allocate from it.

    The kind is that of a block of 2 MiB, which is allocated here and freed again. If that
    allocation fails, it is the resource's nominal kind.
    """
    kind = resource.kind
    with suppress(MemoryError), Buffer(_PROBED, resource=resource) as probe:
        kind = probe.kind
    return CustomResource(_OneKindAllocator(resource), kind, resource.device)


class _OneKindAllocator:
    def __init__(self, resource: MemoryResource) -> None:
        self._resource = resource
        self._buffers: dict[int, Buffer] = {}

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
        # The program's functions have no alignment parameter, so their memory may begin at any
        # address.
        buffer = Buffer(nbytes + alignment, queue=queue, resource=self._resource)
        pointer = -(-buffer.ptr // alignment) * alignment
        self._buffers[pointer] = buffer
        return pointer

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:  # noqa: ARG002
        self._buffers.pop(pointer).free()


class _FirstAllocator:
    def __init__(self, allocator: _Allocator, kind: Kind, handoff: local) -> None:
        self._allocator, self._kind, self._handoff = allocator, kind, handoff

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
        self._handoff.__dict__.clear()
        pointer = self._allocator.allocate(nbytes, alignment, queue)
        kind = query(pointer, context=queue.context).kind if pointer else self._kind
        if kind in (self._kind, "unknown") or kind not in queue.device.kinds:
            return pointer
        self._handoff.kind, self._handoff.pointer = kind, pointer
        raise MemoryError(f"the memory at {pointer:#x} is of kind {kind!r}")

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        self._allocator.deallocate(pointer, nbytes, queue)


class _OtherKindAllocator:
    """Returns the memory that the first resource passed on, if it is of this kind."""

    def __init__(self, allocator: _Allocator, kind: Kind, handoff: local) -> None:
        self._allocator, self._kind, self._handoff = allocator, kind, handoff

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:  # noqa: ARG002
        if getattr(self._handoff, "kind", None) != self._kind:
            raise MemoryError(f"the allocator returned no memory of kind {self._kind!r}")
        pointer: int = self._handoff.pointer
        self._handoff.__dict__.clear()
        return pointer

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        self._allocator.deallocate(pointer, nbytes, queue)
