# SPDX-License-Identifier: Apache-2.0
"""Sizes as text, which every resource accepts as a number of bytes."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from support import sim

import isthmus
from isthmus import Buffer, InvalidArgumentError
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
FACTORS = {"": 1, "b": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("kmgt", 1)
    for unit, base in (("b", 1000), ("ib", 1024))
}


def model(text: str) -> int | None:
    """The number of bytes that the text denotes, computed another way; None if it is no size."""
    found = re.fullmatch(r"([0-9]+)(?:\.([0-9]{1,6}))?( *)([a-z]*)", text.lower())
    if found is None or found[4] not in FACTORS or (found[3] and not found[4]):
        return None
    nbytes = Fraction(f"{found[1]}.{found[2] or 0}") * FACTORS[found[4]]
    return int(nbytes) if nbytes.denominator == 1 and nbytes < 1 << 63 else None


def test_texts_are_read_as_a_model_reads_them() -> None:
    chosen = random.Random(8)
    numbers = ["0", "1", "64", "1.5", "0.25", "007", "1.", ".5", "2.000001", "-1", "1e3", "9" * 20]
    units = [*FACTORS, "B", "kB", "MB", "GiB", "TiB", "M", "KI", "iB", "PB", "B/s", "%"]
    sizes = 0
    for _ in range(3000):
        number = chosen.choice([*numbers, str(chosen.randrange(1 << chosen.randrange(70)))])
        text = number + " " * chosen.choice([0, 0, 1, 2]) + chosen.choice(units)
        text += chosen.choice(["", "", "", " ", "x"])
        expected = model(text)
        if expected is None:
            with pytest.raises((ValueError, MemoryError)):
                isthmus.parse_bytes(text)
        else:
            assert isthmus.parse_bytes(text) == expected, text
            sizes += 1
    assert sizes > 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "64M",
            r"'64M' is ambiguous: write 64MB \(64,000,000 bytes\) or 64MiB \(67,108,864 bytes\)",
        ),
        ("1 g", r"'1 g' is ambiguous: write 1GB \(1,000,000,000 bytes\) or 1GiB \("),
        ("1K", r"'1K' is ambiguous: write 1kB \(1,000 bytes\) or 1KiB \(1,024 bytes\)"),
        (
            "1e9",
            "'1e9' is not a number of bytes: use a size in bytes, kB, MB, GB, TB, KiB, MiB,",
        ),
    ],
)
def test_an_ambiguous_text_is_refused_with_both_spellings(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"nbytes: {message}"):
        Buffer(text)
    with pytest.raises(ValueError, match=f"limit_bytes: {message}"):
        PoolResource("host", "host", limit_bytes=text)
    with pytest.raises(InvalidArgumentError, match=message.partition(" is ")[0]):
        sim(capacity=text)


def test_every_size_of_memory_may_be_text_or_a_whole_float() -> None:
    assert Buffer("1 MB", kind="host", device="host").nbytes == 1_000_000
    assert Buffer(1e3, kind="host", device="host").nbytes == 1000
    pool = PoolResource("host", "host", limit_bytes=1e9, growth_bytes="2 MiB")
    assert pool.limit_bytes == 10**9
    with pool.allocate("4KiB") as block:
        block.fill(1, nbytes="1kB")
        assert block.tobytes().count(1) == 1000
        view = Buffer.adopt(block.ptr, "2 KiB", kind="host", device="host")
        assert view.nbytes == 2048
        block.copy_from(bytes(2048), nbytes="1KiB")
        assert block.tobytes().count(1) == 0
        del view
    assert isthmus.memory.MemoryUSMHost("64 KiB").nbytes == 65536
    assert isthmus.BufferPool(max_buffer_bytes="1GB").max_buffer_bytes == 10**9
    assert sim(capacity="64 MB").total_memory == 64_000_000


def test_a_share_is_of_the_total_memory_of_the_device() -> None:
    device = sim(capacity="64MiB")
    assert isthmus.parse_bytes("25 %", device) == 16 * MIB
    assert Buffer("12.5%", device=device).nbytes == 8 * MIB
    with pytest.raises(ValueError, match="needs a device"):
        Buffer.adopt(0, "50%")


@pytest.mark.parametrize("value", [1.5, 0.8, float("inf"), float("nan"), None, b"1", [1]])
def test_other_objects_are_no_sizes(value: object) -> None:
    with pytest.raises(TypeError, match="must be an integer number of bytes or text like"):
        isthmus.parse_bytes(value)  # type: ignore[arg-type]


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
