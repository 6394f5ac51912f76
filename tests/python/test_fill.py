# SPDX-License-Identifier: Apache-2.0
"""Fills, prefetch and advice: arguments, and the values that are patterns."""

from __future__ import annotations

import numpy as np
import pytest
from support import filled, message_has, noise

import isthmus
from isthmus import Buffer, Queue

pytestmark = pytest.mark.sim_and_host


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.every_backend
@pytest.mark.second_driver
def test_patterns(q: Queue, kind: str, size: int, blocking: bool) -> None:
    pattern, data = bytes(range(1, size + 1)), noise(1000)
    buffer = filled(data, kind=kind, queue=q)
    event = buffer.fill(pattern, offset=3, nbytes=size * 5, blocking=blocking)
    assert (event is None) == blocking
    if event is not None:
        event.wait()
    buffer[501:533].fill(pattern)
    expected = bytearray(data.tobytes())
    expected[3 : 3 + size * 5] = pattern * 5
    expected[501:533] = pattern * (32 // size)
    assert buffer.tobytes() == expected


@pytest.mark.parametrize("value", [0, 1, 127, 128, 255, True, np.uint8(200), np.int64(3)])
def test_bytes(q: Queue, kind: str, value: int) -> None:
    buffer = filled(noise(100), kind=kind, queue=q)
    buffer.fill(value)
    assert buffer.tobytes() == bytes([int(value)]) * 100


@pytest.mark.parametrize("value", [np.float32(1.5), np.float64(-2), np.complex128(1 + 2j)])
def test_scalars_of_numpy(q: Queue, kind: str, value: np.generic) -> None:
    buffer = Buffer(160, kind=kind, queue=q)
    buffer.fill(value)
    assert (buffer.to_numpy().view(value.dtype) == value).all()


def test_other_objects_with_bytes(q: Queue) -> None:
    buffer = Buffer(16, kind=q.device.kinds[0], queue=q)
    for pattern in (bytearray(b"ab"), memoryview(b"ab"), np.frombuffer(b"ab", np.uint8)):
        buffer.fill(0)
        buffer.fill(pattern)
        assert buffer.tobytes() == b"ab" * 8


def test_nothing(q: Queue, kind: str) -> None:
    Buffer(0, kind=kind, queue=q).fill(1)
    buffer = filled(bytes(10), kind=kind, queue=q)
    buffer.fill(1, nbytes=0)
    buffer.fill(1, offset=10)
    assert buffer.tobytes() == bytes(10)


@pytest.mark.parametrize("value", [-1, 256, 1000, 2**64, -(2**64)])
def test_numbers_that_are_no_byte(q: Queue, value: int) -> None:
    buffer = Buffer(16, kind=q.device.kinds[0], queue=q)
    with pytest.raises(ValueError) as error:
        buffer.fill(value)
    message_has(error, [value, 255])


@pytest.mark.parametrize("size", [0, 3, 5, 12, 32])
def test_patterns_of_a_wrong_size(q: Queue, size: int) -> None:
    buffer = Buffer(480, kind=q.device.kinds[0], queue=q)
    with pytest.raises(ValueError) as error:
        buffer.fill(bytes(size))
    message_has(error, [size, "1, 2, 4, 8"])


@pytest.mark.parametrize("value", ["a", None, 1.5, [1]])
def test_values_of_a_wrong_type(q: Queue, value: object) -> None:
    with pytest.raises(TypeError):
        Buffer(16, kind=q.device.kinds[0], queue=q).fill(value)


def test_on_the_queue(q: Queue, kind: str) -> None:
    buffer = filled(bytes(16), kind=kind, queue=q)
    q.fill(buffer, b"ab", offset=2, nbytes=4)
    assert buffer.tobytes() == b"\0\0abab" + bytes(10)


@pytest.mark.every_backend
@pytest.mark.second_driver
def test_prefetch(q: Queue, kind: str) -> None:
    data = noise(8192)
    buffer = filled(data, kind=kind, queue=q)
    if "prefetch" not in q.device.capabilities:
        with pytest.raises(isthmus.UnsupportedError, match="prefetch"):
            buffer.prefetch()
        return
    if kind == "shared":
        buffer.prefetch()
        buffer.prefetch(offset=100, nbytes=1000, to_host=True)
        event = buffer.prefetch(blocking=False)
        assert event is not None
        event.wait()
        q.prefetch(buffer)
        q.prefetch(buffer, 1 << 40)
    assert buffer.tobytes() == data.tobytes()


@pytest.mark.every_backend
@pytest.mark.second_driver
def test_advise(q: Queue, kind: str) -> None:
    buffer = filled(noise(8192), kind=kind, queue=q)
    if "advise" not in q.device.capabilities:
        with pytest.raises(isthmus.UnsupportedError, match="advice"):
            buffer.advise(0)
        return
    buffer.advise(0)
    q.mem_advise(buffer, 0, 1)
    with pytest.raises(isthmus.InvalidArgumentError):
        buffer.advise(2**32)
