# SPDX-License-Identifier: Apache-2.0
"""PoolResource: options, attributes, and the lifetime of its memory."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from support import python

from isthmus import Buffer, Context, Device, Queue
from isthmus.memory import MemoryResource, PoolResource, ProviderResource, USMAllocationError

MIB = 1 << 20


def test_buffers_of_a_pool(dev: Device, kind: str) -> None:
    pool = PoolResource(kind, dev)
    assert isinstance(pool, MemoryResource)
    assert (pool.kind, pool.device, pool.held_bytes, pool.free_bytes) == (kind, dev, 0, 0)
    wanted = {}
    for nbytes in (1, 100, 4096, 100_000, 300_000, 5 * MIB):
        data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
        buffer = Buffer(nbytes, resource=pool) if nbytes % 2 else pool.allocate(nbytes)
        buffer.copy_from(data)
        wanted[buffer] = data
    for buffer, data in wanted.items():
        back = np.empty(buffer.nbytes, np.uint8)
        buffer.copy_to(back)
        assert np.array_equal(back, data)
        assert buffer.kind == kind
    assert pool.allocate(0).nbytes == 0
    assert pool.held_bytes >= 5 * MIB
    assert f"of {kind} memory on {dev.filter}" in repr(pool)
    assert f"{pool.held_bytes} bytes held" in repr(pool)


def test_trim_returns_everything(q: Queue, kind: str) -> None:
    pool = PoolResource(kind, q.device, growth_bytes=MIB)
    buffers = [pool.allocate(100_000, queue=q) for _ in range(40)]
    held = pool.held_bytes
    assert held >= 40 * 100_000
    assert pool.trim() < held, "buffers live"
    del buffers
    q.wait()
    assert pool.trim(2 * MIB) > 0
    assert 0 < pool.held_bytes <= 3 * MIB
    pool.trim()
    assert pool.held_bytes == 0


def test_sizes_of_a_pool(q: Queue, kind: str) -> None:
    pool = PoolResource(
        kind, q.device, initial_bytes=2 * MIB, growth_bytes=MIB, limit_bytes=4 * MIB
    )
    assert pool.held_bytes >= 2 * MIB
    buffers = [pool.allocate(MIB // 2, queue=q) for _ in range(5)]
    with pytest.raises(USMAllocationError, match=r"(?s)raise its limit.*at most 4"):
        buffers.extend(pool.allocate(MIB // 2, queue=q) for _ in range(5))
    assert pool.held_bytes <= 4 * MIB
    with pytest.raises(USMAllocationError):
        PoolResource(kind, q.device, initial_bytes=8 * MIB, limit_bytes=4 * MIB)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"limit_bytes": 0}, ValueError),
        ({"growth_bytes": "1 parsec"}, ValueError),
        ({"growth_bytes": 1.5}, TypeError),
        ({"initial_bytes": 2**62}, USMAllocationError),
        ({"kind": "odd"}, ValueError),
        ({"device": 3.5}, TypeError),
        ({"context": 1}, TypeError),
        ({"frob": 1}, TypeError),
    ],
    ids=repr,
)
def test_bad_options(options: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        PoolResource(**{"kind": "host", "device": "host"} | options)  # type: ignore[arg-type]


def test_a_pool_of_a_context(dev: Device, kind: str) -> None:
    context = Context(dev)
    pool = PoolResource(kind, dev, context)
    assert pool.context == context
    buffer = pool.allocate(1000)
    assert buffer.queue.context == context


def test_buffers_outlive_the_name_of_their_pool(q: Queue, kind: str) -> None:
    buffer = PoolResource(kind, q.device).allocate(1000, queue=q)
    gc.collect()
    buffer.fill(7)
    assert bytes(buffer) == b"\7" * 1000 if kind != "device" else True


def test_resources_are_distinguishable() -> None:
    assert repr(ProviderResource("host", "host")) == (
        "<isthmus.memory.ProviderResource of host memory on host:cpu:0>"
    )
    with pytest.raises(TypeError):
        MemoryResource()
    with pytest.raises(TypeError, match=r"resource of isthmus\.memory"):
        Buffer(10, resource=PoolResource)  # type: ignore[arg-type]


def test_unneeded_memory_is_returned_automatically() -> None:
    """This works in a program with a single thread that never calls the pool again."""
    python(
        """
from support import until
from isthmus.memory import PoolResource

pool = PoolResource("host", "host", decay=0.5)
for nbytes in (1000, 8 << 20):
    pool.allocate(nbytes)
assert pool.held_bytes >= 8 << 20
assert until(lambda: pool.held_bytes == 0)
"""
    )
