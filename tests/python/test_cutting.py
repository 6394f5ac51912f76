# SPDX-License-Identifier: Apache-2.0
"""Resources that subdivide the blocks of their upstream: arguments and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import Make, until

import isthmus
from isthmus import Queue
from isthmus.memory import (
    ArenaResource,
    FallbackResource,
    FixedSizeResource,
    MonotonicResource,
    PoolResource,
    StatisticsResource,
    USMAllocationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def test_monotonic(q: Queue, kind: str, make: Make) -> None:
    counted = StatisticsResource(make(kind, q.device))
    with MonotonicResource(counted, "4KiB") as cut:
        buffers = [cut.allocate(100 + i, alignment=64, queue=q) for i in range(100)]
        buffers[0].free()
    assert counted.current_count > 0, "buffers keep their chunks"
    buffers.clear()
    assert until(lambda: counted.current_count == 0)
    cut.allocate(1, queue=q)
    assert counted.current_bytes == 4096
    cut.release()
    assert until(lambda: counted.current_count == 0)
    assert repr(cut).startswith(f"<isthmus.memory.MonotonicResource of {kind} memory on")


def test_fixed_size(q: Queue, kind: str, make: Make) -> None:
    counted = StatisticsResource(make(kind, q.device))
    fixed = FixedSizeResource(counted, "1000", 8)
    assert fixed.block_bytes == 1000
    buffers = [fixed.allocate(1000 - i, queue=q) for i in range(24)]
    assert counted.current_count == 3
    with pytest.raises(isthmus.InvalidArgumentError, match=r"1001.*1000"):
        fixed.allocate(1001, queue=q)
    buffers.clear()
    assert until(lambda: fixed.trim() >= 0 and counted.current_count == 0)
    assert repr(fixed).startswith(f"<isthmus.memory.FixedSizeResource of {kind} memory on")


def test_arena(q: Queue, kind: str, make: Make) -> None:
    counted = StatisticsResource(make(kind, q.device))
    arenas = ArenaResource(counted, "4MiB")
    buffers = [arenas.allocate(1 + 991 * i, alignment=256, queue=q) for i in range(40)]
    assert counted.current_bytes == 1 << 20
    with pytest.raises(USMAllocationError, match=r"4 MiB.*limit of 4 MiB"):
        arenas.allocate(4 << 20, queue=q)
    buffers.clear()
    assert until(lambda: arenas.trim() >= 0 and counted.current_count == 0)
    assert repr(arenas).startswith(f"<isthmus.memory.ArenaResource of {kind} memory on")


@pytest.mark.parametrize(
    "over", [MonotonicResource, ArenaResource, lambda of: FixedSizeResource(of, 100)]
)
def test_what_cannot_be_stood_on(over: Callable[[object], object]) -> None:
    for wrong in (None, 3, PoolResource):
        with pytest.raises(TypeError, match=r"resource of isthmus\.memory"):
            over(wrong)
    mixed = FallbackResource(PoolResource("shared", "host"), PoolResource("host", "host"))
    with pytest.raises(isthmus.UnsupportedError, match="several kinds"):
        over(mixed)


def test_wrong_blocks() -> None:
    pool = PoolResource("host", "host")
    with pytest.raises(ValueError):
        FixedSizeResource(pool, 0)
    with pytest.raises((ValueError, TypeError)):
        FixedSizeResource(pool, 100, "1 furlong")  # type: ignore[arg-type]
