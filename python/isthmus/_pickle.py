# SPDX-License-Identifier: Apache-2.0
"""Pickling of buffers and arrays: contents, kind, alignment and device."""

from __future__ import annotations

import pickle
import warnings
from typing import TYPE_CHECKING, Any

from ._core import Array, Buffer, Device, DeviceNotFoundError, DType, InvalidArgumentError
from ._not_loaded import loads_pickles

if TYPE_CHECKING:
    from ._kinds import Kind


def reduce(buffer: Buffer, protocol: int) -> tuple[Any, ...]:
    """``Buffer.__reduce_ex__``. From protocol 5 on host-accessible memory is not copied."""
    contents: Any
    if protocol < 5:
        contents = buffer.tobytes()
    elif buffer.kind == "device":
        contents = pickle.PickleBuffer(buffer._host_copy())
    else:
        contents = pickle.PickleBuffer(buffer)
    location = (buffer.kind, buffer.alignment, buffer.device.filter, buffer.nbytes)
    return load, (type(buffer), contents, *location), getattr(buffer, "__dict__", None) or None


@loads_pickles
def load(
    cls: type[Buffer],
    contents: Any,
    kind: Kind,
    alignment: int,
    device: str,
    nbytes: int | None = None,  # older pickles lack it
) -> Buffer:
    """Recreates the buffer, on its device if that exists, else on the default device.

    ValueError if ``contents``, which are passed outside of the pickle, are not ``nbytes`` long.
    """
    view = frame_of(contents, nbytes)
    result = cls.__new__(cls)
    Buffer.__init__(
        result, view.nbytes, kind=kind, alignment=alignment, device=device_or_default(device)
    )
    result.copy_from(view)
    return result


def reduce_array(array: Array) -> tuple[Any, ...]:
    """For ``copyreg``: a new buffer with the elements in C order, their shape and dtype."""
    has_all = array.flags.c_contiguous and array.nbytes == array.buffer.nbytes
    contiguous = array if has_all else array.copy()
    return load_array, (contiguous.buffer, contiguous.shape, DType(contiguous.dtype).name)


@loads_pickles
def load_array(buffer: Buffer, shape: tuple[int, ...], dtype: str) -> Array:
    result = Array(buffer, shape, dtype)
    if result.nbytes != buffer.nbytes:
        raise ValueError(
            f"the pickle is of an array of {result.nbytes} bytes, but its buffer has "
            f"{buffer.nbytes} bytes"
        )
    return result


@loads_pickles
def load_device(device_filter: str) -> Device:
    """For ``Device.__reduce__``."""
    return Device(device_filter)


def frame_of(contents: Any, nbytes: int | None) -> memoryview:
    """One-dimensional bytes. ValueError if there are gaps, or not ``nbytes`` bytes."""
    view = memoryview(contents)
    if nbytes is not None and view.nbytes != nbytes:
        raise ValueError(
            f"the pickled buffer has {nbytes} bytes, but {view.nbytes} bytes were passed for it: "
            "pass the out-of-band buffers of the pickler, whole and in the same order"
        )
    if view.nbytes == 0:
        return memoryview(b"")  # a memoryview with a 0 in its shape cannot be cast
    if not view.c_contiguous:
        raise ValueError("the out-of-band buffer of a pickle has gaps: pass contiguous bytes")
    return view.cast("B")


def device_or_default(name: str) -> Device:
    try:
        return Device(name)
    # For example a simulated device of a process that has exited.
    except (DeviceNotFoundError, InvalidArgumentError):
        default = Device("")
        warnings.warn(
            f"the buffer was pickled on {name}, which is not available: it is loaded on "
            f"{default.filter}",
            RuntimeWarning,
            stacklevel=3,
        )
        return default
