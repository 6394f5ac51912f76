# SPDX-License-Identifier: Apache-2.0
"""PoolResource over another resource instead of the driver."""

from __future__ import annotations

import threading

import pytest
from support import until

from isthmus import Buffer, Queue
from isthmus.memory import (
    CustomResource,
    MemoryResource,
    PoolResource,
    ProviderResource,
    USMAllocationError,
)

MIB = 1 << 20


class Lender:
    """Allocates blocks from another resource, up to `most` bytes at a time."""

    def __init__(self, upstream: MemoryResource, most: int = 1 << 40) -> None:
        self.upstream = upstream
        self.most = most
        self.live: dict[int, Buffer] = {}
        self.given = 0

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
        if sum(each.nbytes for each in self.live.values()) + nbytes > self.most:
            raise MemoryError("the lender has no more")
        piece = self.upstream.allocate(nbytes, alignment, queue)
        self.live[piece.ptr] = piece
        self.given += 1
        return piece.ptr

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        assert self.live.pop(pointer).nbytes == nbytes


def lend(q: Queue, kind: str, most: int = 1 << 40) -> tuple[Lender, CustomResource]:
    lender = Lender(ProviderResource(kind, q.device), most)
    return lender, CustomResource(lender, kind, q.device)


def test_pool_over_an_allocator(q: Queue, kind: str) -> None:
    lender, upstream = lend(q, kind)
    pool = PoolResource(upstream, growth_bytes="1MiB")
    assert (pool.kind, pool.device, pool.context) == (kind, q.device, upstream.context)
    assert pool.upstream is upstream
    assert PoolResource(kind, q.device).upstream is None
    buffers = [Buffer(nbytes, resource=pool, queue=q) for nbytes in (1, 1000, 100_000)]
    assert lender.given == 1
    large = pool.allocate(3 * MIB)
    data = bytes(range(256)) * (3 * MIB // 256)
    large.copy_from(data)
    assert large.tobytes() == data
    del buffers, large
    assert lender.live
    q.wait()
    until(lambda: pool.trim() >= 0 and not lender.live)
    assert pool.held_bytes == 0


def test_an_error_of_the_allocator_is_reported(q: Queue, kind: str) -> None:
    lender, upstream = lend(q, kind, 8 * MIB)
    pool = PoolResource(upstream=upstream, growth_bytes=MIB, wait=0)
    kept = pool.allocate(6 * MIB)
    with pytest.raises(USMAllocationError, match="the lender has no more") as told:
        pool.allocate(3 * MIB)
    assert isinstance(told.value.__cause__, MemoryError)
    assert told.value.snapshot.live_bytes == 6 * MIB
    assert pool.oom_stages["grow"].served == 1
    kept.free()
    q.wait()
    assert pool.allocate(7 * MIB).nbytes == 7 * MIB
    lender.most = 0
    with pytest.raises(MemoryError, match="the lender has no more"):
        PoolResource(upstream, initial_bytes=MIB)


@pytest.mark.parametrize("nbytes", [1000, 5 * MIB])
def test_any_other_exception_is_raised(q: Queue, kind: str, nbytes: int) -> None:
    class Refusing:
        def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
            raise LookupError("not here")

        def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None: ...

    upstream = CustomResource(Refusing(), kind, q.device)
    with pytest.raises(LookupError, match="not here"):
        PoolResource(upstream).allocate(nbytes)
    with pytest.raises(LookupError, match="not here"):
        PoolResource(upstream, initial_bytes="1MiB")


def test_the_allocator_may_use_the_pool(q: Queue, kind: str) -> None:
    class Nosy(Lender):
        pool: PoolResource | None = None

        def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
            pool, self.pool = self.pool, None
            if pool is not None:
                pool.allocate(MIB, queue=q).free()
                pool.trim()
                pool.verify()
            return super().allocate(nbytes, alignment, queue)

    nosy = Nosy(ProviderResource(kind, q.device))
    pool = nosy.pool = PoolResource(CustomResource(nosy, kind, q.device), growth_bytes=MIB)
    assert pool.allocate(100).nbytes == 100
    assert nosy.given >= 2


def test_threads(q: Queue, kind: str) -> None:
    lender, upstream = lend(q, kind)
    pool = PoolResource(upstream, growth_bytes=MIB, decay=0.001)

    def work(seed: int) -> None:
        for i in range(200):
            Buffer(1 + (seed * 7919 * i) % (2 * MIB), resource=pool, queue=q)
            if i % 50 == 0:
                pool.trim()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    q.wait()
    until(lambda: pool.trim() >= 0 and not lender.live)
