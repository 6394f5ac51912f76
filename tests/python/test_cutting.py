# SPDX-License-Identifier: Apache-2.0
"""Resources that subdivide the blocks of their upstream."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import Make, until

import isthmus
from isthmus import Buffer, Queue
from isthmus.memory import (
    ArenaResource,
    FallbackResource,
    FixedSizeResource,
    LimitResource,
    MonotonicResource,
    PoolResource,
    StatisticsResource,
    USMAllocationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def hold_what_was_put(buffers: list[Buffer]) -> None:
    data = [np.full(buffer.nbytes, i % 251, np.uint8) for i, buffer in enumerate(buffers)]
    for buffer, each in zip(buffers, data, strict=True):
        buffer.copy_from(each)
    for buffer, each in zip(buffers, data, strict=True):
        back = np.empty_like(each)
        buffer.copy_to(back)
        assert np.array_equal(back, each)


def test_monotonic(q: Queue, kind: str, make: Make) -> None:
    counted = StatisticsResource(make(kind, q.device))
    with MonotonicResource(counted, "4KiB") as cut:
        buffers = [cut.allocate(100 + i, alignment=64, queue=q) for i in range(100)]
        assert counted.current_count < 6
        hold_what_was_put(buffers)
        buffers[0].free()
    hold_what_was_put(buffers[1:])
    assert counted.current_count > 0, "buffers keep their chunks"
    buffers.clear()
    assert until(lambda: counted.current_count == 0)
    cut.allocate(1, queue=q)
    assert counted.current_bytes == 4096
    cut.release()
    assert until(lambda: counted.current_count == 0)
    assert repr(cut).startswith(f"<isthmus.memory.MonotonicResource of {kind} memory on")


def test_monotonic_continues_after_a_failure(q: Queue, kind: str, make: Make) -> None:
    cut = MonotonicResource(LimitResource(make(kind, q.device), 100_000))
    kept = [cut.allocate(1000, queue=q)]
    with pytest.raises(USMAllocationError, match="limit"):
        cut.allocate(200_000, queue=q)
    kept.append(cut.allocate(1000, queue=q))
    hold_what_was_put(kept)


def test_fixed_size(q: Queue, kind: str, make: Make) -> None:
    counted = StatisticsResource(make(kind, q.device))
    fixed = FixedSizeResource(counted, "1000", 8)
    assert fixed.block_bytes == 1000
    buffers = [fixed.allocate(1000 - i, queue=q) for i in range(24)]
    assert counted.current_count == 3
    hold_what_was_put(buffers)
    with pytest.raises(isthmus.InvalidArgumentError, match=r"1001.*1000"):
        fixed.allocate(1001, queue=q)
    del buffers[:8]
    buffers += [fixed.allocate(10, queue=q) for _ in range(4)]
    buffers.clear()
    assert until(lambda: fixed.trim() >= 0 and counted.current_count == 0)
    assert repr(fixed).startswith(f"<isthmus.memory.FixedSizeResource of {kind} memory on")


def test_arena(q: Queue, kind: str, make: Make) -> None:
    counted = StatisticsResource(make(kind, q.device))
    arenas = ArenaResource(counted, "4MiB")
    buffers = [arenas.allocate(1 + 991 * i, alignment=256, queue=q) for i in range(40)]
    assert counted.current_bytes == 1 << 20
    hold_what_was_put(buffers)
    with pytest.raises(USMAllocationError, match=r"4 MiB.*limit of 4 MiB"):
        arenas.allocate(4 << 20, queue=q)
    del buffers[::2]
    hold_what_was_put(buffers)
    buffers.append(arenas.allocate(2 << 20, queue=q))
    assert counted.current_bytes == 3 << 20
    buffers.clear()
    assert until(lambda: arenas.trim() >= 0 and counted.current_count == 0)
    assert repr(arenas).startswith(f"<isthmus.memory.ArenaResource of {kind} memory on")


def test_arenas_of_threads(q: Queue, kind: str) -> None:
    counted = StatisticsResource(PoolResource(kind, q.device))
    arenas = ArenaResource(counted)
    with ThreadPoolExecutor(4) as threads:
        made = threads.map(lambda i: arenas.allocate(100 + i, queue=q), range(400))
        hold_what_was_put(list(made))
    del made
    assert until(lambda: arenas.trim() >= 0 and counted.current_count == 0)


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


def test_wrong_sizes() -> None:
    pool = PoolResource("host", "host")
    for wrong in (-1, 2**70, "1 furlong"):
        with pytest.raises(ValueError):
            MonotonicResource(pool, wrong)
        with pytest.raises(ValueError):
            ArenaResource(pool, wrong)
        with pytest.raises(ValueError):
            FixedSizeResource(pool, wrong)
        with pytest.raises((ValueError, TypeError)):
            FixedSizeResource(pool, 100, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        FixedSizeResource(pool, 0)
    with pytest.raises(TypeError):
        MonotonicResource(pool, 1.5)  # type: ignore[arg-type]
