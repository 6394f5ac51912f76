# SPDX-License-Identifier: Apache-2.0
"""Sources, destinations and pointers: the location, number and type of their bytes."""

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


class Endpoint(NamedTuple):
    """Bytes of ``holder`` from ``offset`` on. Copies accept ``holder`` unchanged."""

    holder: Any
    offset: int
    nbytes: int | None
    """None: all bytes of the holder; the copy itself checks the bounds."""
    dtype: Any
    """The type of the elements; None: bytes."""

    def check_bounds(self, nbytes: int, name: str) -> None:
        """OutOfRangeError if there are fewer than ``nbytes`` bytes."""
        if self.nbytes is not None and nbytes > self.nbytes:
            raise OutOfRangeError(
                f"{nbytes} bytes exceed the {name}, which has {self.nbytes} bytes from "
                f"offset {self.offset} on"
            )


def usm_endpoint(obj: Any, name: str, *, writes: bool = False) -> Endpoint:
    """Converts memory of Isthmus; ReadOnlyError if ``writes`` and the memory is read-only.

    TypeError for other objects, ValueError for an array with gaps.
    """
    if isinstance(obj, UsmPointer):
        _check_writes(obj.buffer, name, writes)
        return Endpoint(obj.buffer, obj.offset, obj.nbytes, obj.dtype)
    if isinstance(obj, (Array, Buffer)):
        _check_writes(obj, name, writes)
    if isinstance(obj, Buffer):
        return Endpoint(obj, 0, obj.nbytes, None)
    if isinstance(obj, Array):
        if not _is_dense(obj.shape, obj.strides, obj.itemsize):
            raise ValueError(
                f"the {name} is an array with gaps, of shape {obj.shape} and strides "
                f"{obj.strides}: pass a contiguous array, or copy it with isthmus.copyto"
            )
        return Endpoint(obj.buffer, obj.offset, obj.nbytes, obj.dtype)
    raise TypeError(
        f"the {name} must be a pointer, an isthmus.Array or an isthmus.Buffer, not "
        f"{type(obj).__name__}"
    )


def _check_writes(obj: Array | Buffer, name: str, writes: bool) -> None:
    if writes and obj.read_only:
        raise ReadOnlyError(f"the {name} of type {type(obj).__name__} is read-only")


def endpoint(obj: Any, name: str, *, writes: bool = False) -> Endpoint:
    """As ``usm_endpoint``, but also for host memory with the buffer protocol or an interface."""
    if isinstance(obj, (UsmPointer, Buffer, Array)):
        return usm_endpoint(obj, name, writes=writes)
    if any(hasattr(obj, interface) for interface in _INTERFACES):
        return Endpoint(obj, 0, None, _dtype_of_interface(obj))
    try:
        view = memoryview(obj)
    except TypeError:
        raise TypeError(
            f"the {name} must be a pointer, an array, an address or an object with the buffer "
            f"protocol, not {type(obj).__name__}"
        ) from None
    if writes and view.readonly:
        raise ReadOnlyError(f"the {name} of type {type(obj).__name__} is read-only")
    if not view.contiguous:
        raise ValueError(f"the {name} is an array with gaps: pass a contiguous array")
    return Endpoint(obj, 0, view.nbytes, _dtype_of_view(obj, view))


def is_address(obj: Any) -> bool:
    """Whether ``obj`` is a number; a UsmPointer, which has more information, is not."""
    return isinstance(obj, numbers.Integral)


def endpoint_at(address: Any, name: str, nbytes: int, queue: Queue) -> Endpoint:
    """Converts an address of USM that the library or the queue's context knows, else of host
    memory.

    WrongContextError for USM of another context. Memory of the host device is host memory.
    """
    if nbytes == 0:
        return Endpoint(bytearray(), 0, 0, None)
    pointer = integer("an address", address)
    if pointer <= 0:
        raise InvalidArgumentError(
            f"the {name} is {pointer}, which is not an address of {nbytes} bytes: pass a positive "
            "one"
        )
    record = query(pointer)
    if record.kind == "unknown":
        record = query(pointer, context=queue.context)
    is_host = record.device is not None and record.device.backend == "host"
    if nbytes >= 1 << 63:
        raise OutOfRangeError(
            f"{nbytes} bytes at the {name} are too many: at most 2**63 - 1 are supported"
        )
    if record.kind == "unknown" or (is_host and record.context != queue.context):
        return Endpoint((ctypes.c_ubyte * nbytes).from_address(pointer), 0, nbytes, None)
    return Endpoint(Buffer.adopt(pointer, nbytes, queue=queue), 0, nbytes, None)


def _dtype_of_view(obj: Any, view: memoryview) -> Any:
    """None for plain bytes, which match every element type."""
    if not hasattr(obj, "dtype") and view.format in _BYTES:
        return None
    import numpy as np

    return np.asarray(obj).dtype


def _dtype_of_interface(obj: Any) -> Any:
    import numpy as np

    name = next(interface for interface in _INTERFACES if hasattr(obj, interface))
    return np.dtype(getattr(obj, name)["typestr"])


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    if 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:
            if stride != itemsize:
                return False
            itemsize *= extent
    return True


def bytes_of(count: int, *endpoints: Endpoint) -> int:
    """Bytes of ``count`` elements of the endpoints' type. TypeError if their types differ."""
    number = integer("a count of elements", count)
    if number < 0:
        raise ValueError(f"a count of elements must be 0 or more, not {number}")
    types = [each.dtype for each in endpoints if each.dtype is not None]
    if any(dtype != types[0] for dtype in types):
        raise TypeError(
            f"the elements have different types, {types[0]} and {types[1]}: set a pointer's type "
            "with ptr.cast(dtype)"
        )
    return number * (types[0].itemsize if types else 1)
