# SPDX-License-Identifier: Apache-2.0
"""Sources, destinations and pointers: where their bytes lie, how many, of which type."""

from __future__ import annotations

import ctypes
import numbers
from typing import TYPE_CHECKING, Any, NamedTuple

from isthmus._core import (
    Array,
    Buffer,
    InvalidArgumentError,
    OutOfRangeError,
    ReadOnlyError,
    query,
)
from isthmus._integers import integer

from .pointer import UsmPointer

if TYPE_CHECKING:
    from isthmus._core import Queue

_BYTES = ("B", "b", "c", "<B")
_INTERFACES = ("__sycl_usm_array_interface__", "__cuda_array_interface__")


class Place(NamedTuple):
    """Bytes from ``offset`` of ``holder`` on, which copies accept as it is."""

    holder: Any
    offset: int
    nbytes: int | None
    """None: as many as the holder has; the copy itself checks the bounds."""
    dtype: Any
    """The type of the elements; None: bytes."""

    def room(self, nbytes: int, name: str) -> None:
        """OutOfRangeError if there are fewer than ``nbytes`` bytes."""
        if self.nbytes is not None and nbytes > self.nbytes:
            raise OutOfRangeError(
                f"{nbytes} bytes exceed the {name}, which has {self.nbytes} bytes from there on"
            )


def usm_place(given: Any, name: str, *, writes: bool = False) -> Place:
    """From memory of Isthmus; ReadOnlyError if it is read-only and would be written.

    TypeError for anything else, ValueError for an array with gaps.
    """
    if isinstance(given, UsmPointer):
        _check_writes(given.buffer, name, writes)
        return Place(given.buffer, given.offset, given.nbytes, given.dtype)
    if isinstance(given, (Array, Buffer)):
        _check_writes(given, name, writes)
    if isinstance(given, Buffer):
        return Place(given, 0, given.nbytes, None)
    if isinstance(given, Array):
        if not _is_dense(given.shape, given.strides, given.itemsize):
            raise ValueError(
                f"the {name} is an array with gaps, of shape {given.shape} and strides "
                f"{given.strides}: pass a contiguous array, or copy it with isthmus.copyto"
            )
        return Place(given.buffer, given.offset, given.nbytes, given.dtype)
    raise TypeError(
        f"the {name} must be a pointer, an isthmus.Array or an isthmus.Buffer, not "
        f"{type(given).__name__}"
    )


def _check_writes(given: Array | Buffer, name: str, writes: bool) -> None:
    if writes and given.read_only:
        raise ReadOnlyError(f"the {name} of type {type(given).__name__} is read-only")


def place(given: Any, name: str, *, writes: bool = False) -> Place:
    """The same, and from host memory with the buffer protocol or an array interface."""
    if isinstance(given, (UsmPointer, Buffer, Array)):
        return usm_place(given, name, writes=writes)
    if any(hasattr(given, interface) for interface in _INTERFACES):
        return Place(given, 0, None, _dtype_of_interface(given))
    try:
        seen = memoryview(given)
    except TypeError:
        raise TypeError(
            f"the {name} must be a pointer, an array, an address or an object with the buffer "
            f"protocol, not {type(given).__name__}"
        ) from None
    if writes and seen.readonly:
        raise ReadOnlyError(f"the {name} of type {type(given).__name__} is read-only")
    if not seen.contiguous:
        raise ValueError(f"the {name} is an array with gaps: pass a contiguous array")
    return Place(given, 0, seen.nbytes, _dtype_of_view(given, seen))


def is_address(given: Any) -> bool:
    """Whether it is a number; a UsmPointer, which has more information, is not."""
    return isinstance(given, numbers.Integral)


def place_at(address: Any, name: str, nbytes: int, queue: Queue) -> Place:
    """From an address of USM that the library or the queue's context knows, else of host memory.

    WrongContextError for USM of another context. Memory of the host device is host memory.
    """
    if nbytes == 0:
        return Place(bytearray(), 0, 0, None)
    at = integer("an address", address)
    if at <= 0:
        raise InvalidArgumentError(
            f"the {name} is {at}, which is not an address of {nbytes} bytes: pass a positive one"
        )
    known = query(at)
    if known.kind == "unknown":
        known = query(at, context=queue.context)
    is_of_host = known.device is not None and known.device.backend == "host"
    if nbytes >= 1 << 63:
        raise OutOfRangeError(
            f"{nbytes} bytes at the {name} are too many: at most 2**63 - 1 are supported"
        )
    if known.kind == "unknown" or (is_of_host and known.context != queue.context):
        return Place((ctypes.c_ubyte * nbytes).from_address(at), 0, nbytes, None)
    return Place(Buffer.adopt(at, nbytes, queue=queue), 0, nbytes, None)


def _dtype_of_view(given: Any, seen: memoryview) -> Any:
    """None for plain bytes, which match every element type."""
    if not hasattr(given, "dtype") and seen.format in _BYTES:
        return None
    import numpy as np

    return np.asarray(given).dtype


def _dtype_of_interface(given: Any) -> Any:
    import numpy as np

    name = next(interface for interface in _INTERFACES if hasattr(given, interface))
    return np.dtype(getattr(given, name)["typestr"])


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    if 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:
            if stride != itemsize:
                return False
            itemsize *= extent
    return True


def bytes_of(count: int, *places: Place) -> int:
    """Bytes of ``count`` elements of the endpoints' type. TypeError if their types differ."""
    number = integer("a count of elements", count)
    if number < 0:
        raise ValueError(f"a count of elements must be 0 or more, not {number}")
    types = [place.dtype for place in places if place.dtype is not None]
    if any(dtype != types[0] for dtype in types):
        raise TypeError(
            f"the elements have different types, {types[0]} and {types[1]}: set a pointer's type "
            "with ptr.cast(dtype)"
        )
    return number * (types[0].itemsize if types else 1)
