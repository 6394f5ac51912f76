# SPDX-License-Identifier: Apache-2.0
"""Leak checks: live memory, counted before and after."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from isthmus.memory import live

Counts = Mapping[str, tuple[int, int]]  # kind -> (allocations, bytes)

_PATIENCE = 5.0


class LeakError(AssertionError):
    """More memory is live than before; the message has the numbers."""


@contextmanager
def leak_check(timeout: float = _PATIENCE) -> Iterator[None]:
    """Fails with ``LeakError`` if more memory of Isthmus is live afterwards than before.

    Memory is returned once the work on it has ended; this waits up to ``timeout`` seconds for that.
    Memory of default pools counts by block. Other pools count by the memory that they hold of the
    driver: a small block that leaks inside of memory that was held before is not detected. An
    exception that leaves the block keeps its variables alive, so nothing is checked then.
    """
    before = live_now()
    yield
    left = leaks(before, timeout)
    if left:
        raise LeakError(left)


def live_now() -> Counts:
    """Live memory, after a garbage collection."""
    gc.collect()
    return {kind: live(kind) for kind in ("device", "shared", "host")}


def leaks(before: Counts, timeout: float = _PATIENCE) -> str:
    """A text about what leaked since ``before``; "" if nothing did."""
    until = time.monotonic() + timeout
    while True:
        left = _left(before, live_now())
        if not left or time.monotonic() >= until:
            return f"allocations that were not freed: {', '.join(left)}" if left else ""
        time.sleep(0.01)


def _left(before: Counts, now: Counts) -> list[str]:
    more = {kind: (now[kind][0] - was[0], now[kind][1] - was[1]) for kind, was in before.items()}
    return [
        f"{count} of {kind} kind, {nbytes} bytes"
        for kind, (count, nbytes) in more.items()
        if count > 0
    ]
