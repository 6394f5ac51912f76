# SPDX-License-Identifier: Apache-2.0
"""DeviceBuffer by RMM's interface: copies, pickles, exchange, end of life, threads."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from compat_rmm_support import on, stream
from support import is_memory_released, noise, sim, until

import isthmus
import isthmus.compat.rmm as rmm
from isthmus import Buffer, ClosedError, Device
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.compat.rmm.pylibrmm.stream import DEFAULT_STREAM, Stream
from isthmus.memory import live

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["on", "stream"]
pytestmark = pytest.mark.sim_and_host


@pytest.mark.parametrize("make", [DeviceBuffer.copy, copy.copy, copy.deepcopy])
def test_copies(on: Device, stream: Stream, make: Callable[[DeviceBuffer], DeviceBuffer]) -> None:
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource())
    counted = mr.StatisticsResourceAdaptor(pool)
    made = DeviceBuffer(size=3, stream=stream, mr=counted)
    made.copy_from_host(b"abc")
    made.reserve(100)
    other = make(made)
    stream.synchronize()
    assert other is not made
    assert other.ptr != made.ptr
    assert (other.tobytes(), other.capacity(), other.stream) == (b"abc", 3, stream)
    assert other.mr is counted
    assert until(lambda: counted.allocation_counts.current_bytes == 103)
    made.copy_from_host(b"xyz")
    assert other.tobytes() == b"abc"
    assert make(DeviceBuffer()).tobytes() == b""


@pytest.mark.parametrize("data", [b"", b"abc", noise(1 << 20).tobytes()])
def test_pickles(on: Device, data: bytes) -> None:
    made = DeviceBuffer.to_device(data)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(made, protocol)).tobytes() == data
    aside: list[pickle.PickleBuffer] = []
    text = pickle.dumps(made, 5, buffer_callback=aside.append)
    assert len(aside) == 1
    assert bytes(aside[0]) == data
    assert len(text) < 500
    again = pickle.loads(text, buffers=aside)
    assert type(again) is DeviceBuffer
    assert again.tobytes() == data


@pytest.mark.parametrize("to", [None, 0, -1])
@pytest.mark.parametrize("kind", ["CudaMemoryResource", "ManagedMemoryResource"])
def test_prefetch(on: Device, stream: Stream, kind: str, to: int | None) -> None:
    made = DeviceBuffer(size=3, mr=getattr(mr, kind)())
    made.copy_from_host(b"abc")
    made.prefetch(to)
    made.prefetch(to, stream)
    made.prefetch()
    assert made.tobytes(stream) == b"abc"
    DeviceBuffer(mr=getattr(mr, kind)()).prefetch(to)


def test_prefetch_refuses(on: Device) -> None:
    made = DeviceBuffer(size=3)
    with pytest.raises(ValueError, match="no device 1000"):
        made.prefetch(1000)
    for bad, error in ((-2, OverflowError), ("0", TypeError), (0.5, TypeError)):
        with pytest.raises(error, match="device"):
            made.prefetch(bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        made.prefetch(stream=3)  # type: ignore[arg-type]


def test_prefetch_to_another_platform(on: Device) -> None:
    made = DeviceBuffer(size=3, mr=mr.ManagedMemoryResource())
    for other in (Device("host"), sim()):
        with other:
            made.prefetch()
            made.prefetch(0)
    assert made.size == 3
    for kind in (mr.ManagedMemoryResource, mr.CudaMemoryResource):
        gone = DeviceBuffer(size=3, mr=kind())
        gone.free()
        with pytest.raises(ClosedError):
            gone.prefetch()


@pytest.mark.every_backend
def test_cuda_array_interface(on: Device) -> None:
    made = DeviceBuffer(size=5)
    made.resize(3)
    if on.backend != "cuda":
        assert not hasattr(made, "__cuda_array_interface__")
        return
    for size in range(6):
        made = DeviceBuffer(size=size)
        assert made.__cuda_array_interface__ == {
            "data": (made.ptr, False),
            "shape": (size,),
            "strides": None,
            "typestr": "|u1",
            "version": 0,
        }
        assert (made.ptr != 0) == (size != 0)


@pytest.mark.every_backend
def test_usm_interface(on: Device) -> None:
    made = DeviceBuffer.to_device(b"abc")
    made.reserve(10)
    told = made.__sycl_usm_array_interface__
    assert (told["data"], told["shape"], told["typestr"]) == ((made.ptr, False), (3,), "|u1")
    assert isthmus.memory.as_usm_memory(made).tobytes() == b"abc"


@pytest.mark.every_backend
def test_dlpack(on: Device) -> None:
    shared = DeviceBuffer(size=3, mr=mr.ManagedMemoryResource())
    shared.copy_from_host(b"abc")
    shared.reserve(10)
    assert shared.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(shared)
    assert array.tobytes() == b"abc"
    assert array.ctypes.data == shared.ptr
    assert np.asarray(shared).tobytes() == b"abc"
    array = np.from_dlpack(shared)
    shared.free()
    assert array.tobytes() == b"abc"  # the array keeps the memory alive
    if on.backend != "cuda":
        with pytest.raises(BufferError):
            DeviceBuffer(size=3).__dlpack_device__()


def test_the_wrapped_buffer(on: Device) -> None:
    made = DeviceBuffer.to_device(b"abcdef")
    whole = made.buffer
    assert (whole.ptr, whole.nbytes) == (made.ptr, 6)
    made.resize(2)
    part = made.buffer
    part.fill(ord("z"))
    assert whole.tobytes() == b"zzcdef"
    del made, whole
    gc.collect()
    assert part.tobytes() == b"zz"


@pytest.mark.parametrize("kind", ["device", "shared"])
def test_from_a_buffer(on: Device, stream: Stream, kind: str) -> None:
    given = Buffer(6, kind=kind, device=on)
    given.copy_from(b"abcdef")
    made = DeviceBuffer.from_buffer(given, stream=stream)
    assert (made.ptr, made.size, made.capacity()) == (given.ptr, 6, 6)
    assert made.mr is mr.get_current_device_resource()
    del given
    assert made.tobytes(stream) == b"abcdef"
    made.resize(8)
    assert made.tobytes()[:6] == b"abcdef"
    counted = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    other = DeviceBuffer.from_buffer(made.buffer, mr=counted)
    other.reserve(100)
    assert counted.allocation_counts.current_bytes == 100
    with pytest.raises(TypeError, match=r"isthmus\.Buffer"):
        DeviceBuffer.from_buffer(b"abc")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="DeviceMemoryResource"):
        DeviceBuffer.from_buffer(made.buffer, mr="x")  # type: ignore[arg-type]
    with sim():
        elsewhere = mr.CudaMemoryResource()
    with pytest.raises(ValueError, match=elsewhere.device.filter):
        DeviceBuffer.from_buffer(made.buffer, mr=elsewhere)


def test_memory_with_an_owner_is_returned() -> None:
    """A C++ owner exports an address and an object that frees it."""

    class Owner:
        def __init__(self) -> None:
            self.memory = noise(4096)

        def __del__(self) -> None:
            ended.append(True)

    ended: list[bool] = []
    owner = Owner()
    data = owner.memory.tobytes()
    with Device("host"):
        adopted = Buffer.adopt(owner.memory.ctypes.data, 4096, kind="host", owner=owner)
        made = DeviceBuffer.from_buffer(adopted)
        del owner, adopted
        gc.collect()
        assert made.tobytes() == data
        assert not ended
        del made
        assert until(lambda: ended)
        rmm.reinitialize(devices=[])


@pytest.mark.every_backend
def test_its_end(on: Device) -> None:
    before = live()
    with DeviceBuffer.to_device(b"abc") as made:
        assert live()[0] == before[0] + 1
    calls: list[Callable[[], object]] = [
        lambda: made.ptr,
        made.tobytes,
        made.copy_to_host,
        made.copy,
        lambda: made.copy_from_host(b"a"),
        lambda: made.copy_from_device(DeviceBuffer.to_device(b"a")),
        lambda: made.resize(10),
        lambda: made.reserve(10),
        lambda: made.__sycl_usm_array_interface__,
    ]
    for call in calls:
        with pytest.raises(ClosedError):
            call()
    made.free()
    assert "freed" in repr(made)
    again = DeviceBuffer(size=10)
    assert hex(again.ptr) in repr(again)
    again.free()
    assert is_memory_released(before)


@pytest.mark.every_backend
def test_it_returns_after_work_in_flight(on: Device, gate: isthmus.Event) -> None:
    own = Stream()
    made = DeviceBuffer.to_device(b"abc", own)
    own.queue.fence(after=gate)
    got = DeviceBuffer(size=3, stream=own)
    got.copy_from_device(made, own)
    del made
    gc.collect()
    gate.complete()
    assert got.tobytes(own) == b"abc"


def test_cycles_are_collected(on: Device) -> None:
    before = live()

    class Holder:
        pass

    holder: Any = Holder()
    holder.buffer, holder.again = DeviceBuffer(size=100), holder
    holder.pool = mr.PoolMemoryResource(mr.CudaMemoryResource())
    holder.inside = DeviceBuffer(size=100, mr=holder.pool)
    del holder
    assert is_memory_released(before)


def test_the_resource_outlives_references_to_it(on: Device) -> None:
    made = DeviceBuffer(size=3, mr=mr.PoolMemoryResource(mr.CudaMemoryResource()))
    made.copy_from_host(b"abc")
    gc.collect()
    rmm.reinitialize()
    assert made.tobytes() == b"abc"


@pytest.mark.every_backend
def test_streams_of_one_buffer_are_in_order(on: Device, gate: isthmus.Event) -> None:
    """Work on one stream waits for earlier work on another, which RMM leaves to its users."""
    first, second = Stream(), Stream()
    made = DeviceBuffer.to_device(bytes(3))
    source = DeviceBuffer.to_device(b"abc")
    first.queue.fence(after=gate)
    made.copy_from_device(source, first)
    target = DeviceBuffer(size=3)
    target.copy_from_device(made, second)
    gate.complete()
    assert target.tobytes(second) == b"abc"


def test_threads(on: Device) -> None:
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource())
    mr.set_current_device_resource(pool)
    start = threading.Barrier(4)

    def work(seed: int) -> int:
        with on:
            start.wait()
            own = Stream()
            kept = []
            for round_ in range(40):
                data = noise(1 + (round_ * 977 + seed) % 20_000, seed)
                made = DeviceBuffer.to_device(data, own)
                made.resize(made.size * 2, own)
                kept.append((made.copy(), data.tobytes()))
                assert made.tobytes(own)[: len(data)] == data.tobytes()
            return sum(one.tobytes()[: len(data)] == data for one, data in kept)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [40] * 4
    mr.set_current_device_resource(mr.CudaMemoryResource())


def test_one_buffer_read_by_threads(on: Device) -> None:
    data = noise(100_000)
    made = DeviceBuffer.to_device(data)
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: made.tobytes(), range(40))) == {data.tobytes()}
    assert made.stream is DEFAULT_STREAM
