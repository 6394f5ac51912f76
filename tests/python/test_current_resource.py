# SPDX-License-Identifier: Apache-2.0
"""using(), set_resource() and reset_resource(): the source of buffers that name no resource."""

from __future__ import annotations

import asyncio
import copy
import ctypes
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import python, sim, until

import isthmus
from isthmus import Buffer, Context, Device, Queue, current_resource, using
from isthmus.memory import (
    CustomResource,
    FailureCallbackResource,
    FallbackResource,
    LimitResource,
    MemoryResource,
    MemoryUSMDevice,
    MemoryUSMHost,
    PoolResource,
    StatisticsResource,
    USMAllocationError,
    query,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOST = 3  # ISTHMUS_KIND_HOST


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
set_resource(two)
isthmus.reset_resource("host", "host")
assert isthmus.current_resource("host", "host") is None
assert isthmus.current_resource("shared", "host") is other
set_resource(two)
set_resource(None)
kept += [Buffer(10, kind=kind, device="host") for kind in ("host", "shared")]
assert (two.total_count, other.total_count) == (2, 1)
for kind in ("host", "shared"):
    assert isthmus.current_resource(kind, "host") is None
"""
    )


def test_none_restores_the_default_pools(dev: Device, kind: str) -> None:
    pool = counted_pool(kind, dev)
    with using(pool):
        with using(None) as given:
            assert given is None
            assert current_resource(kind, dev) is None
            Buffer(10, kind=kind, device=dev)
            isthmus.empty(10, kind=kind, device=dev)
            with using(pool):
                Buffer(10, kind=kind, device=dev)
        with pytest.raises(RuntimeError, match="None is not the innermost"):
            using(None).__exit__(None, None, None)
        Buffer(10, kind=kind, device=dev)
    assert pool.total_count == 2


def test_a_set_resource_lives_as_long_as_it_is_set() -> None:
    python(
        """
import gc, weakref
import isthmus
from isthmus import Buffer, current_resource, reset_resource, set_resource
from isthmus.memory import CustomResource, PoolResource, ProviderResource, StatisticsResource


class Marked(StatisticsResource):
    pass


resource = Marked(PoolResource("host", "host"))
known = weakref.ref(resource)
set_resource(resource)
del resource
gc.collect()
assert current_resource("host", "host") is known()  # the same object, of its own class
set_resource(ProviderResource("host", "host"))
assert known() is None
set_resource(Marked(PoolResource("host", "host")))
known = weakref.ref(current_resource("host", "host"))
reset_resource("host", "host")
assert known() is None


class Heap:
    def allocate(self, nbytes, alignment, queue):
        raise MemoryError

    def deallocate(self, pointer, nbytes, queue):
        pass


set_resource(CustomResource(Heap(), "host", "host"))  # set while the interpreter ends
block = isthmus.using(CustomResource(Heap(), "shared", "host"))
block.__enter__()  # never left
"""
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: isthmus.set_resource(3),  # type: ignore[arg-type]
        lambda: using("pool"),  # type: ignore[arg-type]
        lambda: isthmus.reset_resource(None),  # type: ignore[arg-type]
        lambda: isthmus.reset_resource("host", device=3),  # type: ignore[arg-type]
    ],
)
def test_other_types_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        call()


# -- the C interface: other code of the process that uses the same library -----------------------


class Interface:
    """The C functions for current resources, and a pool of C for host memory of the host."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(isthmus.get_library())
        self.library.isthmus_using_swap.restype = ctypes.c_void_p
        self.library.isthmus_using_swap.argtypes = [ctypes.c_void_p]
        device = ctypes.c_void_p()
        self.check(self.library.isthmus_device_find(b"host", ctypes.byref(device)))
        self.queue = ctypes.c_void_p()
        self.check(self.library.isthmus_queue_default(device, ctypes.byref(self.queue)))
        self.pool = ctypes.c_void_p()
        create = self.library.isthmus_resource_pool
        self.check(create(None, device, HOST, None, ctypes.byref(self.pool)))

    def check(self, status: int) -> None:
        assert status == 0

    def set(self, resource: ctypes.c_void_p | None) -> None:
        self.check(self.library.isthmus_current_resource_set(resource))

    def current(self) -> int:
        """The address of the current resource of host memory."""
        found = ctypes.c_void_p()
        get = self.library.isthmus_current_resource
        self.check(get(self.queue, HOST, 0, ctypes.byref(found)))
        self.library.isthmus_resource_release(found)
        assert found.value is not None
        return found.value

    @contextmanager
    def using(self, resource: ctypes.c_void_p) -> Iterator[None]:
        block = ctypes.c_void_p()
        self.check(self.library.isthmus_using_create(resource, ctypes.byref(block)))
        outer = self.library.isthmus_using_swap(block)
        try:
            yield
        finally:
            self.library.isthmus_using_swap(outer)
            self.library.isthmus_using_release(block)


@pytest.fixture
def c_interface() -> Iterator[Interface]:
    interface = Interface()
    yield interface
    isthmus.set_resource(None)
    interface.library.isthmus_resource_release(interface.pool)


def test_a_resource_of_c_serves_python(c_interface: Interface) -> None:
    default = isthmus.default_pool("host", "host", use="buffers")
    for switch in (nullcontext, lambda: c_interface.using(c_interface.pool)):
        if switch is nullcontext:
            c_interface.set(c_interface.pool)
        with switch():
            current = current_resource("host", "host")
            assert isinstance(current, MemoryResource)
            buffer = Buffer(1000, kind="host", device="host")
            array = isthmus.zeros(1000, kind="host", device="host")
            for made in (buffer, array.buffer):
                assert query(made.ptr).resource == current != default
            assert current.held_bytes > 0
            mine = counted_pool("host", "host")
            with using(mine):  # the innermost one
                Buffer(10, kind="host", device="host")
                with using(None):
                    made = Buffer(10, kind="host", device="host")
                    assert query(made.ptr).resource == default
            assert mine.total_count == 1
        c_interface.set(None)
        assert current_resource("host", "host") is None
        buffer.fill(1)
        assert bytes(buffer[:3]) == b"\1\1\1"


def test_a_resource_of_python_serves_c(c_interface: Interface) -> None:
    pool = counted_pool("host", "host")
    before = c_interface.current()
    isthmus.set_resource(pool)
    assert c_interface.current() != before
    buffer = ctypes.c_void_p()
    create = c_interface.library.isthmus_buffer_create
    c_interface.check(
        create(ctypes.c_size_t(100), HOST, ctypes.c_size_t(0), c_interface.queue, None,
               ctypes.byref(buffer))
    )  # fmt: skip
    assert pool.total_bytes == 100
    c_interface.library.isthmus_buffer_release(buffer)
    c_interface.set(c_interface.pool)  # replaces it
    assert current_resource("host", "host") != pool
    isthmus.reset_resource("host", "host")
    assert c_interface.current() == before


def test_unified_buffers_take_the_current_resource_when_created() -> None:
    device = sim()
    queue = device.default_queue
    pool = counted_pool("device", device)
    before = isthmus.UnifiedBuffer(100, queue=queue)
    with using(pool):
        meanwhile = isthmus.UnifiedBuffer(100, queue=queue)
        with using(None):
            default = isthmus.UnifiedBuffer(100, queue=queue)
        for each in (before, default):
            _ = each.device
        assert pool.total_count == 0
    _ = meanwhile.device
    assert pool.total_count == 1
