# SPDX-License-Identifier: Apache-2.0
"""DeviceBuffer by RMM's interface: contents, copies from and to it, sizes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from compat_rmm_support import BAD_COUNTS, BAD_STREAMS, NO_BUFFERS, on, stream
from support import message_has, noise, until

import isthmus
from isthmus import Buffer, Device
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.compat.rmm.pylibrmm.device_buffer import to_device
from isthmus.compat.rmm.pylibrmm.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["on", "stream"]
pytestmark = pytest.mark.sim_and_host
SIZES = (0, 1, 5, 4096, 1_000_003)
BYTES: list[Any] = [
    b"abc",
    bytearray(b"abc"),
    memoryview(b"abc"),
    memoryview(b"abc").cast("c"),
    np.frombuffer(b"abc", np.uint8),
    np.array([97, 98, 99], np.uint8),
]
NO_BYTES: list[Any] = [
    np.ones(2, np.uint16),
    np.ones(2, np.int8),
    np.ones(2, np.float32),
    np.ones((2, 2), np.uint8),
    np.ones((), np.uint8),
    np.ones(4, np.uint8)[::2],
    memoryview(b"abcd")[::-1],
]


@pytest.mark.parametrize("size", SIZES)
def test_a_new_one(on: Device, stream: Stream, size: int) -> None:
    made = DeviceBuffer(size=size, stream=stream)
    assert made.size == made.nbytes == len(made) == made.__sizeof__() == size
    assert made.capacity() >= size
    assert (made.ptr != 0) == (size > 0)
    assert made.stream == stream
    assert made.mr is mr.get_current_device_resource()
    assert made.buffer.device == on
    assert len(made.tobytes()) == size
    assert sys.getsizeof(made) >= size


def test_without_arguments(on: Device) -> None:
    made = DeviceBuffer()
    assert (made.ptr, made.size, made.capacity(), made.tobytes()) == (0, 0, 0, b"")
    with pytest.raises(TypeError):
        DeviceBuffer(5)  # type: ignore[misc]


@pytest.mark.parametrize("size", SIZES)
def test_from_a_host_address(on: Device, stream: Stream, size: int) -> None:
    data = noise(size)
    made = DeviceBuffer(ptr=data.ctypes.data, size=size, stream=stream)
    stream.synchronize()
    assert made.tobytes() == data.tobytes()


@pytest.mark.parametrize("kind", ["CudaMemoryResource", "ManagedMemoryResource"])
def test_from_a_device_address(on: Device, stream: Stream, kind: str) -> None:
    data = noise(5000)
    source = DeviceBuffer(size=5000, mr=getattr(mr, kind)())
    source.copy_from_host(data)
    part = DeviceBuffer(ptr=source.ptr + 1000, size=500, stream=stream)
    stream.synchronize()
    assert part.tobytes() == data[1000:1500].tobytes()


def test_an_address_without_bytes_is_ignored(on: Device) -> None:
    assert DeviceBuffer(ptr=0x10, size=0).tobytes() == b""


def test_an_address_of_freed_memory(on: Device) -> None:
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource())
    freed = DeviceBuffer(size=4096, mr=pool)
    address = freed.ptr
    freed.free()
    with pytest.raises(ValueError, match="freed") as told:
        DeviceBuffer(ptr=address, size=10)
    message_has(told, [hex(address)])


@pytest.mark.parametrize(("size", "error"), BAD_COUNTS)
@pytest.mark.host_only
def test_bad_sizes(on: Device, size: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as told:
        DeviceBuffer(size=size)
    message_has(told, ["size", size])


@pytest.mark.parametrize(("ptr", "error"), BAD_COUNTS)
@pytest.mark.host_only
def test_bad_addresses(on: Device, ptr: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as told:
        DeviceBuffer(ptr=ptr, size=3)
    message_has(told, ["ptr", ptr])


@pytest.mark.parametrize("size", [1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_more_than_there_is(on: Device, size: int) -> None:
    with pytest.raises(MemoryError):
        DeviceBuffer(size=size)


@pytest.mark.parametrize("bad", [3, "pool", isthmus.memory.live, object()])
@pytest.mark.host_only
def test_bad_resources(on: Device, bad: Any) -> None:
    with pytest.raises(TypeError, match="mr must be"):
        DeviceBuffer(size=3, mr=bad)


@pytest.mark.parametrize("bad", BAD_STREAMS)
@pytest.mark.host_only
def test_bad_streams(on: Device, bad: Any) -> None:
    made = DeviceBuffer.to_device(b"abc")
    calls: list[Callable[[], object]] = [
        lambda: DeviceBuffer(size=3, stream=bad),
        lambda: DeviceBuffer.to_device(b"abc", stream=bad),
        lambda: to_device(b"abc", stream=bad),
        lambda: DeviceBuffer.from_buffer(made.buffer, stream=bad),
        lambda: made.copy_to_host(stream=bad),
        lambda: made.copy_from_host(b"a", stream=bad),
        lambda: made.copy_from_device(made, stream=bad),
        lambda: made.tobytes(stream=bad),
        lambda: made.reserve(100, stream=bad),
        lambda: made.resize(100, stream=bad),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="cannot be None" if bad is None else "stream"):
            call()
    assert (made.size, made.capacity(), made.tobytes()) == (3, 3, b"abc")


@pytest.mark.parametrize("data", BYTES)
def test_to_device(on: Device, stream: Stream, data: Any) -> None:
    for make in (DeviceBuffer.to_device, to_device):
        made = make(data, stream)
        stream.synchronize()
        assert bytes(made) == made.tobytes(stream) == b"abc"


def test_to_device_of_nothing(on: Device) -> None:
    assert DeviceBuffer.to_device(b"").tobytes() == b""


@pytest.mark.parametrize("bad", NO_BUFFERS)
@pytest.mark.host_only
def test_to_device_of_no_buffers(on: Device, bad: Any) -> None:
    for call in (DeviceBuffer.to_device, DeviceBuffer(size=9).copy_from_host):
        with pytest.raises(TypeError):
            call(bad)


@pytest.mark.parametrize("bad", NO_BYTES)
@pytest.mark.host_only
def test_to_device_of_no_bytes(on: Device, bad: Any) -> None:
    made = DeviceBuffer.to_device(bytes(9))
    for call in (DeviceBuffer.to_device, made.copy_from_host, made.copy_to_host):
        with pytest.raises(ValueError, match=r"must (hold unsigned bytes|be contiguous)"):
            call(bad)
    assert made.tobytes() == bytes(9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.every_backend
def test_copy_to_host(on: Device, stream: Stream, size: int) -> None:
    data = noise(size)
    made = DeviceBuffer.to_device(data)
    fresh = made.copy_to_host(stream=stream)
    assert isinstance(fresh, np.ndarray)
    assert (fresh.dtype, fresh.shape) == (np.uint8, (size,))
    assert (fresh == data).all()
    longer = bytearray(b"x" * (size + 3))
    assert made.copy_to_host(longer, stream) is longer
    stream.synchronize()
    assert longer == data.tobytes() + b"xxx"


def test_copy_to_host_refuses(on: Device) -> None:
    made = DeviceBuffer.to_device(b"abc")
    with pytest.raises(ValueError, match=r"Argument `ary` is too small\. Need space for 3 bytes"):
        made.copy_to_host(bytearray(2))
    for read_only in (bytes(3), np.frombuffer(bytes(3), np.uint8)):
        with pytest.raises(ValueError, match="read-only"):
            made.copy_to_host(read_only)
        with pytest.raises(BufferError):
            made.copy_to_host(read_only)
    with pytest.raises(TypeError):
        made.copy_to_host("abc")


@pytest.mark.parametrize("data", BYTES)
def test_copy_from_host(on: Device, stream: Stream, data: Any) -> None:
    made = DeviceBuffer.to_device(bytes(10))
    made.copy_from_host(data, stream)
    stream.synchronize()
    assert made.tobytes() == b"abc" + bytes(7)


def test_copy_from_host_of_too_much(on: Device) -> None:
    made = DeviceBuffer.to_device(b"ab")
    made.reserve(100)
    with pytest.raises(ValueError, match=r"Argument `ary` is too large\. Need space for 3 bytes"):
        made.copy_from_host(b"abc")
    assert made.tobytes() == b"ab"


@pytest.mark.every_backend
def test_pageable_memory_may_be_written_at_once(on: Device) -> None:
    """CUDA's driver behaves so on any stream, although its documentation says otherwise."""
    own = Stream()
    data = noise(3_000_000)
    before = data.tobytes()
    made = DeviceBuffer.to_device(data, own)
    data[:] = 0
    assert made.tobytes() == before
    got = bytearray(len(made))
    made.copy_to_host(got, own)
    assert got == before


@pytest.mark.every_backend
def test_pinned_memory_is_copied_in_the_streams_order(on: Device, gate: isthmus.Event) -> None:
    if "host" not in on.kinds:
        pytest.skip(f"{on.filter} offers no host kind")
    own = Stream()
    pinned = Buffer(3, kind="host", queue=own.queue)
    pinned.copy_from(b"abc")
    host, view = np.asarray(pinned), np.asarray(Buffer(3, kind="host", queue=own.queue))
    view[:] = 0
    own.queue.fence(after=gate)
    made = DeviceBuffer.to_device(host, own)
    made.copy_to_host(view, own)
    assert not own.queue.idle
    assert bytes(view) == bytes(3)
    gate.complete()
    own.synchronize()
    assert bytes(view) == b"abc"


@pytest.mark.every_backend
def test_copy_from_device(on: Device, stream: Stream) -> None:
    made = DeviceBuffer.to_device(bytes(10))
    array = isthmus.Array(Buffer(8, device=on), 2, np.float32)
    array.fill(1)
    sources = [DeviceBuffer.to_device(b"abc"), array]
    for source, wanted in zip(sources, (b"abc", np.ones(2, np.float32).tobytes()), strict=True):
        made.copy_from_device(source, stream)
        stream.synchronize()
        assert made.tobytes()[: len(wanted)] == wanted


@pytest.mark.every_backend
def test_a_source_on_a_device_may_go_at_once(on: Device, gate: isthmus.Event) -> None:
    own = Stream()
    made = DeviceBuffer.to_device(bytes(3), own)
    own.queue.fence(after=gate)
    made.copy_from_device(DeviceBuffer.to_device(b"abc"), own)
    others = [DeviceBuffer.to_device(b"xyz") for _ in range(8)]
    gate.complete()
    assert made.tobytes(own) == b"abc"
    del others


class Interface:
    """An array that exposes the given interface entries."""

    def __init__(self, **entries: Any) -> None:
        self.memory = Buffer(64)
        self.__cuda_array_interface__ = {
            "data": (self.memory.ptr, False),
            "shape": (4,),
            "typestr": "<i4",
            "version": 3,
        } | entries


class Dropped(Interface):
    """An interface that counts its destructions."""

    ended = 0

    def __del__(self) -> None:
        Dropped.ended += 1


@pytest.mark.parametrize("version", [0, 1])
def test_copy_from_device_of_rmms_own(on: Device, gate: isthmus.Event, version: int) -> None:
    """The interface of RMM's buffers has version 0. The source is kept alive until it was read."""
    own, before = Stream(), Dropped.ended
    made = DeviceBuffer.to_device(bytes(8), own)
    source = Dropped(shape=(4,), typestr="|u1", strides=None, version=version)
    source.memory.copy_from(b"abcd" * 16)
    own.queue.fence(after=gate)
    made.copy_from_device(source, own)
    del source
    assert Dropped.ended == before
    gate.complete()
    assert made.tobytes(own) == b"abcd" + bytes(4)
    assert until(lambda: Dropped.ended == before + 1)
    made.copy_from_device(Interface(shape=(0,), data=(0, False), version=version))
    with pytest.raises(ValueError, match="this buffer has 8"):
        made.copy_from_device(Interface(version=version))


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (lambda: b"abc", "Expected object to support `__cuda_array_interface__`"),
        (lambda: np.ones(3, np.uint8), "Expected object to support `__cuda_array_interface__`"),
        (lambda: None, "Expected object to support `__cuda_array_interface__`"),
        (lambda: Interface(shape=(2, 2)), "Only 1-D contiguous arrays are supported, got 2-D"),
        (lambda: Interface(strides=(8,)), "contiguous"),
        (lambda: isthmus.Array(Buffer(64), 8, np.float32)[::2], "contiguous"),
        (lambda: Interface(shape=(40,)), "160 bytes, and this buffer has 100"),
        (lambda: DeviceBuffer(size=101), "101 bytes, and this buffer has 100"),
    ],
)
@pytest.mark.host_only
def test_copy_from_device_refuses(on: Device, bad: Callable[[], Any], text: str) -> None:
    made = DeviceBuffer(size=100)
    with pytest.raises(ValueError, match=text):
        made.copy_from_device(bad())


def test_resize_and_reserve(on: Device, stream: Stream) -> None:
    data = noise(1000)
    made = DeviceBuffer.to_device(data)
    address = made.ptr
    made.resize(10, stream)
    assert (made.size, made.capacity(), made.ptr) == (10, 1000, address)
    made.resize(1000, stream)
    assert (made.ptr, made.tobytes()) == (address, data.tobytes())
    made.reserve(500, stream)
    assert (made.size, made.capacity(), made.ptr) == (1000, 1000, address)
    made.reserve(5000, stream)
    assert (made.size, made.capacity()) == (1000, 5000)
    assert made.tobytes(stream) == data.tobytes()
    made.resize(9000, stream)
    assert (made.size, made.capacity()) == (9000, 9000)
    assert made.tobytes(stream)[:1000] == data.tobytes()
    made.resize(0, stream)
    assert (made.size, made.tobytes()) == (0, b"")
    assert len(made.copy_to_host()) == 0


def test_from_nothing_to_something(on: Device, stream: Stream) -> None:
    made = DeviceBuffer()
    made.resize(3, stream)
    made.copy_from_host(b"abc")
    assert made.tobytes() == b"abc"


@pytest.mark.parametrize(("size", "error"), BAD_COUNTS)
@pytest.mark.host_only
def test_bad_new_sizes(on: Device, size: Any, error: type[Exception]) -> None:
    made = DeviceBuffer.to_device(b"abc")
    for call in (made.resize, made.reserve):
        with pytest.raises(error) as told:
            call(size)
        message_has(told, ["new_", size])
    assert (made.capacity(), made.tobytes()) == (3, b"abc")


def test_a_resize_without_memory_changes_nothing(on: Device) -> None:
    limited = mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), 1000)
    made = DeviceBuffer(size=600, mr=limited)
    for call in (made.resize, made.reserve):
        with pytest.raises(MemoryError, match="1000"):
            call(601)
    assert (made.size, made.capacity()) == (600, 600)
    assert limited.get_allocated_bytes() == 600
