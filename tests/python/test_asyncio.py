# SPDX-License-Identifier: Apache-2.0
"""`await event` in asyncio."""

from __future__ import annotations

import asyncio
import os

import pytest
from support import BACKENDS, noise, open_backend, until

import isthmus
from isthmus import Buffer, Event, Queue

pytestmark = pytest.mark.filterwarnings("error")


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def no_more_descriptors_than(before: int) -> bool:
    """The completing thread closes its own descriptor after it has woken the loop."""
    return until(lambda: open_descriptors() <= before)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_awaited(backend: str) -> None:
    queue = Queue(open_backend(backend))
    buffer, got, data = Buffer(1 << 20, queue=queue), bytearray(1 << 20), noise(1 << 20)
    into = buffer.copy_from(data, blocking=False)
    out = buffer.copy_to(got, blocking=False)
    assert into is not None
    assert out is not None
    await out
    await into
    await out
    assert got == data.tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
async def test_the_loop_runs_on(backend: str, gate: Event) -> None:
    queue = Queue(open_backend(backend))
    fence, turns = queue.fence([gate]), 0

    async def turn() -> None:
        nonlocal turns
        while turns < 50:
            turns += 1
            await asyncio.sleep(0)
        gate.complete()

    await asyncio.wait_for(asyncio.gather(turn(), wait_for(fence)), 60)
    assert turns == 50


async def wait_for(event: Event) -> str:
    await event
    return "done"


@pytest.mark.parametrize("backend", BACKENDS)
async def test_several_awaiters(backend: str, gate: Event) -> None:
    fence = Queue(open_backend(backend)).fence([gate])
    tasks = [asyncio.create_task(wait_for(fence)) for _ in range(20)]
    await asyncio.sleep(0)
    gate.complete()
    assert await asyncio.wait_for(asyncio.gather(*tasks), 60) == ["done"] * 20


async def test_cancelled(gate: Event) -> None:
    queue = Queue("host")
    fence = queue.fence([gate])
    before = open_descriptors()
    tasks = [asyncio.create_task(wait_for(fence)) for _ in range(3)]
    await asyncio.sleep(0.01)
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    assert not fence.done
    gate.complete()
    assert await asyncio.wait_for(asyncio.gather(*tasks[1:]), 60) == ["done"] * 2
    assert no_more_descriptors_than(before)


async def test_a_timeout_of_asyncio(gate: Event) -> None:
    with pytest.raises((asyncio.TimeoutError, TimeoutError)):
        await asyncio.wait_for(wait_for(gate), 0.01)
    assert not gate.done


async def test_failures(gate: Event) -> None:
    queue = Queue("host")
    fence = queue.fence([gate])
    task = asyncio.create_task(wait_for(fence))
    await asyncio.sleep(0)
    gate.fail("the cause")
    with pytest.raises(isthmus.DependencyError, match="the cause"):
        await task


async def test_exceptions_of_functions() -> None:
    error = KeyError("mine")

    def fail() -> None:
        raise error

    event = Queue("host").submit(fail)
    with pytest.raises(KeyError) as raised:
        await event
    assert raised.value is error


async def test_completed_events_need_no_descriptor() -> None:
    event = Event()
    event.complete()
    before = open_descriptors()
    for _ in range(100):
        await event
    assert no_more_descriptors_than(before)


async def test_no_descriptor_is_left() -> None:
    queue = Queue("host")
    before = open_descriptors()
    for _ in range(50):
        await queue.submit(lambda: None)
    assert no_more_descriptors_than(before)


async def test_host_events_completed_by_a_thread() -> None:
    event = Event()
    await asyncio.gather(wait_for(event), asyncio.to_thread(event.complete))


async def test_a_pipeline() -> None:
    queue = Queue("opencl")

    async def one(value: int) -> int:
        buffer = Buffer(4096, queue=queue)
        filled = buffer.fill(value, blocking=False)
        assert filled is not None
        await filled
        got = bytearray(4096)
        out = buffer.copy_to(got, blocking=False)
        assert out is not None
        await out
        return sum(got)

    assert await asyncio.gather(*map(one, range(30))) == [4096 * value for value in range(30)]


def test_loops_one_after_the_other(gate: Event) -> None:
    fence = Queue("host").fence([gate])

    async def give_up() -> None:
        task = asyncio.create_task(wait_for(fence))
        await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(give_up())
    gate.complete()
    assert asyncio.run(wait_for(fence)) == "done"


def test_without_a_loop(gate: Event) -> None:
    with pytest.raises(RuntimeError, match="loop"):
        gate.__await__().send(None)
