# SPDX-License-Identifier: Apache-2.0
"""Unused memory that resources hold serves every request that the driver refuses."""

from __future__ import annotations

import numpy as np
import pytest
from support import sim

from isthmus import Buffer, BufferPool, Device, UnifiedBuffer, USMAllocationError
from isthmus.memory import (
    FixedSizeResource,
    ProviderResource,
)

MIB = 1 << 20
FLOATS = MIB // 4  # of 4 bytes each


def provider(device: Device) -> ProviderResource:
    return ProviderResource("device", device)


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
