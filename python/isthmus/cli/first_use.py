# SPDX-License-Identifier: Apache-2.0
"""Times of the first call of each kind in a process: opening drivers, growing pools, new pages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import isthmus

if TYPE_CHECKING:
    from collections.abc import Callable

_NBYTES = 4 << 20


class FirstUse:
    """Measures steps in the order of a program; each runs once."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def measure(self, what: str, step: Callable[[], Any]) -> Any:
        """The result of ``step``, whose time becomes a row."""
        start = time.perf_counter()
        result = step()
        self.rows.append({"what": what, "seconds": time.perf_counter() - start})
        return result

    def drivers(self) -> None:
        """Opens the drivers and lists their devices."""
        self.measure("devices()", isthmus.devices)

    def memory(self, device: isthmus.Device) -> None:
        """The first buffer, array and unified buffer, of 4 MiB each."""
        with device:
            self.measure("Buffer(n)", lambda: isthmus.Buffer(_NBYTES))
            self.measure("empty(n)", lambda: isthmus.empty(_NBYTES, "u1"))
            self.measure("UnifiedBuffer(n), from host to device", _unified)


def _unified() -> isthmus.UnifiedBuffer:
    unified = isthmus.UnifiedBuffer(_NBYTES, "u1", separate=True)
    unified.host[:] = 1
    unified.sync_to_device()
    return unified
