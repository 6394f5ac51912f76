# SPDX-License-Identifier: Apache-2.0
"""Copies: arguments, and the host objects that they accept."""

from __future__ import annotations

import array
import mmap

import numpy as np
import pytest
from support import filled, noise

import isthmus
from isthmus import Buffer, Context, Event, Queue

pytestmark = pytest.mark.sim_and_host
DATA = noise(10_000)


@pytest.mark.every_backend
@pytest.mark.second_driver
def test_to_and_from_the_host(q: Queue, kind: str) -> None:
    buffer = filled(DATA, kind=kind, queue=q)
    buffer.copy_from(DATA[::-1].copy(), nbytes=4096, offset=33, src_offset=2)
    expected = DATA.copy()
    expected[33:4129] = DATA[::-1][2:4098]
    assert buffer.tobytes() == expected.tobytes()
    got = bytearray(10_100)
    buffer.copy_to(got, nbytes=4096, offset=33, dst_offset=5)
    assert got == bytes(5) + expected[33:4129].tobytes() + bytes(5999)


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.every_backend
@pytest.mark.second_driver
def test_between_buffers(q: Queue, kind: str, blocking: bool) -> None:
    source = filled(DATA, kind=kind, queue=q)
    target = filled(DATA[::-1].copy(), kind=kind, queue=q)
    event = target.copy_from(source, nbytes=5000, offset=17, src_offset=1000, blocking=blocking)
    assert (event is None) == blocking
    if event is not None:
        event.wait()
    expected = DATA[::-1].copy()
    expected[17:5017] = DATA[1000:6000]
    assert target.tobytes() == expected.tobytes()


@pytest.mark.every_backend
@pytest.mark.second_driver
def test_between_contexts_in_order(q: Queue, kind: str, gate: Event) -> None:
    other = Queue(Context(q.device))
    source, target = (Buffer(10_000, kind=kind, queue=queue) for queue in (q, other))
    source.copy_from(DATA, after=[gate], blocking=False)
    event = target.copy_from(source, blocking=False)
    source.fill(0, blocking=False)
    assert event is not None
    gate.complete()
    event.wait()
    assert target.tobytes() == DATA.tobytes(), "the later fill waits for the copy"
    assert source.tobytes() == bytes(10_000)


DTYPES = ["u1", "i1", "<u2", ">i4", "f4", "f8", "c16", "?", "M8[ns]", "m8[s]", "S5", "U3"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_dtype(q: Queue, kind: str, dtype: str) -> None:
    source = np.frombuffer(DATA.tobytes()[:9600], np.uint8)
    if dtype == "?":
        source = source & 1
    typed = source.view("u1")[: 9600 // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize]
    typed = typed.view(dtype)
    buffer = Buffer(typed.nbytes, kind=kind, queue=q)
    buffer.copy_from(typed)
    got = np.zeros_like(typed)
    buffer.copy_to(got)
    assert got.tobytes() == typed.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 4), (2, 0, 3), (2, 3, 4, 5)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_shape(q: Queue, kind: str, shape: tuple[int, ...], order: str) -> None:
    source = np.arange(np.prod(shape, dtype=int), dtype="f4").reshape(shape)
    source = np.asarray(source, order=order)  # type: ignore[call-overload]
    buffer = Buffer(source.nbytes, kind=kind, queue=q)
    buffer.copy_from(source)
    assert buffer.tobytes() == source.tobytes("A"), "the bytes as they lie in memory"
    got = np.zeros_like(source)
    buffer.copy_to(got)
    assert np.array_equal(got, source)


def test_any_object_with_bytes(q: Queue, kind: str) -> None:
    text = b"some bytes that go in and out!!!"
    mapped = mmap.mmap(-1, len(text))
    mapped[:] = text
    buffer = Buffer(len(text), kind=kind, queue=q)
    for source in (text, bytearray(text), memoryview(text), array.array("I", text), mapped):
        buffer.fill(0)
        buffer.copy_from(source)
        assert buffer.tobytes() == text
    mapped[:] = bytes(len(text))
    for target in (
        bytearray(len(text)),
        memoryview(bytearray(len(text))),
        array.array("d", bytes(len(text))),
        mapped,
    ):
        buffer.copy_to(target)
        assert bytes(memoryview(target).cast("B")) == text  # type: ignore[arg-type]


def test_read_only_sources(q: Queue, kind: str) -> None:
    source = DATA.copy()
    source.flags.writeable = False
    assert filled(source, kind=kind, queue=q).tobytes() == DATA.tobytes()


def test_shorter_and_larger_objects(q: Queue, kind: str) -> None:
    buffer = filled(bytes(100), kind=kind, queue=q)
    buffer.copy_from(b"abc")
    assert buffer.tobytes() == b"abc" + bytes(97)
    got = bytearray(b"x" * 200)
    buffer.copy_to(got)
    assert got == b"abc" + bytes(97) + b"x" * 100


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a[::2],
        lambda a: a[::-1],
        lambda a: a.reshape(100, 100)[:, :50],
        lambda a: memoryview(a)[::3],
        lambda a: a.reshape(10, 10, 100).transpose(1, 0, 2),
    ],
)
def test_sources_with_gaps(q: Queue, kind: str, make) -> None:  # type: ignore[no-untyped-def]
    buffer = Buffer(10_000, kind=kind, queue=q)
    gappy = make(DATA.copy())
    for copy in (buffer.copy_from, buffer.copy_to):
        with pytest.raises(ValueError, match="ascontiguousarray"):
            copy(gappy)


@pytest.mark.parametrize("wrong", ["text", None, [1, 2], 5, ...], ids=repr)
def test_objects_without_bytes(q: Queue, wrong: object) -> None:
    buffer = Buffer(100, kind=q.device.kinds[0], queue=q)
    for copy in (buffer.copy_from, buffer.copy_to):
        with pytest.raises(TypeError, match="buffer protocol"):
            copy(wrong)


def test_arrays_of_objects(q: Queue) -> None:
    buffer = Buffer(100, kind=q.device.kinds[0], queue=q)
    with pytest.raises(TypeError, match="numeric dtype"):
        buffer.copy_from(np.array([1, "a"], dtype=object))


@pytest.mark.every_backend
@pytest.mark.second_driver
def test_the_queue_of_a_copy(dev: isthmus.Device, q: Queue, kind: str, gate: Event) -> None:
    other = Queue(dev)
    buffer = filled(DATA, kind=kind, queue=q)
    held = other.fence([gate])
    event = buffer.copy_to(bytearray(10_000), queue=other, blocking=False)
    assert event is not None
    assert not event.done, "it stands behind what the named queue has"
    gate.complete()
    event.wait()
    held.wait()


def test_queue_copies(q: Queue, kind: str) -> None:
    a, b = filled(DATA, kind=kind, queue=q), Buffer(10_000, kind=kind, queue=q)
    q.copy(b, a)
    assert b.tobytes() == DATA.tobytes()
    q.copy(b, bytes(10), 5, dst_offset=100, src_offset=5)
    expected = DATA.copy()
    expected[100:105] = 0
    got = np.empty_like(DATA)
    event = q.copy(got, b, blocking=False)
    assert event is not None
    event.wait()
    assert (got == expected).all()


def test_dpctls_names(q: Queue, kind: str) -> None:
    buffer, got = Buffer(10_000, kind=kind, queue=q), np.zeros_like(DATA)
    q.memcpy(buffer, DATA, 10_000)
    event = q.memcpy_async(got, buffer, 10_000, [q.fence()])
    event.wait()
    assert (got == DATA).all()
    with pytest.raises(isthmus.OutOfRangeError):
        q.memcpy(got, buffer, 10_001)
    with pytest.raises(isthmus.OutOfRangeError):
        q.memcpy(bytearray(10), buffer, 11)


def test_host_to_host_on_a_queue(q: Queue) -> None:
    got = bytearray(4)
    q.copy(got, b"abcd")
    assert got == b"abcd"


def test_to_numpy_is_fresh(q: Queue, kind: str) -> None:
    for nbytes in (0, 1, 10_000, 3_000_000):
        data = noise(nbytes)
        buffer = filled(data, kind=kind, queue=q)
        one, other = buffer.to_numpy(), buffer.to_numpy()
        one[:] = 0
        assert other.dtype == np.uint8
        assert (other == data).all()
        assert other.flags.writeable
        assert bytes(buffer) == data.tobytes()
