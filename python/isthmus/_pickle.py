"""Pickling of buffers and arrays: contents, kind, alignment and device."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

from ._core import Array, Buffer, Device, DeviceNotFoundError, DType, InvalidArgumentError


def reduce(buffer: Buffer, protocol: int) -> tuple[Any, ...]:
    """``Buffer.__reduce_ex__``. From protocol 5 on host-reachable memory goes out as it is."""
    contents: Any
    if protocol < 5:
        contents = buffer.tobytes()
    elif buffer.kind == "device":
        contents = pickle.PickleBuffer(buffer._host_copy())
    else:
        contents = pickle.PickleBuffer(buffer)
    place = (buffer.kind, buffer.alignment, buffer.device.filter)
    return load, (type(buffer), contents, *place), getattr(buffer, "__dict__", None) or None


def load(cls: type[Buffer], contents: Any, kind: str, alignment: int, device: str) -> Buffer:
    """Makes the buffer again, on its device if that is here, else on the default one."""
    view = memoryview(contents).cast("B")
    made = cls.__new__(cls)
    Buffer.__init__(
        made, view.nbytes, kind=kind, alignment=alignment, device=_device_or_default(device)
    )
    made.copy_from(view)
    return made


def reduce_array(array: Array) -> tuple[Any, ...]:
    """For ``copyreg``: elements in C order, their dtype and shape, in a buffer of their own."""
    has_all = array.flags.c_contiguous and array.nbytes == array.buffer.nbytes
    packed = array if has_all else array.copy()
    return load_array, (packed.buffer, packed.shape, DType(packed.dtype).name)


def load_array(buffer: Buffer, shape: tuple[int, ...], dtype: str) -> Array:
    return Array(buffer, shape, dtype)


def _device_or_default(name: str) -> Device:
    try:
        return Device(name)
    except (DeviceNotFoundError, InvalidArgumentError):  # a simulated one of a process that is gone
        default = Device("")
        warnings.warn(
            f"the buffer was pickled on {name}, which is not here: it is loaded on "
            f"{default.filter}",
            RuntimeWarning,
            stacklevel=3,
        )
        return default
