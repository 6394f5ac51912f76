# SPDX-License-Identifier: Apache-2.0
"""Pitched copies: arguments."""

from __future__ import annotations

import numpy as np
import pytest
from support import filled, noise

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


def test_without_pitches_rows_follow_each_other(q: Queue, kind: str) -> None:
    buffer = Buffer(PICTURE.nbytes, kind=kind, queue=q)
    buffer.copy_from_2d(PICTURE, PITCH, HEIGHT)
    assert buffer.tobytes() == PICTURE.tobytes()
