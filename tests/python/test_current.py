# SPDX-License-Identifier: Apache-2.0
"""The current device and queue: per thread, per asyncio task, nested."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest
from support import sim

import isthmus
from isthmus import Buffer, Device, Queue, current_device, current_queue


def test_the_default() -> None:
    assert current_device() == Device()
    assert current_queue() == current_device().default_queue


def test_a_device(dev: Device) -> None:
    with dev as entered:
        assert entered is dev
        assert current_device() == dev
        assert current_queue() == dev.default_queue
        assert Queue().device == dev
        assert Device() == dev
        with Buffer(8) as buffer:
            assert buffer.device == dev
    assert current_device() == isthmus.devices()[0]


def test_a_queue(dev: Device) -> None:
    queue = Queue(dev)
    with queue as entered:
        assert entered is queue
        assert current_queue() == queue
        assert current_device() == dev
        assert Buffer(8).queue == queue
        assert Buffer(8, device="host").device == Device("host"), "what is named goes before"


def test_nesting() -> None:
    outer, inner = sim(), sim()
    queue = Queue(inner)
    with outer:
        with queue:
            assert current_queue() == queue
            with outer:
                assert current_device() == outer
            assert current_queue() == queue
        assert current_device() == outer
    assert current_device() == isthmus.devices()[0]


def test_left_after_an_exception() -> None:
    device = sim()
    with pytest.raises(KeyError), device:
        raise KeyError
    assert current_device() != device


def test_left_in_the_wrong_order() -> None:
    outer, inner = sim(), sim()
    with pytest.raises(RuntimeError, match="reverse order"), inner:
        outer.__exit__(None, None, None)
    assert current_device() == isthmus.devices()[0]


def test_a_thread_has_its_own() -> None:
    device, seen = sim(), []
    with device:
        thread = threading.Thread(target=lambda: seen.append(current_device()))
        thread.start()
        thread.join()
    assert seen == [isthmus.devices()[0]]


def test_a_copied_context_takes_it_along() -> None:
    device = sim()
    with device:
        context = contextvars.copy_context()
    assert context.run(current_device) == device


async def test_tasks_have_their_own() -> None:
    async def work(device: Device) -> bool:
        right = True
        with device:
            for _ in range(5):
                await asyncio.sleep(0)
                right = right and current_device() == device
        return right and current_device() == isthmus.devices()[0]

    assert all(await asyncio.gather(*(work(sim()) for _ in range(8))))


async def test_a_task_inherits_it() -> None:
    async def look() -> Device:
        return current_device()

    with sim() as device:
        assert await asyncio.create_task(look()) == device
