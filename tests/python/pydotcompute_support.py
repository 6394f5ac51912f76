# SPDX-License-Identifier: Apache-2.0
"""Helpers for the tests of isthmus.compat.pydotcompute: buffers with two copies, and both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from unified_support import numbers, write_on_device

from isthmus.compat.pydotcompute import BufferState, UnifiedBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Device

SIZE = 10
OLD, NEW = numbers(SIZE), numbers(SIZE, start=100)

either_way = pytest.mark.parametrize("separate", [False, True], ids=["one", "two"])


def new_buffer(dev: Device, shape: Any = SIZE, dtype: Any = np.float32, **options: Any) -> Any:
    """A buffer of this package; with two copies unless the options say otherwise."""
    return UnifiedBuffer(shape, dtype, device=dev, **({"separate": True} | options))


def on_device(buf: Any) -> np.ndarray:
    """The device copy, brought up to date, as a NumPy array."""
    array = buf.device
    if isinstance(array, np.ndarray):
        return array.copy()
    return array.to_numpy() if hasattr(array, "to_numpy") else array.get()  # CuPy array


def _host_only(buf: Any) -> None:
    _ = buf.host  # with unspecified contents


def _device_only(buf: Any) -> None:
    write_on_device(buf, OLD)


def _synchronized(buf: Any) -> None:
    buf.copy_from(OLD).sync_to_device()


def _host_dirty(buf: Any) -> None:
    _synchronized(buf)
    buf.host[:] = NEW


def _device_dirty(buf: Any) -> None:
    _synchronized(buf)
    write_on_device(buf, NEW)


STATES: dict[BufferState, Callable[[Any], None]] = {
    BufferState.UNINITIALIZED: lambda buf: None,
    BufferState.HOST_ONLY: _host_only,
    BufferState.DEVICE_ONLY: _device_only,
    BufferState.SYNCHRONIZED: _synchronized,
    BufferState.HOST_DIRTY: _host_dirty,
    BufferState.DEVICE_DIRTY: _device_dirty,
}


def in_state(dev: Device, state: BufferState, **options: Any) -> Any:
    """A buffer in that state: OLD in each copy that exists, but NEW in the one that is dirty."""
    buf = new_buffer(dev, **options)
    STATES[state](buf)
    assert buf.state is state
    return buf
