# SPDX-License-Identifier: Apache-2.0
"""using() and set_resource(): the source of buffers that name no resource."""

from __future__ import annotations

import asyncio
import copy
import threading

import numpy as np
import pytest
from support import python, sim, until

from isthmus import Buffer, Context, Device, Queue, current_resource, using
from isthmus.memory import (
    CustomResource,
    FailureCallbackResource,
    FallbackResource,
    LimitResource,
    MemoryUSMDevice,
    MemoryUSMHost,
    PoolResource,
    StatisticsResource,
    USMAllocationError,
)


def counted_pool(
    kind: str, dev: Device | str, context: Context | None = None
) -> StatisticsResource:
    return StatisticsResource(PoolResource(kind, dev))


def test_buffers_come_from_it(dev: Device, kind: str) -> None:
    outer, inner = counted_pool(kind, dev), counted_pool(kind, dev)
    q = outer.queue
    assert current_resource(kind, dev) is None
    with using(outer) as given:
        assert given is outer
        assert current_resource(kind, queue=q) is outer
        first = Buffer(1000, kind=kind, device=dev)
        with using(inner):
            second = Buffer(500, kind=kind, queue=q)
            with using(outer):
                third = Buffer(1, kind=kind, device=dev)
        named = Buffer(7, resource=inner, queue=q)
        first.fill(1)
        sliced = first[:10]
        assert sliced.nbytes == 10
        assert (outer.total_bytes, inner.total_bytes) == (1001, 507)
    Buffer(10, kind=kind, device=dev)
    assert (outer.total_count, inner.total_count) == (2, 2)
    assert (second.nbytes, third.nbytes, named.nbytes) == (500, 1, 7)


def test_other_kinds_and_contexts_stay(dev: Device, kind: str) -> None:
    pool = counted_pool(kind, dev)
    with using(pool):
        for other in dev.kinds:
            Buffer(10, kind=other, device=dev)
        Buffer(10, kind=kind, queue=Queue(dev, context=Context(dev)))
        Buffer(10, kind="device", device=sim())
    assert pool.total_count == 1


def test_the_dpctl_classes_come_from_it_too() -> None:
    pool = counted_pool("host", "host")
    with using(pool):
        memory = MemoryUSMHost(100, queue=pool.queue)
        copied = MemoryUSMHost(memory, copy=True)
    assert pool.total_bytes == 200
    assert np.asarray(copied).nbytes == 100


def test_the_dpctl_classes_have_their_kind_or_none() -> None:
    device = sim()
    mixed = FallbackResource(
        LimitResource(PoolResource("device", device), 1000), PoolResource("host", device)
    )
    with using(mixed):
        memory = MemoryUSMDevice(1000, queue=mixed.queue)
        with pytest.raises(USMAllocationError, match=r"'device'.*'host'"):
            MemoryUSMDevice(100, queue=mixed.queue)
        with pytest.raises(USMAllocationError):
            MemoryUSMDevice(memory, copy=True)
        with pytest.raises(USMAllocationError):
            copy.copy(memory)
        assert Buffer(100, kind="device", queue=mixed.queue).kind == "host"


def test_no_resource_is_current_inside_allocate(dev: Device, kind: str) -> None:
    class Chunks:
        def __init__(self) -> None:
            self.live: dict[int, Buffer] = {}

        def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
            assert current_resource(kind, queue=queue) is None
            buffer = Buffer(nbytes, kind=kind, queue=queue)
            with using(counted):
                assert current_resource(kind, queue=queue) is counted
            self.live[buffer.ptr] = buffer
            return buffer.ptr

        def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
            del self.live[pointer]

    chunks = Chunks()
    counted = StatisticsResource(CustomResource(chunks, kind, dev))
    with using(counted):
        buffer = Buffer(100, kind=kind, device=dev)
        assert current_resource(kind, dev) is counted
        assert counted.current_bytes == 100
        buffer.free()
        assert until(lambda: not chunks.live)
        seen = []
        none = LimitResource(counted, 0)
        asks = FailureCallbackResource(
            none, lambda nbytes: seen.append(Buffer(nbytes, kind=kind, device=dev)) is not None
        )
        with using(asks), pytest.raises(USMAllocationError):
            Buffer(10, kind=kind, device=dev)
        assert seen
        assert counted.total_count == 1


def test_leaving_in_another_order(dev: Device, kind: str) -> None:
    one, two = using(counted_pool(kind, dev)), using(counted_pool(kind, dev))
    with one, two, pytest.raises(RuntimeError, match="reverse order"):
        one.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="reverse order"):
        one.__exit__(None, None, None)
    with pytest.raises(TypeError, match=r"resource of isthmus\.memory"):
        using(3)  # type: ignore[arg-type]


def test_threads_have_their_own(dev: Device, kind: str) -> None:
    pools = [counted_pool(kind, dev) for _ in range(4)]
    inside = threading.Barrier(4)

    def work(number: int) -> None:
        with using(pools[number]):
            inside.wait(20)
            for _ in range(10 + number):
                Buffer(100, kind=kind, device=dev)
            inside.wait(20)

    with using(counted_pool(kind, dev)) as here:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert isinstance(here, StatisticsResource)
        assert here.total_count == 0
    assert [pool.total_count for pool in pools] == [10, 11, 12, 13]


async def test_tasks_have_their_own(dev: Device, kind: str) -> None:
    pools = [counted_pool(kind, dev) for _ in range(3)]

    async def work(number: int) -> None:
        with using(pools[number]):
            for _ in range(5 + number):
                await asyncio.sleep(0)
                Buffer(100, kind=kind, device=dev)

    await asyncio.gather(*(work(number) for number in range(3)))
    assert [pool.total_count for pool in pools] == [5, 6, 7]


def test_of_the_process() -> None:
    python(
        """
import threading
import isthmus
from isthmus import Buffer, set_resource, using
from isthmus.memory import PoolResource, ProviderResource, StatisticsResource

one, two, other = (StatisticsResource(PoolResource(kind, "host"))
                   for kind in ("host", "host", "shared"))
set_resource(one)
set_resource(other)
kept = [Buffer(10, kind="host", device="host")]
thread = threading.Thread(target=lambda: kept.append(Buffer(10, kind="host", device="host")))
thread.start()
thread.join()
with using(two):
    kept.append(Buffer(10, kind="host", device="host"))
kept.append(Buffer(10, kind="shared", device="host"))
assert (one.total_count, two.total_count, other.total_count) == (2, 1, 1)
set_resource(two)
kept.append(Buffer(10, kind="host", device="host"))
assert isthmus.current_resource("host", "host") is two
set_resource(ProviderResource("host", "host"))
kept.append(Buffer(10, kind="host", device="host"))
assert (one.total_count, two.total_count) == (2, 2)
try:
    set_resource(None)
except TypeError:
    pass
else:
    raise AssertionError
"""
    )
