# SPDX-License-Identifier: Apache-2.0
"""Pitched copies."""

from __future__ import annotations

import numpy as np
import pytest
from support import filled, message_has, noise

import isthmus
from isthmus import Buffer, Event, Queue

WIDTH, HEIGHT, PITCH = 30, 20, 50
PICTURE = noise(PITCH * HEIGHT).reshape(HEIGHT, PITCH)


@pytest.mark.parametrize("blocking", [True, False])
def test_into_a_buffer(q: Queue, kind: str, blocking: bool) -> None:
    buffer = filled(bytes(64 * HEIGHT), kind=kind, queue=q)
    event = buffer.copy_from_2d(
        PICTURE, WIDTH, HEIGHT, pitch=64, other_pitch=PITCH, other_offset=7, blocking=blocking
    )
    if event is not None:
        event.wait()
    expected = np.zeros((HEIGHT, 64), np.uint8)
    expected[:, :WIDTH] = PICTURE[:, 7 : 7 + WIDTH]
    assert buffer.tobytes() == expected.tobytes()


@pytest.mark.parametrize("blocking", [True, False])
def test_out_of_a_buffer(q: Queue, kind: str, blocking: bool) -> None:
    buffer = filled(PICTURE, kind=kind, queue=q)
    got = np.zeros((HEIGHT, WIDTH + 3), np.uint8)
    event = buffer.copy_to_2d(
        got, WIDTH, HEIGHT, pitch=PITCH, offset=4, other_pitch=WIDTH + 3, other_offset=1,
        blocking=blocking,
    )  # fmt: skip
    if event is not None:
        event.wait()
    expected = np.zeros_like(got)
    expected[:, 1 : 1 + WIDTH] = PICTURE[:, 4 : 4 + WIDTH]
    assert (got == expected).all()


def test_between_buffers(q: Queue, kind: str, gate: Event) -> None:
    source, target = filled(PICTURE, kind=kind, queue=q), Buffer(WIDTH * HEIGHT, kind=kind, queue=q)
    event = q.copy_2d(
        target, source, WIDTH, HEIGHT, dst_pitch=WIDTH, src_pitch=PITCH, after=[gate],
        blocking=False,
    )  # fmt: skip
    assert event is not None
    assert not event.done
    gate.complete()
    event.wait()
    assert target.tobytes() == PICTURE[:, :WIDTH].tobytes()


def test_between_devices() -> None:
    source = filled(PICTURE, kind="device", queue=Queue("opencl"))
    target = Buffer(WIDTH * HEIGHT, kind="device", queue=Queue("host"))
    target.copy_from_2d(source, WIDTH, HEIGHT, other_pitch=PITCH)
    assert target.tobytes() == PICTURE[:, :WIDTH].tobytes()


def test_without_pitches_rows_follow_each_other(q: Queue, kind: str) -> None:
    buffer = Buffer(PICTURE.nbytes, kind=kind, queue=q)
    buffer.copy_from_2d(PICTURE, PITCH, HEIGHT)
    assert buffer.tobytes() == PICTURE.tobytes()


@pytest.mark.parametrize(("width", "height"), [(0, 5), (5, 0), (0, 0)])
def test_of_nothing(q: Queue, kind: str, width: int, height: int) -> None:
    buffer = filled(bytes(10), kind=kind, queue=q)
    buffer.copy_from_2d(bytes(10), width, height)
    assert buffer.tobytes() == bytes(10)


def test_one_row_ends_where_it_ends(q: Queue, kind: str) -> None:
    buffer = filled(bytes(130), kind=kind, queue=q)
    buffer.copy_from_2d(bytes(range(60)), 30, 2, pitch=100)
    assert buffer.tobytes()[100:] == bytes(range(30, 60)), "the last row needs no whole pitch"


@pytest.mark.parametrize("side", ["pitch", "other_pitch"])
def test_a_pitch_below_the_width(q: Queue, side: str) -> None:
    buffer = Buffer(1000, kind=q.device.kinds[0], queue=q)
    with pytest.raises(ValueError) as error:
        buffer.copy_from_2d(bytes(1000), 20, 3, **{side: 19})
    message_has(error, [19, 20])


@pytest.mark.parametrize(
    ("width", "height", "pitch"), [(20, 51, 20), (20, 50, 21), (1001, 1, 1001), (1, 1001, 1)]
)
def test_past_the_end(q: Queue, kind: str, width: int, height: int, pitch: int) -> None:
    buffer = filled(bytes(1000), kind=kind, queue=q)
    with pytest.raises(isthmus.OutOfRangeError, match="1000"):
        buffer.copy_from_2d(bytes(5000), width, height, pitch=pitch)
    with pytest.raises(isthmus.OutOfRangeError, match="1000"):
        buffer.copy_to_2d(bytearray(5000), width, height, pitch=pitch)


@pytest.mark.parametrize(("height", "pitch"), [(2**40, 2**40), (2**62, 4), (2**32, 2**31)])
def test_more_than_an_address_can_span(q: Queue, height: int, pitch: int) -> None:
    buffer = Buffer(1000, kind=q.device.kinds[0], queue=q)
    with pytest.raises(isthmus.OutOfRangeError):
        buffer.copy_from_2d(bytes(1000), 1, height, pitch=pitch)
