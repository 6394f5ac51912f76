# SPDX-License-Identifier: Apache-2.0
"""Streams and pools of them by RMM's interface."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from compat_rmm_support import on, stream
from support import noise

import isthmus
from isthmus import Buffer, Device, Queue
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.compat.rmm.pylibrmm.cuda_stream_pool import CudaStreamPool
from isthmus.compat.rmm.pylibrmm.device_buffer import (
    copy_device_to_ptr,
    copy_host_to_ptr,
    copy_ptr_to_host,
)
from isthmus.compat.rmm.pylibrmm.stream import (
    DEFAULT_STREAM,
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    CudaStreamFlags,
    Stream,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["on", "stream"]
pytestmark = pytest.mark.sim_and_host
DEFAULTS = (DEFAULT_STREAM, LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM)


class Handle:
    """A foreign stream that implements CUDA's stream protocol."""

    def __init__(self, handle: int, version: int = 0) -> None:
        self.told = version, handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.told


def test_the_default_streams(on: Device) -> None:
    assert [one.is_default() for one in DEFAULTS] == [True, True, False]
    assert len({*DEFAULTS}) == 3
    assert [hash(one) for one in DEFAULTS] == [0, 1, 2]
    assert DEFAULT_STREAM.queue == LEGACY_DEFAULT_STREAM.queue == on.default_queue
    assert PER_THREAD_DEFAULT_STREAM.queue == PER_THREAD_DEFAULT_STREAM.queue
    assert PER_THREAD_DEFAULT_STREAM.queue != on.default_queue
    for number, one in enumerate(DEFAULTS):
        one.synchronize()
        assert Stream(Handle(number)) == one
        assert "DEFAULT_STREAM" in repr(one)


def test_a_threads_own_stream(on: Device) -> None:
    def ask() -> Queue:
        with on:
            return PER_THREAD_DEFAULT_STREAM.queue

    with ThreadPoolExecutor(1) as threads:
        first, again = threads.submit(ask).result(), threads.submit(ask).result()
    assert first == again
    assert first != ask()


def test_a_new_stream(on: Device) -> None:
    made, other = Stream(), Stream()
    assert made.queue.device == on
    assert made == Stream(made) == Stream(obj=made)
    assert made != other
    assert made != "stream"
    assert len({made, Stream(made), other}) == 2
    assert not made.is_default()
    made.synchronize()
    assert repr(made.queue) in repr(made)


@pytest.mark.parametrize("flags", [*CudaStreamFlags, 0, 1])
def test_flags(on: Device, flags: Any) -> None:
    made = Stream(flags=flags)
    assert DeviceBuffer.to_device(b"abc", made).tobytes(made) == b"abc"
    with pytest.raises(ValueError, match="flags may only be specified when obj is None"):
        Stream(made, flags=flags)


@pytest.mark.parametrize("bad", [2, -1, "x", object()])
@pytest.mark.host_only
def test_bad_flags(on: Device, bad: Any) -> None:
    with pytest.raises(ValueError):
        Stream(flags=bad)
    with pytest.raises(ValueError):
        CudaStreamPool(2, bad)


@pytest.mark.every_backend
def test_over_a_queue(on: Device) -> None:
    queue = Queue(on)
    assert Stream(queue).queue == queue
    assert Stream(queue) == Stream(queue)
    assert Stream(on.default_queue) == DEFAULT_STREAM


def test_over_the_default_queue_of_a_device_that_is_not_the_current_one(on: Device) -> None:
    host = Device("host")
    if on == host:
        return
    over = Stream(host.default_queue)
    assert over.queue == Stream(over).queue == host.default_queue
    assert over.is_default()
    assert (over, hash(over)) == (DEFAULT_STREAM, hash(DEFAULT_STREAM))
    with pytest.raises(TypeError, match="host:cpu:0"):
        over.__cuda_stream__()
    over.synchronize()
    told: list[Device] = []
    with host:
        below = mr.CudaMemoryResource()

        def allocate(nbytes: int, stream: Stream) -> int:
            told.append(stream.queue.device)
            return below.allocate(nbytes, stream)

        calls = mr.CallbackMemoryResource(allocate, below.deallocate)
    DeviceBuffer(size=10, mr=calls)
    assert told == [host]


@pytest.mark.parametrize("bad", [3, "default", b"s", object(), 1.5])
@pytest.mark.host_only
def test_what_is_no_stream(on: Device, bad: Any) -> None:
    with pytest.raises(TypeError):
        Stream(bad)


def test_another_version_of_the_protocol(on: Device) -> None:
    with pytest.raises(NotImplementedError, match="version: '1'"):
        Stream(Handle(0, version=1))


@pytest.mark.every_backend
def test_handles(on: Device) -> None:
    made = Stream()
    if on.backend != "cuda":
        for one in (made, *DEFAULTS):
            with pytest.raises(TypeError, match=r"CUDA"):
                one.__cuda_stream__()
        return
    assert [one.__cuda_stream__() for one in DEFAULTS] == [(0, 0), (0, 1), (0, 2)]
    version, handle = made.__cuda_stream__()
    assert version == 0
    assert handle > 2
    assert Stream(Handle(handle)) == made
    assert Queue.from_stream(made) == made.queue


@pytest.mark.every_backend
def test_synchronize_waits(on: Device, gate: isthmus.Event) -> None:
    made = Stream()
    made.queue.fence(after=gate)
    threading.Timer(0.05, gate.complete).start()
    made.synchronize()
    assert gate.done


def test_a_pool(on: Device) -> None:
    pool = CudaStreamPool(pool_size=3)
    assert pool.get_pool_size() == 3
    three = [pool.get_stream() for _ in range(3)]
    assert len(set(three)) == 3
    assert [pool.get_stream() for _ in range(3)] == three
    assert pool.get_stream(1) == pool.get_stream(stream_id=1) == pool.get_stream(4)
    assert CudaStreamPool().get_pool_size() == 16
    assert CudaStreamPool(2, CudaStreamFlags.NON_BLOCKING).get_pool_size() == 2
    made = pool.get_stream()
    del pool, three
    assert DeviceBuffer.to_device(b"abc", made).tobytes(made) == b"abc"


def test_a_pool_refuses(on: Device) -> None:
    with pytest.raises(RuntimeError, match="1 or more"):
        CudaStreamPool(0)
    pool = CudaStreamPool(2)
    for bad, error in ((-1, OverflowError), ("a", TypeError), (1.5, TypeError)):
        with pytest.raises(error):
            CudaStreamPool(bad)  # type: ignore[arg-type]
        with pytest.raises(error):
            pool.get_stream(bad)  # type: ignore[arg-type]


def test_a_pool_and_threads(on: Device) -> None:
    pool = CudaStreamPool(4)
    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(lambda _: pool.get_stream(), range(400)))
    assert {taken.count(one) for one in taken} == {100}


@pytest.mark.every_backend
def test_copies_by_address(on: Device, stream: Stream) -> None:
    data = noise(5000)
    source, target = DeviceBuffer(size=5000), DeviceBuffer(size=5000)
    copy_host_to_ptr(data, source.ptr, stream)
    copy_device_to_ptr(source.ptr + 1000, target.ptr, 4000, stream)
    got = bytearray(3000)
    copy_ptr_to_host(target.ptr + 1000, got, stream)
    stream.synchronize()
    assert got == data[2000:].tobytes()


def test_copies_of_nothing(on: Device) -> None:
    copy_host_to_ptr(b"", 0)
    copy_device_to_ptr(0, 0, 0)
    copy_ptr_to_host(0, bytearray())


def test_copies_by_address_from_plain_memory(on: Device) -> None:
    plain, target = noise(100), DeviceBuffer(size=100)
    copy_device_to_ptr(plain.ctypes.data, target.ptr, 100, LEGACY_DEFAULT_STREAM)
    LEGACY_DEFAULT_STREAM.synchronize()
    assert target.tobytes() == plain.tobytes()


@pytest.mark.every_backend
def test_copies_by_address_are_in_the_streams_order(on: Device, gate: isthmus.Event) -> None:
    own = Stream()
    source, target = DeviceBuffer.to_device(b"abc"), DeviceBuffer.to_device(bytes(3))
    own.queue.fence(after=gate)
    copy_device_to_ptr(source.ptr, target.ptr, 3, own)
    assert not own.queue.idle
    gate.complete()
    own.synchronize()
    assert target.tobytes() == b"abc"


def test_copies_by_address_refuse(on: Device) -> None:
    made = DeviceBuffer.to_device(b"abc")
    host = bytearray(3)
    calls: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: copy_ptr_to_host(made.ptr, None), TypeError, "hb"),
        (lambda: copy_ptr_to_host(made.ptr, b"abc"), ValueError, "read-only"),
        (lambda: copy_ptr_to_host(made.ptr, np.ones(3, np.int16)), ValueError, "unsigned bytes"),
        (lambda: copy_ptr_to_host(0, host), ValueError, "address 0"),
        (lambda: copy_ptr_to_host(-1, host), OverflowError, "db"),
        (lambda: copy_ptr_to_host("a", host), TypeError, "db"),  # type: ignore[arg-type]
        (lambda: copy_ptr_to_host(made.ptr, host, None), TypeError, "cannot be None"),  # type: ignore[arg-type]
        (lambda: copy_host_to_ptr(None, made.ptr), TypeError, "hb"),
        (lambda: copy_host_to_ptr(host, 0), ValueError, "address 0"),
        (lambda: copy_host_to_ptr(host, made.ptr, None), TypeError, "cannot be None"),  # type: ignore[arg-type]
        (lambda: copy_device_to_ptr(made.ptr, made.ptr, -1), OverflowError, "count"),
        (lambda: copy_device_to_ptr(0, made.ptr, 3), ValueError, "address 0"),
        (lambda: copy_device_to_ptr(made.ptr, made.ptr, 3, None), TypeError, "cannot be None"),  # type: ignore[arg-type]
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
    assert (host, made.tobytes()) == (bytearray(3), b"abc")


def test_sizes_beyond_the_allocation(on: Device) -> None:
    made = DeviceBuffer(size=4096)
    with pytest.raises(ValueError):
        copy_ptr_to_host(made.ptr, bytearray(1 << 20))


def test_a_stream_of_another_context(on: Device) -> None:
    from support import sim

    other = sim()
    with other:
        theirs = Stream()
    with pytest.raises(ValueError):
        DeviceBuffer(size=10, stream=theirs)
    assert Buffer(1, device=on).nbytes == 1
