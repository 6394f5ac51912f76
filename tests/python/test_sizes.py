# SPDX-License-Identifier: Apache-2.0
"""Sizes as text, which every resource accepts as a number of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import sim

from isthmus.memory import (
    AlignedResource,
    ArenaResource,
    BinningResource,
    DebugResource,
    FixedSizeResource,
    LimitResource,
    MonotonicResource,
    PoolResource,
    USMAllocationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Queue
    from isthmus.memory import MemoryResource

MIB = 1 << 20


def test_limits(q: Queue, kind: str) -> None:
    pool = PoolResource(kind, q.device)
    assert LimitResource(pool, "4GiB").limit_bytes == 4 << 30
    whole = LimitResource(pool, "100%").limit_bytes
    assert LimitResource(pool, "50%").limit_bytes == whole // 2
    limited = LimitResource(pool, "1.5MiB")
    kept = limited.allocate(MIB)
    with pytest.raises(USMAllocationError, match=r"limit of 1\.5 MiB"):
        limited.allocate(MIB)
    kept.free()


def test_shares_are_those_of_the_device() -> None:
    device = sim(capacity="64MiB")
    pool = PoolResource("device", device)
    assert LimitResource(pool, "25%").limit_bytes == 16 * MIB
    arenas = ArenaResource(pool, "25%")
    with pytest.raises(USMAllocationError, match="limit of 16 MiB"):
        arenas.allocate(17 * MIB)


def test_alignments_and_bins(q: Queue, kind: str) -> None:
    pool = PoolResource(kind, q.device)
    aligned = AlignedResource(pool, "4KiB", "64KiB")
    assert aligned.allocate(70_000, queue=q).ptr % 4096 == 0
    small, large = LimitResource(pool, "1KiB"), LimitResource(pool, "1MiB")
    by_size = BinningResource(pool, {"64KiB": large, 1024: small})
    assert by_size.bins == {65_536: large, 1024: small}
    buffer = by_size.allocate(60_000, queue=q)
    assert (large.in_use_bytes, small.in_use_bytes) == (60_000, 0)
    del buffer


TAKERS: list[tuple[str, Callable[[MemoryResource, Any], object]]] = [
    ("limit_bytes", LimitResource),
    ("alignment", AlignedResource),
    ("min_bytes", lambda pool, size: AlignedResource(pool, 64, size)),
    ("size of a bin", lambda pool, size: BinningResource(pool, {size: pool})),
    ("first_bytes", MonotonicResource),
    ("block_bytes", FixedSizeResource),
    ("limit_bytes", ArenaResource),
    ("kept_bytes", DebugResource),
    ("keep_bytes", lambda pool, size: pool.trim(size)),
    ("initial_bytes", lambda pool, size: PoolResource("host", "host", initial_bytes=size)),
    ("limit_bytes", lambda pool, size: PoolResource("host", "host", limit_bytes=size)),
]


@pytest.mark.parametrize(("name", "take"), TAKERS, ids=range(len(TAKERS)))
def test_what_is_no_size(name: str, take: Callable[[MemoryResource, Any], object]) -> None:
    pool = PoolResource("host", "host")
    with pytest.raises(TypeError, match=rf"{name} must be an integer number of bytes .*1\.5"):
        take(pool, 1.5)
    with pytest.raises(ValueError, match=rf"{name}: '1 potato' is not a number of bytes: use"):
        take(pool, "1 potato")
    with pytest.raises(ValueError, match=rf"{name} must be 0 or more, not -1"):
        take(pool, -1)
    too_large = USMAllocationError if name == "initial_bytes" else ValueError
    with pytest.raises(too_large, match=rf"{name} of 18446744073709551616"):
        take(pool, 1 << 64)
