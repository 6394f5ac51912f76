# SPDX-License-Identifier: Apache-2.0
"""Helpers for the tests of unified buffers: kinds of tracking, and access to both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from isthmus import UnifiedBuffer, _core

if TYPE_CHECKING:
    from isthmus import Device

MEANS = ("pages", "bytes", "hashes")
TELLS_PAGES = _core._tracking_in_force()[0] == "pages"

each_means = pytest.mark.parametrize(
    "tracking",
    [
        pytest.param(
            means,
            marks=pytest.mark.skipif(
                means == "pages" and not TELLS_PAGES, reason="the kernel tells no written pages"
            ),
        )
        for means in MEANS
    ],
)


def two_copies(dev: Device, shape: Any, tracking: str | None = None, **options: Any) -> Any:
    """A unified buffer of float32 that has two copies, whatever the device."""
    options = {"dtype": np.float32, "separate": True, "device": dev} | options
    return UnifiedBuffer(shape, tracking=tracking, **options)


def read_on_device(buf: Any) -> np.ndarray:
    """The device copy, brought up to date; does not access the host copy."""
    array = buf.device
    return array.copy() if isinstance(array, np.ndarray) else array.to_numpy()


def write_on_device(buf: Any, data: Any, rows: Any = None) -> None:
    """Writes through the device copy, which marks it dirty."""
    with buf.device_write(rows) as part:
        data = np.broadcast_to(np.asarray(data, buf.dtype), part.shape)
        if isinstance(part, np.ndarray):
            part[...] = data
        else:
            part.copy_from(data)


def numbers(size: int, start: int = 1) -> np.ndarray:
    return np.arange(start, start + size, dtype=np.float32)


def covered(ranges: Any) -> set[int]:
    return {element for start, stop in ranges for element in range(start, stop)}
