# SPDX-License-Identifier: Apache-2.0
"""RMM's resources and adaptors: allocation, caching, counts, rejected arguments of each class."""

from __future__ import annotations

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from compat_rmm_support import BAD_COUNTS, BAD_STREAMS, on, stream
from support import is_memory_released, message_has, python, sim

import isthmus
import isthmus.compat.rmm as rmm
from isthmus import Buffer, Device
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.compat.rmm.pylibrmm.device_buffer import copy_device_to_ptr
from isthmus.compat.rmm.pylibrmm.stream import Stream
from isthmus.memory import MemoryResource, PoolResource, ProviderResource, live

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[[], mr.DeviceMemoryResource]

__all__ = ["on", "stream"]
pytestmark = pytest.mark.sim_and_host

KINDS = {
    "CudaMemoryResource": "device",
    "ManagedMemoryResource": "shared",
    "PinnedHostMemoryResource": "host",
    "SystemMemoryResource": "shared",
}


def over(make: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: make(mr.CudaMemoryResource(), *arguments)


EVERY: dict[str, Callable[[], mr.DeviceMemoryResource]] = {
    "cuda": mr.CudaMemoryResource,
    "managed": mr.ManagedMemoryResource,
    "system": mr.SystemMemoryResource,
    "headroom": lambda: mr.SamHeadroomMemoryResource(1 << 20),
    "async": mr.CudaAsyncMemoryResource,
    "async managed": mr.experimental.CudaAsyncManagedMemoryResource,
    "pool": over(mr.PoolMemoryResource),
    "arena": over(mr.ArenaMemoryResource),
    "fixed": over(mr.FixedSizeMemoryResource, 1 << 20, 4),
    "binning": over(mr.BinningMemoryResource, 10, 14),
    "limit": over(mr.LimitingResourceAdaptor, 1 << 30),
    "statistics": over(mr.StatisticsResourceAdaptor),
    "tracking": over(mr.TrackingResourceAdaptor, True),
    "failure": over(mr.FailureCallbackResourceAdaptor, lambda nbytes: False),
    "prefetch": over(mr.PrefetchResourceAdaptor),
    "pool of pool": lambda: mr.PoolMemoryResource(mr.PoolMemoryResource(mr.CudaMemoryResource())),
    "isthmus": lambda: mr.DeviceMemoryResource(PoolResource("device", isthmus.current_device())),
}
ADAPTORS: dict[str, tuple[Any, ...]] = {
    "PoolMemoryResource": (),
    "ArenaMemoryResource": (),
    "FixedSizeMemoryResource": (4096, 4),
    "BinningMemoryResource": (),
    "LimitingResourceAdaptor": (1 << 20,),
    "StatisticsResourceAdaptor": (),
    "TrackingResourceAdaptor": (),
    "FailureCallbackResourceAdaptor": (lambda nbytes: False,),
    "PrefetchResourceAdaptor": (),
    "UpstreamResourceAdaptor": (),
}


def a_pool() -> mr.PoolMemoryResource:
    """A resource with stream-ordered frees: counts over it fall as soon as a buffer ends."""
    return mr.PoolMemoryResource(mr.CudaMemoryResource())


each = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)


@each
def test_allocate_and_deallocate(make: Make, stream: Stream) -> None:
    resource = make()
    for nbytes in (0, 1, 1000, 100_000):
        address = resource.allocate(nbytes)
        assert (address != 0) == (nbytes > 0)
        resource.deallocate(address, nbytes, stream)
        address = resource.allocate(nbytes, stream)
        resource.deallocate(address, nbytes)


@each
@pytest.mark.parametrize("stream", ["own"], indirect=True)
@pytest.mark.every_backend
def test_buffers_of_it(make: Make, stream: Stream) -> None:
    resource = make()
    data = np.arange(256, dtype=np.uint8)
    made = DeviceBuffer(size=1000, stream=stream, mr=resource)
    made.copy_from_host(data)
    made.resize(2000)
    assert made.tobytes()[:256] == data.tobytes()
    assert made.mr is resource
    mr.set_current_device_resource(resource)
    other = DeviceBuffer.to_device(data)
    assert other.mr is resource
    assert other.tobytes() == data.tobytes()


@each
def test_many_of_it(make: Make, on: Device) -> None:
    resource = make()
    sizes = [(7 * n) % 5000 + 1 for n in range(200)]
    taken = [(resource.allocate(size), size) for size in sizes]
    ends = sorted((address, address + size) for address, size in taken)
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    for address, size in taken[::2] + taken[1::2]:
        resource.deallocate(address, size)


@pytest.mark.parametrize("bad", BAD_STREAMS)
@pytest.mark.host_only
def test_bad_streams(on: Device, bad: Any) -> None:
    resource = mr.CudaMemoryResource()
    address = resource.allocate(10)
    for call in (
        lambda: resource.allocate(10, bad),
        lambda: resource.deallocate(address, 10, bad),
    ):
        with pytest.raises(TypeError, match="cannot be None" if bad is None else "stream"):
            call()
    resource.deallocate(address, 10)


@pytest.mark.parametrize(("bad", "error"), BAD_COUNTS)
@pytest.mark.host_only
def test_bad_numbers(on: Device, bad: Any, error: type[Exception]) -> None:
    resource, above = mr.CudaMemoryResource(), mr.CudaMemoryResource
    calls: list[Callable[[], object]] = [
        lambda: resource.allocate(bad),
        lambda: resource.deallocate(bad, 10),
        lambda: resource.deallocate(10, bad),
        lambda: mr.SamHeadroomMemoryResource(bad),
        lambda: mr.LimitingResourceAdaptor(above(), bad),
        lambda: mr.FixedSizeMemoryResource(above(), bad),
        lambda: mr.FixedSizeMemoryResource(above(), 10, bad),
        lambda: mr.BinningMemoryResource(above()).add_bin(bad),
    ]
    for call in calls:
        with pytest.raises(error) as told:
            call()
        message_has(told, [bad])


def test_deallocate_refuses(on: Device) -> None:
    owner = a_pool()
    address = owner.allocate(100)
    with pytest.raises(ValueError, match="allocated as 100") as told:
        owner.deallocate(address, 99)
    message_has(told, [hex(address), 99])
    for resource, wrong in ((owner, address + 1), (mr.CudaMemoryResource(), address), (owner, 0)):
        with pytest.raises(ValueError, match="was not allocated by"):
            resource.deallocate(wrong, 100)
    owner.deallocate(address, 100)
    with pytest.raises(ValueError, match="was not allocated by"):
        owner.deallocate(address, 100)


def test_a_wrong_size_does_not_affect_other_blocks(on: Device) -> None:
    """A free with a wrong size never makes a concurrent free with the right size fail."""
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource())
    address, ended = pool.allocate(1000), threading.Event()
    before = sys.getswitchinterval()
    refused: list[str] = []

    def ask_wrongly() -> None:
        while not ended.is_set():
            try:
                pool.deallocate(address, 999)
            except ValueError as error:  # noqa: PERF203 (of each call)
                if "allocated as 1000" not in str(error):
                    refused.append(str(error))

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            asking = [threads.submit(ask_wrongly) for _ in range(2)]
            ended.wait(0.5)
            ended.set()
            for one in asking:
                one.result()
    finally:
        sys.setswitchinterval(before)
    assert refused == []
    pool.deallocate(address, 1000)


def test_addresses_outlive_the_resource(on: Device) -> None:
    before = live()
    owner = a_pool()
    address = owner.allocate(3)
    kept = DeviceBuffer.to_device(b"abc")
    copy_device_to_ptr(kept.ptr, address, 3)
    gc.collect()
    assert DeviceBuffer(ptr=address, size=3).tobytes() == b"abc"
    owner.deallocate(address, 3)
    del kept, owner
    assert is_memory_released(before)


@pytest.mark.every_backend
def test_memory_returns_after_the_stream(on: Device, gate: isthmus.Event) -> None:
    resource, own = mr.CudaMemoryResource(), Stream()
    before = live()
    address = resource.allocate(100)
    own.queue.fence(after=gate)
    resource.deallocate(address, 100, own)
    assert live()[0] == before[0] + 1
    gate.complete()
    assert is_memory_released(before)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.every_backend
def test_the_drivers_memory(on: Device, name: str) -> None:
    if KINDS[name] not in on.kinds:
        with pytest.raises(RuntimeError, match=KINDS[name]):
            getattr(mr, name)()
        return
    resource = getattr(mr, name)()
    assert isinstance(resource.resource, ProviderResource)
    assert resource.device == on
    made = DeviceBuffer.from_buffer(Buffer(10, resource=resource.resource))
    assert made.buffer.kind == KINDS[name]
    assert DeviceBuffer(size=10, mr=resource).buffer.kind == KINDS[name]
    assert repr(resource) == f"<isthmus.compat.rmm {name} on {on.filter}>"


def test_headroom(on: Device) -> None:
    for headroom in (0, 1 << 20, (1 << 64) - 1):
        resource = mr.SamHeadroomMemoryResource(headroom)
        made = DeviceBuffer(size=100_000, mr=resource)
        made.copy_from_host(bytes(100_000))
        assert made.buffer.kind == "shared"
        assert made.tobytes() == bytes(100_000)


@pytest.mark.parametrize("name", ADAPTORS)
def test_resources_with_an_upstream(on: Device, name: str) -> None:
    make, arguments = getattr(mr, name), ADAPTORS[name]
    below = mr.CudaMemoryResource()
    resource = make(below, *arguments)
    assert isinstance(resource, mr.UpstreamResourceAdaptor)
    assert resource.get_upstream() is resource.upstream_mr is below
    assert isinstance(resource.resource, MemoryResource)
    for bad in (None, 3, below.resource, mr.CudaMemoryResource):
        with pytest.raises(TypeError, match="upstream_mr must be"):
            make(bad, *arguments)
    with pytest.raises(TypeError):
        make()


def test_a_resource_of_isthmus(on: Device) -> None:
    with pytest.raises(TypeError, match=r"isthmus\.memory"):
        mr.DeviceMemoryResource(3)  # type: ignore[arg-type]
    pool = PoolResource("device", on)
    assert mr.DeviceMemoryResource(pool).resource is pool


def test_current_and_per_device(on: Device) -> None:
    first = mr.get_current_device_resource()
    assert type(first) is mr.CudaMemoryResource
    assert mr.get_current_device_resource() is first is mr.get_per_device_resource(0)
    pool = mr.PoolMemoryResource(first)
    mr.set_per_device_resource(0, pool)
    assert mr.get_current_device_resource() is pool
    mr.set_current_device_resource(first)
    assert mr.get_per_device_resource(0) is first
    assert mr.is_initialized()
    assert rmm.is_initialized()


def test_current_refuses(on: Device) -> None:
    for bad in (None, 3, mr.CudaMemoryResource, mr.CudaMemoryResource().resource):
        with pytest.raises(TypeError, match="mr must be"):
            mr.set_current_device_resource(bad)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="mr must be"):
            mr.set_per_device_resource(0, bad)  # type: ignore[arg-type]
    for number, error in ((-1, OverflowError), (1000, ValueError), ("a", TypeError)):
        with pytest.raises(error, match="device"):
            mr.get_per_device_resource(number)  # type: ignore[arg-type]
        with pytest.raises(error, match="device"):
            mr.set_per_device_resource(number, mr.CudaMemoryResource())  # type: ignore[arg-type]


def test_a_resource_of_another_device() -> None:
    with Device("host"):
        elsewhere = mr.CudaMemoryResource()
    with sim(), pytest.raises(ValueError, match="host:cpu:0"):
        mr.set_current_device_resource(elsewhere)


SEVERAL = """
from isthmus import Device
from isthmus.compat import rmm
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.compat.rmm.pylibrmm.device_buffer import copy_device_to_ptr
from isthmus.compat.rmm.pylibrmm.stream import Stream
first, second = Device("sim:0"), Device("sim:1")
with second:
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource())
    mr.set_current_device_resource(pool)
    assert mr.get_per_device_resource(1) is pool
    assert DeviceBuffer(size=10).buffer.device == second
with first:
    assert mr.get_current_device_resource() is not pool
    assert DeviceBuffer(size=10).buffer.device == first
    assert mr.get_per_device_resource(1) is pool
    assert DeviceBuffer(size=10, mr=pool).buffer.device == second
    other = DeviceBuffer.from_buffer(DeviceBuffer.to_device(b"abc").buffer)
    made = DeviceBuffer(size=3, mr=pool)
    made.copy_from_device(other)
    assert made.tobytes() == b"abc"
    assert DeviceBuffer(ptr=made.ptr, size=3).tobytes() == b"abc"
    DeviceBuffer(size=10, mr=mr.ManagedMemoryResource()).prefetch(1)
    rmm.reinitialize(pool_allocator=True, devices=[0, 1], logging=True, log_file_name="a.csv")
    assert {type(mr.get_per_device_resource(n)) for n in (0, 1)} == {mr.LoggingResourceAdaptor}
    assert mr.get_per_device_resource(1).device == second
    print(sorted(rmm.get_log_filenames().items()))
    rmm.disable_logging()
    assert {type(mr.get_per_device_resource(n)) for n in (0, 1)} == {mr.PoolMemoryResource}
"""


def test_several_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = python(SEVERAL, ISTHMUS_SIM="devices=2").stdout
    assert told == f"[(0, '{tmp_path}/a.dev0.csv'), (1, '{tmp_path}/a.dev1.csv')]\n"


def test_free_and_total(on: Device) -> None:
    if "query_free_memory" not in on.capabilities:
        with pytest.raises(RuntimeError):
            mr.available_device_memory()
        return
    free, total = mr.available_device_memory()
    assert 0 < free <= total


def test_threads_that_set_and_ask(on: Device) -> None:
    """One default resource per device, whichever thread is first; each buffer has a resource."""
    start = threading.Barrier(4)

    def first(_: int) -> object:
        with on:
            start.wait()
            return mr.get_current_device_resource()

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(first, range(4)))) == 1

    def work(number: int) -> int:
        with on:
            for _ in range(50):
                if number == 0:
                    mr.set_current_device_resource(mr.PoolMemoryResource(mr.CudaMemoryResource()))
                made = DeviceBuffer.to_device(b"abc")
                assert made.tobytes() == b"abc"
        return number

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(work, range(4))) == [0, 1, 2, 3]
