# SPDX-License-Identifier: Apache-2.0
"""The allocation tracker, which knows every live block, and tags."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING

import pytest
from support import Make, until

import isthmus
from isthmus import Buffer, Queue
from isthmus.memory import (
    PoolResource,
    StatisticsResource,
    TagHolder,
    TrackedBlock,
    TrackingResource,
    USMAllocationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def test_live(q: Queue, kind: str, make: Make) -> None:
    tracked = TrackingResource(make(kind, q.device))
    sizes = [1, 100, 5000, 300_000]
    buffers = [Buffer(nbytes, resource=tracked, queue=q) for nbytes in sizes]
    blocks = tracked.live()
    assert [block.nbytes for block in blocks] == sizes, "the oldest first"
    assert all(isinstance(block, TrackedBlock) for block in blocks)
    assert {block.thread for block in blocks} == {threading.get_native_id()}
    assert {(block.tag, block.stack) for block in blocks} == {(None, ())}
    assert len({block.queue_key for block in blocks}) == 1
    assert sorted(block.order for block in blocks) == [block.order for block in blocks]
    buffers[1].free()
    assert until(lambda: len(tracked.live()) == 3)
    tracked.reset()
    assert tracked.live() == []
    late = tracked.allocate(7, queue=q)
    assert [block.nbytes for block in tracked.live()] == [7]
    del late
    buffers.clear()
    assert until(lambda: not tracked.live())
    assert repr(tracked).startswith(f"<isthmus.memory.TrackingResource of {kind} memory on")


def allocate_here(tracked: TrackingResource) -> Buffer:
    return tracked.allocate(1000)


def test_frames_of_python() -> None:
    tracked = TrackingResource(PoolResource("host", "host"), frames=3)
    kept = [allocate_here(tracked) for _ in range(3)]
    other = tracked.allocate(50)
    first, last = tracked.live()[0], tracked.live()[-1]
    assert len(first.stack) == 3
    assert first.stack[0].endswith(" allocate_here")
    assert __file__ in first.stack[0]
    line = allocate_here.__code__.co_firstlineno + 1
    assert f":{line} " in first.stack[0]
    assert last.stack[0].endswith(" test_frames_of_python")
    report = tracked.report()
    assert "3 blocks" in report
    assert report.index("allocate_here") < report.rindex("50 bytes")
    del kept, other
    assert "in 0 blocks" in tracked.report()


def test_frames_of_native_code() -> None:
    tracked = TrackingResource(PoolResource("host", "host"), native_frames=8)
    kept = tracked.allocate(50)
    assert 1 <= len(tracked.live()[0].stack) <= 8
    del kept
    both = TrackingResource(PoolResource("host", "host"), 1, 4)
    kept = both.allocate(50)
    stack = both.live()[0].stack
    assert stack[0].endswith(" test_frames_of_native_code")
    assert len(stack) > 1
    del kept


def test_tags_nest() -> None:
    tracked = TrackingResource(PoolResource("host", "host"))
    outer = isthmus.tag("outer")
    assert (outer.name, repr(outer)) == ("outer", "isthmus.tag('outer')")
    kept = [tracked.allocate(1)]
    with outer:
        kept.append(tracked.allocate(2))
        with isthmus.tag("inner ü"), outer, isthmus.tag("inner ü") as inner:
            assert inner.name == "inner ü"
            kept.append(tracked.allocate(3))
        kept.append(tracked.allocate(4))
        contextvars.copy_context().run(lambda: kept.append(tracked.allocate(5)))
    kept.append(tracked.allocate(6))
    assert [block.tag for block in tracked.live()] == [
        *(None, "outer", "inner ü"),
        *("outer", "outer", None),
    ]
    with pytest.raises(RuntimeError, match="reverse order"):
        outer.__exit__(None, None, None)


def test_usage_by_tag(q: Queue, kind: str, make: Make) -> None:
    tracked = TrackingResource(make(kind, q.device))
    other = tracked.allocate(7)
    assert tracked.usage_by_tag() == {}
    with isthmus.tag("small"):
        small = tracked.allocate(10)
    with isthmus.tag("large"):
        large = [tracked.allocate(1000) for _ in range(3)]
    del large[1:], other
    usage = tracked.usage_by_tag()
    assert list(usage) == ["large", "small"]
    assert usage["small"] == (10, 1, 10, 1, 10, 1)
    assert usage["large"] == (1000, 1, 3000, 3, 3000, 3)
    assert usage["large"].peak_bytes == 3000
    tracked.reset()
    assert tracked.usage_by_tag()["large"] == (1000, 1, 1000, 1, 0, 0)
    small.free()
    assert tracked.usage_by_tag()["small"].current_bytes == 0


async def test_tags_of_tasks_are_their_own() -> None:
    tracked = TrackingResource(PoolResource("host", "host"))
    kept = []

    async def work(name: str) -> None:
        with isthmus.tag(name):
            for _ in range(5):
                kept.append(tracked.allocate(10))
                await asyncio.sleep(0)

    with isthmus.tag("around"):
        await asyncio.gather(*(work(name) for name in "abc"))
        kept.append(tracked.allocate(10))
    tags = [block.tag for block in tracked.live()]
    assert {tag: tags.count(tag) for tag in tags} == {"a": 5, "b": 5, "c": 5, "around": 1}


def test_threads() -> None:
    tracked = TrackingResource(PoolResource("host", "host"), frames=2)

    def work(number: int) -> None:
        with isthmus.tag(f"thread {number}"):
            for i in range(200):
                kept[number].append(tracked.allocate(1 + i))
                if i % 2:
                    kept[number].pop(0)

    kept: list[list[Buffer]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        assert all((block.tag or "").startswith("thread ") for block in tracked.live())
        assert tracked.report()
    for each in threads:
        each.join()
    tags = [block.tag for block in tracked.live()]
    assert all(tags.count(f"thread {number}") == len(kept[number]) for number in range(4))
    kept.clear()
    assert until(lambda: not tracked.live())


def test_holders_of_a_pool_without_memory(q: Queue) -> None:
    pool = PoolResource("device", q.device, limit_bytes="8MiB", wait=0)
    tracked = TrackingResource(StatisticsResource(pool))
    assert pool.snapshot().holders == ()
    kept = []
    for number in range(10):
        with isthmus.tag(f"layer{number}"):
            kept.append(tracked.allocate(100_000 + number, queue=q))
    with pytest.raises(
        USMAllocationError, match=r"layer9 has .*\(100009 bytes\) in 1 block"
    ) as told:
        tracked.allocate(8 << 20, queue=q)
    assert told.value.snapshot is not None
    holders = told.value.snapshot.holders
    assert holders[0] == TagHolder("layer9", 100_009, 1)
    assert [holder.nbytes for holder in holders] == [100_009 - i for i in range(8)]
    assert pool.snapshot().holders == holders


@pytest.mark.parametrize(
    "wrong",
    [
        lambda pool: TrackingResource(None),
        lambda pool: TrackingResource(pool, "1"),
        lambda pool: TrackingResource(pool, frames=1.5),
        lambda pool: isthmus.tag(3),
        lambda pool: isthmus.tag(None),
        lambda pool: isthmus.tag("\ud800"),
    ],
)
def test_wrong_types(wrong: Callable[[PoolResource], object]) -> None:
    with pytest.raises(TypeError):
        wrong(PoolResource("host", "host"))


def test_wrong_values() -> None:
    pool = PoolResource("host", "host")
    for frames in (-1, 65):
        with pytest.raises(ValueError):
            TrackingResource(pool, frames)
        with pytest.raises(ValueError):
            TrackingResource(pool, native_frames=frames)
    with pytest.raises(isthmus.InvalidArgumentError, match="empty"):
        isthmus.tag("")
