# SPDX-License-Identifier: Apache-2.0
"""Unused memory that resources hold serves every request that the driver refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import sim

import isthmus
from isthmus import Buffer, BufferPool, Device, UnifiedBuffer, USMAllocationError
from isthmus._core import sim_state
from isthmus.memory import (
    ArenaResource,
    FixedSizeResource,
    MonotonicResource,
    PoolResource,
    ProviderResource,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
FLOATS = MIB // 4  # of 4 bytes each


def provider(device: Device) -> ProviderResource:
    return ProviderResource("device", device)


def pool_of(device: Device) -> PoolResource:
    return PoolResource("device", device, growth_bytes=MIB)


KEEPERS: dict[str, Callable[[Device], Any]] = {
    "arena": lambda device: ArenaResource(provider(device)),
    "arena over pool": lambda device: ArenaResource(pool_of(device)),
    "fixed": lambda device: FixedSizeResource(provider(device), MIB, 1),
    "fixed over pool": lambda device: FixedSizeResource(pool_of(device), MIB, 1),
    "monotonic": lambda device: MonotonicResource(provider(device), MIB),
}
REQUESTERS: dict[str, Callable[[Device], Any]] = {
    "buffer": lambda device: Buffer(4 * MIB, device=device),
    "array": lambda device: isthmus.empty((FLOATS, 4), np.float32, device=device),
    "driver": lambda device: provider(device).allocate(4 * MIB),
    "buffer of the driver": lambda device: Buffer(
        4 * MIB, device=device, resource=provider(device)
    ),
    "pool": lambda device: pool_of(device).allocate(4 * MIB),
    "arena": lambda device: ArenaResource(provider(device)).allocate(4 * MIB),
    "unified": lambda device: UnifiedBuffer(4 * FLOATS, device=device).device,
}


@pytest.mark.parametrize("keeps", KEEPERS)
@pytest.mark.parametrize("wants", REQUESTERS)
def test_kept_memory_serves(keeps: str, wants: str) -> None:
    device = sim(capacity="8MiB")
    resource = KEEPERS[keeps](device)
    blocks = [Buffer(MIB, device=device, resource=resource) for _ in range(8)]
    bytes_of_live = np.arange(MIB, dtype=np.uint8)
    blocks[0].copy_from(bytes_of_live)
    del blocks[1:]
    assert sim_state(device)[1] == 8 * MIB
    served = REQUESTERS[wants](device)
    assert (blocks[0].to_numpy() == bytes_of_live).all()
    del served
    assert Buffer(MIB, device=device, resource=resource).nbytes == MIB


def test_a_slab_larger_than_the_unused_copies() -> None:
    device = sim(capacity="8MiB")
    driver = provider(device)
    idle = [UnifiedBuffer(FLOATS // 4, device=device, resource=driver) for _ in range(32)]
    for number, buf in enumerate(idle):
        buf.fill(number).sync_to_device()
    slabs = FixedSizeResource(driver, MIB // 8, 8)
    assert Buffer(MIB // 8, device=device, resource=slabs).nbytes == MIB // 8
    assert [buf.host[5] for buf in idle] == list(range(32))


@pytest.mark.parametrize("touch", ["device", "both"])
def test_a_buffer_pool_frees_device_copies(touch: str) -> None:
    device = sim(capacity="8MiB")
    pool = BufferPool()
    bufs = [pool.acquire(FLOATS, device=device) for _ in range(6)]
    for buf in bufs:
        if touch == "both":
            buf.fill(1)
        buf.device.fill(2)
        buf.mark_device_dirty()
    live = bufs.pop()
    for buf in bufs:
        pool.release(buf)
    assert Buffer(6 * MIB, device=device).nbytes == 6 * MIB
    assert pool.stats().pool_size == 5
    assert (live.to_numpy() == 2).all()
    again = pool.acquire(FLOATS, device=device)
    again.copy_from(np.arange(FLOATS, dtype=np.float32))
    assert (again.device.to_numpy() == np.arange(FLOATS)).all()


def test_a_cached_buffer_with_a_referenced_array_keeps_its_device_copy() -> None:
    device = sim(capacity="8MiB")
    pool = BufferPool()
    buf = pool.acquire(4 * FLOATS, device=device)
    array = buf.device
    array.fill(3)
    pool.release(buf)
    with pytest.raises(USMAllocationError):
        Buffer(6 * MIB, device=device)
    assert (array.to_numpy() == 3).all()
    del array
    assert Buffer(6 * MIB, device=device).nbytes == 6 * MIB
    assert pool.acquire(4 * FLOATS, device=device) is buf


def test_what_is_written_after_its_release_to_the_pool_stays() -> None:
    device = sim(capacity="8MiB")
    pool = BufferPool()
    pool.release(pool.acquire(4 * FLOATS, device=device))
    buf = pool.acquire(4 * FLOATS, device=device)
    buf.device.fill(3)
    with pytest.raises(USMAllocationError):
        Buffer(6 * MIB, device=device)
    assert (buf.to_numpy() == 3).all()


def test_threads_that_share_an_exhausted_device() -> None:
    device = sim(capacity="8MiB")
    kept = [KEEPERS[name](device) for name in ("arena", "fixed", "arena over pool")]

    def work(number: int) -> int:
        served = 0
        resource = [*kept, None][number % 4]
        for step in range(40):
            try:
                buf = Buffer(MIB, device=device, resource=resource)
            except USMAllocationError:
                continue
            value = number * 40 + step & 255
            buf.fill(value)
            served += int((buf.to_numpy() == value).all())
        return served

    with ThreadPoolExecutor(4) as threads:
        assert min(threads.map(work, range(4))) > 0
    assert Buffer(7 * MIB, device=device).nbytes == 7 * MIB
