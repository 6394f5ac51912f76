# SPDX-License-Identifier: Apache-2.0
"""Copies of many ranges: arguments, and the objects that are ranges."""

from __future__ import annotations

import numpy as np
import pytest
from support import filled, message_has, noise, sim

import isthmus
import isthmus.testing
from isthmus import Buffer, Event, InvalidArgumentError, OutOfRangeError, Queue, copy_ranges

NBYTES = 50_000
DATA = noise(NBYTES)
# Disjoint on both sides, in no order.
RANGES = np.array([(20_000, 5, 300), (10, 40_000, 4096), (9_000, 8_001, 1), (30_003, 400, 7_777)])


def modelled(ranges: np.ndarray) -> np.ndarray:
    expected = np.zeros(NBYTES, np.uint8)
    for to, start, nbytes in ranges:
        expected[to : to + nbytes] = DATA[start : start + nbytes]
    return expected


@pytest.mark.parametrize("blocking", [True, False])
def test_into_and_out_of_a_buffer(q: Queue, kind: str, blocking: bool) -> None:
    buffer = filled(bytes(NBYTES), kind=kind, queue=q)
    got = np.zeros(NBYTES, np.uint8)
    for event in (
        copy_ranges(buffer, DATA, RANGES, blocking=blocking),
        copy_ranges(got, buffer, RANGES[:, [0, 0, 2]], queue=q, blocking=blocking),
    ):
        assert (event is None) == blocking
        if event is not None:
            event.wait()
    assert buffer.tobytes() == got.tobytes() == modelled(RANGES).tobytes()


def test_between_buffers(q: Queue, kind: str, gate: Event) -> None:
    source, target = filled(DATA, kind=kind, queue=q), filled(bytes(NBYTES), kind=kind, queue=q)
    ranges = RANGES.copy()
    event = copy_ranges(target, source, ranges, after=gate, blocking=False)
    ranges[:] = 0  # the caller may change them again
    assert event is not None
    assert not event.done
    gate.complete()
    event.wait()
    assert target.tobytes() == modelled(RANGES).tobytes()


def test_pages_of_one_length(q: Queue) -> None:
    pages = np.random.default_rng(3).permutation(12)[:8]
    ranges = np.stack([pages[::-1] * 4096, pages * 4096], axis=1)
    target = filled(bytes(NBYTES), kind="device", queue=q)
    copy_ranges(target, DATA, ranges, nbytes=4096)
    want = modelled(np.column_stack([ranges, np.full(8, 4096)]))
    assert target.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_of_any_width(dtype: type) -> None:
    got = np.zeros(NBYTES, np.uint8)
    ranges = (RANGES // 2).astype(dtype)
    copy_ranges(got, DATA, ranges)
    assert (got == modelled(RANGES // 2)).all()
    got[:] = 0
    copy_ranges(got, DATA, np.asfortranarray(ranges)[::-1])
    assert (got == modelled(RANGES // 2)).all()


@pytest.mark.parametrize(
    "ranges",
    [
        [tuple(map(int, row)) for row in RANGES],
        RANGES.tolist(),
        iter(RANGES.tolist()),
        list(RANGES),
    ],
    ids=["tuples", "lists", "iterator", "rows"],
)
def test_sequences(ranges: object) -> None:
    got = np.zeros(NBYTES, np.uint8)
    copy_ranges(got, DATA, ranges)
    assert (got == modelled(RANGES)).all()


def test_none() -> None:
    target = np.ones(10, np.uint8)
    copy_ranges(target, DATA, [])
    copy_ranges(target, DATA, np.empty((0, 3), np.int64))
    event = copy_ranges(target, DATA, np.empty((0, 2), np.int64), nbytes=5, blocking=False)
    assert event is not None
    event.wait()
    assert (target == 1).all()


def test_one_driver_call() -> None:
    device = sim()
    target = Buffer(NBYTES, queue=Queue(device))
    copy_ranges(target, DATA, RANGES)
    assert isthmus.testing.sim_calls(device, "copy_ranges") == 1
    assert isthmus.testing.sim_calls(device, "copy") == 0


@pytest.mark.parametrize(
    ("ranges", "options", "error", "parts"),
    [
        ([(0, 0, 5), (0, NBYTES - 3, 4)], {}, OutOfRangeError, ["range 1", "source", "50000"]),
        ([(96, 0, 5)], {}, OutOfRangeError, ["range 0", "destination", "100"]),
        ([(0, 0, 5), (4, 50, 5)], {}, InvalidArgumentError, ["ranges 0 and 1 overlap"]),
        (np.array([(0, -1, 5)]), {}, ValueError, ["range 0", "negative", "column 1, -1"]),
        ([(0, 1, 5), (0, -1, 5)], {}, ValueError, ["source offset of range 1", "-1"]),
        ([(0, 1 << 63, 5)], {}, OutOfRangeError, ["source offset of range 0"]),
        (np.array([(0, 0)]), {}, ValueError, ["3"]),
        (np.array([(0, 0, 5)]), {"nbytes": 5}, ValueError, ["3 columns", "common nbytes"]),
        (np.array([0, 0, 5]), {}, ValueError, ["columns"]),
        ([(0, 0)], {}, ValueError, ["columns"]),
        (np.array([(0.0, 0, 5)]), {}, TypeError, ["integers", "'d'"]),
        (np.array([(0, 0, 5)], ">i8"), {}, TypeError, ["integers", ">"]),
        ([(0, 0, 5.0)], {}, TypeError, ["nbytes"]),
        ([5], {}, TypeError, []),
        (5, {}, TypeError, ["ranges", "int"]),
        (None, {}, TypeError, ["ranges", "None"]),
        ([(0, 0)], {"nbytes": -1}, ValueError, ["nbytes"]),
        ([(0, 0)], {"nbytes": 1.5}, TypeError, ["nbytes"]),
    ],
)
def test_bad_ranges(
    ranges: object, options: dict[str, object], error: type[Exception], parts: list[str]
) -> None:
    target = np.zeros(100, np.uint8)
    with pytest.raises(error) as told:
        copy_ranges(target, DATA, ranges, **options)  # type: ignore[arg-type]
    message_has(told, parts)
    assert not target.any()


def test_bad_places() -> None:
    with pytest.raises(isthmus.ReadOnlyError):
        copy_ranges(bytes(10), DATA, [(0, 0, 1)])
    with pytest.raises(TypeError, match="source"):
        copy_ranges(bytearray(10), 5, [(0, 0, 1)])
    buffer = Buffer(100, queue=Queue("host"))
    with pytest.raises(InvalidArgumentError, match="overlap"):
        copy_ranges(buffer, buffer, [(0, 50, 20), (60, 80, 10)])
