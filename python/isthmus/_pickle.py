"""Pickling of buffers: contents, kind, alignment and device."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

from ._core import Buffer, Device, DeviceNotFoundError, InvalidArgumentError


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
