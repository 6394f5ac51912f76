# SPDX-License-Identifier: Apache-2.0
"""Pointers that own their memory, and the functions that allocate and free it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus._core import (
    Buffer,
    ClosedError,
    Context,
    DType,
    InvalidArgumentError,
    OutOfRangeError,
    WrongContextError,
)
from isthmus._integers import integer

from .current import check, global_queue

if TYPE_CHECKING:
    from isthmus._byte_count import ByteCount
    from isthmus._core import Device
    from isthmus._kinds import Kind

__all__ = ["UsmPointer", "device_alloc", "free", "host_alloc", "shared_alloc"]


class UsmPointer:
    """An address in memory of ``device_alloc``, ``shared_alloc`` or ``host_alloc``.

    It converts to a number (``int(ptr)``, ``hex(ptr)``, ``ctypes.c_void_p(int(ptr))``) and keeps
    the memory alive, as do all pointers derived from it. After ``free`` any use of them raises
    ClosedError. ``ptr + n`` and ``ptr - n`` are pointers ``n`` bytes further, within the allocation
    (OutOfRangeError). ``cast`` sets the element type, which counts of elements refer to. Pointers
    compare by address, with numbers too. Immutable; safe to use from any thread.
    """

    __slots__ = ("_address", "_buffer", "_dtype", "_offset")

    def __init__(self, buffer: Buffer, offset: int = 0, dtype: Any = None) -> None:
        """Points ``offset`` bytes into the buffer, at elements of ``dtype`` (None: bytes).

        ``dtype``: any argument of ``isthmus.DType``; TypeError for a type that arrays do not
        support.
        """
        if not isinstance(buffer, Buffer):
            raise TypeError(
                f"a pointer must be into an isthmus.Buffer, not {type(buffer).__name__}"
            )
        start = integer("offset", offset)
        if not 0 <= start <= buffer.nbytes:
            raise OutOfRangeError(
                f"byte {start} is outside the allocation of {buffer.nbytes} bytes"
            )
        self._buffer, self._offset = buffer, start
        self._dtype = None if dtype is None else DType(dtype)
        self._address = buffer.ptr + start

    @property
    def buffer(self) -> Buffer:
        """The whole allocation as a Buffer."""
        return self._buffer

    @property
    def offset(self) -> int:
        """Bytes from the allocation's start."""
        return self._offset

    @property
    def nbytes(self) -> int:
        """Bytes from here to the allocation's end."""
        return self._buffer.nbytes - self._offset

    @property
    def kind(self) -> str:
        """One of "device", "shared" and "host"."""
        return self._buffer.kind

    @property
    def device(self) -> Device:
        """The device that the memory was allocated for."""
        return self._buffer.device

    @property
    def context(self) -> Context:
        """The context that the memory belongs to."""
        return self._buffer.context

    @property
    def dtype(self) -> Any:
        """The isthmus.DType of an element; None: bytes."""
        return self._dtype

    @property
    def freed(self) -> bool:
        """Whether the memory was freed by ``free``."""
        return self._buffer.freed

    def cast(self, dtype: Any) -> UsmPointer:
        """The same address with another element type, as ``isthmus.DType`` accepts it; None: bytes.

        Raises TypeError for a type that arrays do not support.
        """
        return UsmPointer(self._buffer, self._offset, dtype)

    def __index__(self) -> int:
        if self._buffer.freed:
            raise ClosedError(f"the memory at {self._address:#x} was freed")
        return self._address

    __int__ = __index__

    def __add__(self, nbytes: int) -> UsmPointer:
        return UsmPointer(self._buffer, self._offset + integer("nbytes", nbytes), self._dtype)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, UsmPointer):
            return self._address - other._address
        return self + -integer("nbytes", other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, UsmPointer):
            return self._address == other._address
        return self._address == other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        state = "freed" if self.freed else f"{self.nbytes:,} bytes"
        of = "" if self._dtype is None else f" of {self._dtype}"
        return (
            f"<isthmus.low_level.UsmPointer {self._address:#x}{of}, {self.kind} memory on "
            f"{self.device.filter}, {state}>"
        )


def device_alloc(ctx: Context, dev: Device, nbytes: ByteCount, alignment: int = 1) -> UsmPointer:
    """``nbytes`` bytes that only the device can access, aligned to a power of two.

    They are allocated from the current resource (``isthmus.using``), else from the default pool,
    and are freed with the last pointer unless ``free`` was called before. Raises the errors of
    Buffer(): ValueError, USMAllocationError, UnsupportedError for a kind that the device does not
    have; and WrongContextError for a device that is not in the context.
    """
    return _allocated(ctx, dev, "device", nbytes, alignment)


def shared_alloc(
    ctx: Context, dev: Device | None, nbytes: ByteCount, alignment: int = 1
) -> UsmPointer:
    """``device_alloc`` for memory that migrates to the processor that uses it.

    ``dev`` None: the context's first device.
    """
    return _allocated(ctx, _first(ctx) if dev is None else dev, "shared", nbytes, alignment)


def host_alloc(ctx: Context, nbytes: ByteCount, alignment: int = 1) -> UsmPointer:
    """``device_alloc`` for host memory, which all devices of the context can access."""
    return _allocated(ctx, _first(ctx), "host", nbytes, alignment)


def free(ctx: Context, ptr: UsmPointer) -> None:
    """Frees the allocation of ``ptr`` and of all pointers into it. Freeing twice does nothing.

    The memory is returned after the last operation on it has completed. Never blocks. Raises
    TypeError for an object that is not from the functions above, WrongContextError for a pointer of
    another context, InvalidArgumentError for a pointer past the allocation's start.
    """
    if not isinstance(ptr, UsmPointer):
        raise TypeError(
            f"free() takes a pointer from device_alloc, shared_alloc or host_alloc, not "
            f"{type(ptr).__name__}"
        )
    if ptr.context != ctx:
        raise WrongContextError(
            f"{ptr!r} is not memory of {ctx!r}: free it in the context that it was allocated in"
        )
    if ptr.offset:
        raise InvalidArgumentError(
            f"{ptr!r} is {ptr.offset} bytes past the start of its allocation: free the start"
        )
    ptr.buffer.free()


def _first(ctx: Context) -> Device:
    if not isinstance(ctx, Context):
        raise TypeError(f"ctx must be an isthmus.Context, not {type(ctx).__name__}")
    return ctx.devices[0]


def _allocated(
    ctx: Context, dev: Device, kind: Kind, nbytes: ByteCount, alignment: int
) -> UsmPointer:
    check(ctx, dev)
    queue = global_queue(ctx, dev)
    return UsmPointer(Buffer(nbytes, kind=kind, queue=queue, alignment=alignment))
