# SPDX-License-Identifier: Apache-2.0
"""The text of native objects."""

from __future__ import annotations

import isthmus
from isthmus import Budget, Buffer, Context, Device, Queue
from isthmus.memory import MemoryUSMHost, PoolResource


def test_a_platform_names_its_driver_and_counts_its_devices() -> None:
    for each in isthmus.platforms():
        count = len(each.devices)
        plural = "" if count == 1 else "s"
        text = f'<isthmus.Platform {each.backend} "{each.name}" with {count} device{plural}>'
        assert repr(each) == text


def test_queues_and_contexts_name_their_devices() -> None:
    host = Device("host")
    queue = Queue(host)
    assert repr(queue) == f"<isthmus.Queue {hash(queue):#x} on {host.filter}>"
    assert repr(Context([host])) == f"<isthmus.Context of {host.filter}>"


def test_a_buffer_shows_its_state() -> None:
    buffer = Buffer(100, kind="host", device="host")
    location = f"on {buffer.device.filter}"
    assert repr(buffer) == f"<isthmus.Buffer host 100 bytes at {buffer.ptr:#x} {location}>"
    part = buffer[10:30]
    assert repr(part) == f"<isthmus.Buffer host 20 bytes at {part.ptr:#x} {location}>"
    locked = Buffer.adopt(buffer.ptr, 8, kind="host", device="host", read_only=True)
    assert repr(locked).endswith(f"{location}, read-only>")
    buffer.free()
    assert repr(buffer) == f"<isthmus.Buffer host 100 bytes, freed, {location}>"
    assert repr(Buffer(0, device="host")) == f"<isthmus.Buffer device 0 bytes {location}>"


def test_classes_of_memory_show_their_names() -> None:
    memory = MemoryUSMHost(64, queue=Queue("host"))
    assert repr(memory).startswith("<isthmus.MemoryUSMHost host 64 bytes at 0x")


def test_a_pool_and_its_budget_show_their_sizes() -> None:
    budget = Budget("64MiB")
    pool = PoolResource("host", "host", budget=budget, initial_bytes=4096)
    device = pool.device.filter
    sizes = f"{pool.held_bytes} bytes held, {pool.free_bytes} free"
    assert repr(pool) == f"<isthmus.memory.PoolResource of host memory on {device}, {sizes}>"
    held = f"{budget.held_bytes} held by 1 pools, {budget.free_bytes} free"
    assert repr(budget) == f"<isthmus.Budget of {64 << 20} bytes, {held}>"


def test_counts_of_allocations() -> None:
    with isthmus.allocated() as counts:
        Buffer(24, device="host").free()
    text = "<isthmus.allocated: 24 bytes in 1 allocations, 1 freed, at most 24 bytes at a time, "
    assert repr(counts).startswith(text)
    assert repr(counts).endswith(" ms in allocation>")
