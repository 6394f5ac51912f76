# SPDX-License-Identifier: Apache-2.0
"""Leak checks: live memory, counted before and after."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from isthmus.memory import live

Counts = Mapping[str, tuple[int, int]]  # kind -> (allocations, bytes)

_TIMEOUT = 5.0


class LeakError(AssertionError):
    """More memory is live than before; the message has the numbers."""


@contextmanager
def leak_check(timeout: float = _TIMEOUT) -> Iterator[None]:
    """Fails with ``LeakError`` if more memory of Isthmus is live afterwards than before.

    Memory is returned after the work on it has completed; the check waits up to ``timeout`` seconds
    for that. Memory of default pools counts by block. Other pools count by the memory that they
    hold of the driver: a small block that leaks inside of memory that was held before is not
    detected. An exception that leaves the block keeps its variables alive, so no check is done
    then.
    """
    before = live_now()
    yield
    leaked = leaks(before, timeout)
    if leaked:
        raise LeakError(leaked)


def live_now() -> Counts:
    """Live memory, after a garbage collection."""
    gc.collect()
    return {kind: live(kind) for kind in ("device", "shared", "host")}


def leaks(before: Counts, timeout: float = _TIMEOUT) -> str:
    """Describes the memory that leaked since ``before``; "" if none did."""
    deadline = time.monotonic() + timeout
    while True:
        leaked = _increase(before, live_now())
        if not leaked or time.monotonic() >= deadline:
            return f"allocations that were not freed: {', '.join(leaked)}" if leaked else ""
        time.sleep(0.01)


def _increase(before: Counts, after: Counts) -> list[str]:
    increase = {
        kind: (after[kind][0] - was[0], after[kind][1] - was[1]) for kind, was in before.items()
    }
    return [
        f"{count} of {kind} kind, {nbytes} bytes"
        for kind, (count, nbytes) in increase.items()
        if count > 0
    ]
