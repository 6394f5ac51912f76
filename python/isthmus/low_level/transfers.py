# SPDX-License-Identifier: Apache-2.0
"""Copies and fills that are counted in elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus._core import Array

from .current import global_queue
from .endpoint import Endpoint, bytes_of, endpoint, endpoint_at, is_address, usm_endpoint

if TYPE_CHECKING:
    from isthmus._core import Context, Device, Event, Queue

__all__ = ["unsafe_copyto", "unsafe_fill"]


def unsafe_copyto(ctx: Context, dev: Device, dst: Any, src: Any, n: int) -> Event:
    """Copies ``n`` elements on ``global_queue(ctx, dev)`` and returns the copy's event at once.

    ``dst`` and ``src``: pointers, Arrays without gaps, Buffers, NumPy arrays and others with the
    buffer protocol or one of the array interfaces, or addresses, of host memory or of USM. The
    element type is that of the argument that has one; if neither has, it is a byte. ``dst`` and
    ``src`` are kept alive until the copy has completed, except memory at a bare address. Ordered
    after earlier work on the queue and after other work on the memory.

    Raises OutOfRangeError past either end, as far as that is known, TypeError for two types,
    ValueError for memory that is not contiguous, WrongContextError for memory of other contexts by
    address, ReadOnlyError.
    """
    queue = global_queue(ctx, dev)
    operands = {"destination": dst, "source": src}
    endpoints = {
        name: endpoint(each, name, writes=name == "destination")
        for name, each in operands.items()
        if not is_address(each)
    }
    nbytes = bytes_of(n, *endpoints.values())
    destination, source = (
        endpoints.get(name) or endpoint_at(each, name, nbytes, queue)
        for name, each in operands.items()
    )
    return copy_on(queue, destination, source, nbytes)


def copy_on(queue: Queue, dst: Endpoint, src: Endpoint, nbytes: int, after: Any = ()) -> Event:
    """Submits a copy, unless an endpoint has too few bytes."""
    dst.check_bounds(nbytes, "destination")
    src.check_bounds(nbytes, "source")
    event = queue.copy(
        dst.holder, src.holder, nbytes, dst_offset=dst.offset, src_offset=src.offset,
        after=after, blocking=False,
    )  # fmt: skip
    assert event is not None
    return event


def unsafe_fill(ctx: Context, dev: Device, ptr: Any, pattern: Any, n: int) -> Event:
    """Repeats ``pattern`` ``n`` times from ``ptr``, on ``global_queue(ctx, dev)``; does not wait.

    ``ptr``: a pointer, an Array without gaps, a Buffer, or the address of USM. If it has a type,
    ``pattern`` is a number that this type can represent, as in ``Array.fill``. Otherwise it is an
    integer from 0 to 255, or bytes or a NumPy scalar of 1, 2, 4, 8 or 16 bytes.

    Raises OutOfRangeError past the end, OverflowError and TypeError for a value that the type
    cannot represent, WrongContextError, ReadOnlyError.
    """
    queue = global_queue(ctx, dev)
    if is_address(ptr):
        nbytes = bytes_of(n) * len(raw(pattern))
        return fill_on(queue, endpoint_at(ptr, "destination", nbytes, queue), pattern, nbytes)
    destination = usm_endpoint(ptr, "destination", writes=True)
    size = len(raw(pattern)) if destination.dtype is None else 1
    return fill_on(queue, destination, pattern, bytes_of(n, destination) * size)


def fill_on(queue: Queue, dst: Endpoint, pattern: Any, nbytes: int, after: Any = ()) -> Event:
    """Submits a fill. Pre: ``nbytes`` is a multiple of the pattern's bytes."""
    dst.check_bounds(nbytes, "destination")
    if dst.dtype is None:
        event = queue.fill(
            dst.holder, raw(pattern), offset=dst.offset, nbytes=nbytes, after=after, blocking=False
        )
    else:
        count = nbytes // dst.dtype.itemsize
        event = elements_of(dst, count).fill(pattern, queue=queue, after=after, blocking=False)
    assert event is not None
    return event


def elements_of(typed: Endpoint, count: int) -> Array:
    """An Array of ``count`` elements from the start of ``typed`` on. ClosedError if the memory was
    freed.
    """
    return Array(typed.holder, count, typed.dtype, offset=typed.offset)


def raw(pattern: Any) -> bytes:
    """Converts the pattern for memory without a type to bytes."""
    if isinstance(pattern, (bytes, bytearray)):
        return bytes(pattern)
    if isinstance(pattern, int) and not isinstance(pattern, bool):
        if not 0 <= pattern <= 255:
            raise OverflowError(
                f"{pattern} is not a byte, 0 to 255: set the element type with ptr.cast(dtype)"
            )
        return bytes([pattern])
    if hasattr(pattern, "dtype") and hasattr(pattern, "tobytes") and pattern.shape == ():
        return bytes(pattern.tobytes())
    raise TypeError(
        f"memory without a type can be filled with bytes or a NumPy scalar, not "
        f"{type(pattern).__name__}: set the element type with ptr.cast(dtype)"
    )
