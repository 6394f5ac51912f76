"""Memory that outlives what made it: counted before and after."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from isthmus.memory import live

Counts = Mapping[str, tuple[int, int]]  # kind -> (allocations, bytes)

_PATIENCE = 5.0


class LeakError(AssertionError):
    """More memory lives than before; the message has the numbers."""


@contextmanager
def leak_check(timeout: float = _PATIENCE) -> Iterator[None]:
    """Fails with ``LeakError`` if more memory of Isthmus lives afterwards than before.

    Memory goes back once the work on it has ended: up to ``timeout`` seconds are given for that.
    Memory of default pools counts by the block. Other pools count by the pieces that they have of
    the driver: a small block that leaks into a piece which was in use before is not found.
    An exception that leaves the block keeps its variables alive: then nothing is checked.
    """
    before = live_now()
    yield
    left = leaks(before, timeout)
    if left:
        raise LeakError(left)


def live_now() -> Counts:
    """What lives, once the garbage is gone."""
    gc.collect()
    return {kind: live(kind) for kind in ("device", "shared", "host")}


def leaks(before: Counts, timeout: float = _PATIENCE) -> str:
    """What is left over since ``before``, in words; "" if nothing is."""
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
