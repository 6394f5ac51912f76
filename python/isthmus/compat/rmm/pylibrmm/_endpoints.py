# SPDX-License-Identifier: Apache-2.0
"""Converts host objects, arrays and addresses to sources and destinations of Isthmus' copies."""

from __future__ import annotations

from ctypes import c_ubyte
from typing import Any

from isthmus import Buffer, InvalidArgumentError, Queue, ReadOnlyError
from isthmus.memory import query

__all__ = [
    "CUDA_INTERFACE",
    "contiguous_bytes",
    "first_version_of",
    "host_bytes",
    "interface_of",
    "is_pinned",
    "memory_at",
]

CUDA_INTERFACE = "__cuda_array_interface__"
_BYTE_FORMATS = ("B", "c", "?")


def host_bytes(obj: object, name: str, *, writable: bool = False) -> memoryview:
    """The bytes of an object with the buffer protocol, which must be contiguous and 1-D.

    Raises TypeError for other objects; ValueError for other element types, more dimensions, gaps,
    and a read-only object if ``writable``.
    """
    if obj is None:
        raise TypeError(f"{name} must be a bytes-like object, not None")
    view = memoryview(obj)  # type: ignore[arg-type]
    if view.format == "B" and view.ndim == 1 and view.c_contiguous and not writable:
        return view  # the common case
    if view.format not in _BYTE_FORMATS:
        raise ValueError(
            f"{name} must hold unsigned bytes, not the format {view.format!r}: for a NumPy array, "
            "pass array.view('u1')"
        )
    if view.ndim != 1 or not view.c_contiguous:
        raise ValueError(
            f"{name} must be contiguous and one-dimensional, not of shape {view.shape} and "
            f"strides {view.strides}"
        )
    if writable and view.readonly:
        raise ReadOnlyError(f"{name} is read-only: pass a writable object")
    return view.cast("B")


def is_pinned(view: memoryview, queue: Queue) -> bool:
    """Whether the driver knows the host memory, so that copies are asynchronous to the host."""
    import numpy as np

    address = np.frombuffer(view, np.uint8).ctypes.data
    return query(address, context=queue.context).state == "live"


def memory_at(pointer: int, nbytes: int, queue: Queue, owner: object = None) -> Buffer | memoryview:
    """The bytes at an address: USM of any kind, kept alive by ``owner``, or plain host memory.

    Raises InvalidArgumentError, a ValueError, for 0 and for memory that is known to be freed;
    OutOfRangeError past the end of an allocation.
    """
    if pointer == 0:
        raise InvalidArgumentError(f"address 0 is invalid: expected memory of {nbytes} bytes")
    record = query(pointer, context=queue.context)
    # Adopted memory is "waiting", too, if a buffer over it was dropped while a copy was running;
    # its owner has not freed it.
    if record.state == "free" or (record.state == "waiting" and record.kind == "unknown"):
        raise InvalidArgumentError(f"the memory at {pointer:#x} was freed and must not be used")
    if record.kind == "unknown":
        return memoryview((c_ubyte * nbytes).from_address(pointer)).cast("B")
    owning_queue = queue if record.device in (None, queue.device) else record.device.default_queue
    return Buffer.adopt(pointer, nbytes, kind=record.kind, queue=owning_queue, owner=owner)


def interface_of(array: Any) -> tuple[str, dict[str, Any]]:
    """The name and contents of a device array's interface. ValueError if it has none."""
    for name in ("__sycl_usm_array_interface__", CUDA_INTERFACE):
        interface = getattr(array, name, None)
        if interface is not None:
            return name, interface
    raise ValueError(
        f"Expected object to support `{CUDA_INTERFACE}` protocol, or __sycl_usm_array_interface__, "
        f"not {array!r}"
    )


def first_version_of(interface: dict[str, Any]) -> dict[str, Any]:
    """A CUDA array interface of bytes in the form of version 0, without stream and offset."""
    return {
        "data": interface["data"],
        "shape": interface["shape"],
        "strides": None,
        "typestr": "|u1",
        "version": 0,
    }


def contiguous_bytes(name: str, interface: dict[str, Any]) -> int:
    """The size of an array in bytes. ValueError unless it is one-dimensional and contiguous."""
    from numpy import dtype

    shape, strides = interface["shape"], interface.get("strides")
    itemsize = dtype(interface["typestr"]).itemsize
    # Strides are in bytes in CUDA's interface and in elements in SYCL's.
    step = itemsize if name == CUDA_INTERFACE else 1
    if len(shape) > 1:
        raise ValueError(
            f"Only 1-D contiguous arrays are supported, got {len(shape)}-D array: cuda_ary must be "
            f"of one dimension, not of shape {tuple(shape)}"
        )
    if strides is not None and shape and shape[0] > 1 and strides[0] != step:
        raise ValueError(
            "Only 1-D contiguous arrays are supported, got a non-contiguous array: cuda_ary must "
            f"be contiguous, not with strides {tuple(strides)}"
        )
    return int((shape[0] if shape else 1) * itemsize)
