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

__all__ = ["any_kind", "of_one_kind"]

_PROBED = 2 << 20  # bytes, the size of a pool's requests


class _Allocator(Protocol):
    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int: ...
    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None: ...


def any_kind(allocator: _Allocator, kind: str, device: Device) -> MemoryResource:
    """A chain of custom resources, one for each kind that the device supports.

    A custom resource has one kind, but the allocator may return memory of any. The first resource
    calls the allocator. If the memory is of another kind, it passes the memory to the resource of
    that kind, within the same request and thread, so that each block is recorded with its own kind.
    """
    left = local()
    made: MemoryResource = CustomResource(_First(allocator, kind, left), kind, device)
    for other in ("device", "shared", "host"):
        if other != kind and other in device.kinds:
            taker = _Taker(allocator, other, left)
            made = FallbackResource(made, CustomResource(taker, other, device))
    return made


def of_one_kind(resource: MemoryResource) -> MemoryResource:
    """The same memory as a resource of one kind, for resources that sub-allocate from it.

    The kind is that of a block of 2 MiB, which is allocated here and freed again. If that
    allocation fails, it is the resource's nominal kind.
    """
    kind = resource.kind
    with suppress(MemoryError), Buffer(_PROBED, resource=resource) as probe:
        kind = probe.kind
    return CustomResource(_Through(resource), kind, resource.device)


class _Through:
    def __init__(self, resource: MemoryResource) -> None:
        self._resource = resource
        self._buffers: dict[int, Buffer] = {}

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
        # The program's functions take no alignment, so their memory may begin at any address.
        made = Buffer(nbytes + alignment, queue=queue, resource=self._resource)
        pointer = -(-made.ptr // alignment) * alignment
        self._buffers[pointer] = made
        return pointer

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:  # noqa: ARG002
        self._buffers.pop(pointer).free()


class _First:
    def __init__(self, allocator: _Allocator, kind: str, left: local) -> None:
        self._allocator, self._kind, self._left = allocator, kind, left

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
        self._left.__dict__.clear()
        pointer = self._allocator.allocate(nbytes, alignment, queue)
        kind = query(pointer, context=queue.context).kind if pointer else self._kind
        if kind in (self._kind, "unknown") or kind not in queue.device.kinds:
            return pointer
        self._left.kind, self._left.pointer = kind, pointer
        raise MemoryError(f"the memory at {pointer:#x} is of kind {kind!r}")

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        self._allocator.deallocate(pointer, nbytes, queue)


class _Taker:
    """Takes the memory that the first resource passed on, if it is of this kind."""

    def __init__(self, allocator: _Allocator, kind: str, left: local) -> None:
        self._allocator, self._kind, self._left = allocator, kind, left

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:  # noqa: ARG002
        if getattr(self._left, "kind", None) != self._kind:
            raise MemoryError(f"there is none of kind {self._kind!r} either")
        pointer: int = self._left.pointer
        self._left.__dict__.clear()
        return pointer

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        self._allocator.deallocate(pointer, nbytes, queue)
