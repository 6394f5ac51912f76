# SPDX-License-Identifier: Apache-2.0
"""isthmus.memory.query: the allocation record of an address."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from support import until

import isthmus
from isthmus import Buffer, Context, Device, Queue
from isthmus.memory import (
    MemoryResource,
    PointerInfo,
    PoolResource,
    ProviderResource,
    StatisticsResource,
    query,
)

NOTHING = ("unknown", 0, 0, None, None, None)


@pytest.mark.parametrize("nbytes", [1000, 300_001])
def test_a_buffer_of_a_resource(dev: Device, kind: str, nbytes: int) -> None:
    pool = PoolResource(kind, dev)
    for resource in (pool, StatisticsResource(pool), ProviderResource(kind, dev)):
        buffer = Buffer(nbytes, resource=resource)
        for offset in (0, 1, nbytes - 1):
            found = query(buffer.ptr + offset)
            assert found[:3] == (kind, buffer.ptr, nbytes)
            assert (found.device, found.context) == (dev, pool.context)
            assert found.resource == resource
            assert found.state == "live"
            assert found == query(buffer.ptr + offset, context=pool.context)
            assert query(buffer.ptr, context=Context(dev)) == (*NOTHING, "unknown", 0, 0)


def test_freed_and_waiting(q: Queue, kind: str, gate: isthmus.Event) -> None:
    pool = PoolResource(kind, q.device)
    buffer = Buffer(1000, resource=pool, queue=q)
    address = buffer.ptr
    buffer.fill(1, blocking=False, after=[gate])
    buffer.free()
    # Device memory returns to the pool at once, in the order of a queue that can wait for the host.
    holds_back = q.device.backend in ("cuda", "sycl")
    now = "free" if kind == "device" and not holds_back else "waiting"
    assert query(address) == (*NOTHING, now, 0, 0)
    gate.complete()
    assert until(lambda: query(address).state == "free")
    assert query(address) == (*NOTHING, "free", 0, 0)


def test_adopted_memory() -> None:
    array = np.zeros(1000, np.uint8)
    address = array.ctypes.data
    adopted = Buffer.adopt(address, 1000, queue=Queue("host"), owner=array)
    found = query(address + 10)
    assert found[:3] == ("host", address, 1000)
    assert (found.resource, found.state) == (None, "live")
    adopted.free()


def test_plain_memory_and_none() -> None:
    array = np.zeros(1000, np.uint8)
    for address in (0, array.ctypes.data):
        assert query(address) == (*NOTHING, "unknown", 0, 0)
    host = Device("host").default_context
    known = query(array.ctypes.data, context=host)
    assert (known.kind, known.context, known.state) == ("host", host, "unknown")


def test_the_resource_is_the_object_that_it_was_made_as(q: Queue, kind: str) -> None:
    class Named(PoolResource):
        name = "mine"

    pool = Named(kind, q.device)
    for resource in (pool, StatisticsResource(pool), ProviderResource(kind, q.device)):
        buffer = resource.allocate(1000)
        assert query(buffer.ptr).resource is resource
    buffer = pool.allocate(1000)
    del pool, resource
    gc.collect()
    bare = query(buffer.ptr).resource
    assert bare is not None
    assert type(bare) is MemoryResource


def test_the_resource_may_be_used_and_outlives_the_object(dev: Device, kind: str) -> None:
    pool = PoolResource(kind, dev)
    buffer = Buffer(1000, resource=pool)
    found = query(buffer.ptr).resource
    assert isinstance(found, MemoryResource)
    assert (found, hash(found)) == (pool, hash(pool))
    assert found != PoolResource(kind, dev)
    assert found != "pool"
    del pool, buffer
    gc.collect()
    again = found.allocate(100)
    assert (again.kind, query(again.ptr).resource) == (kind, found)


def test_a_record_is_frozen_and_prints() -> None:
    buffer = Buffer(2000, kind="host", device="host")
    found = query(buffer.ptr)
    assert isinstance(found, PointerInfo)
    with pytest.raises(AttributeError):
        found.base = 0  # type: ignore[misc]
    place = f"live host memory on host:cpu:0: 2,000 bytes at {buffer.ptr:#x}"
    assert repr(found) == f"<isthmus.memory.PointerInfo {place}>"
    assert repr(query(0)) == "<isthmus.memory.PointerInfo unknown>"


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="not an address"):
        query(-1)
    with pytest.raises(TypeError, match="pointer"):
        query("0")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="context must be a Context or None, not str"):
        query(0, context="host")  # type: ignore[arg-type]
