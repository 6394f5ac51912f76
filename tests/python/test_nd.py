# SPDX-License-Identifier: Apache-2.0
"""Copies of arrays with strides: arguments, and the strides of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import filled, message_has, noise

import isthmus
from isthmus import Buffer, Event, InvalidArgumentError, OutOfRangeError, Queue, copy_nd

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.sim_and_host
CUBE = noise(24 * 20 * 16 * 4).view(np.float32).reshape(24, 20, 16)
VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "whole": lambda cube: cube,
    "turned": lambda cube: cube.transpose(2, 0, 1),
    "fortran": lambda cube: cube.T,
    "every_second": lambda cube: cube[::2, 1:, ::3],
    "column": lambda cube: cube[:, 3, 5],
    "box": lambda cube: cube[3:9, 2:8, 1:15],
    "one": lambda cube: cube[1:2, 3:4, 5:6],
    "none": lambda cube: cube[5:5],
    "scalar": lambda cube: cube[1, 2, 3, ...],
}


@pytest.fixture(params=VIEWS.values(), ids=list(VIEWS))
def cut(request: pytest.FixtureRequest) -> Callable[[np.ndarray], np.ndarray]:
    view: Callable[[np.ndarray], np.ndarray] = request.param
    return view


@pytest.mark.parametrize("blocking", [True, False])
def test_there_and_back(
    q: Queue, kind: str, cut: Callable[[np.ndarray], np.ndarray], blocking: bool
) -> None:
    view = cut(CUBE)
    buffer = filled(bytes(view.nbytes + 1), kind=kind, queue=q)
    sent = copy_nd(buffer, view, dst_offset=1, blocking=blocking)
    if sent is not None:
        sent.wait()
    assert buffer.tobytes()[1:] == view.tobytes()
    back = np.zeros_like(CUBE)
    got = copy_nd(cut(back), buffer, src_offset=1, blocking=blocking)
    if got is not None:
        got.wait()
    expected = np.zeros_like(CUBE)
    cut(expected)[...] = view
    assert back.tobytes() == expected.tobytes()


def test_between_arrays() -> None:
    target = np.zeros((16, 24, 20), np.float32)
    copy_nd(target, CUBE.transpose(2, 0, 1))
    assert target.tobytes() == CUBE.transpose(2, 0, 1).tobytes()
    raw = bytearray(24 * 20 * 4)
    copy_nd(raw, CUBE[:, :, 0])
    assert bytes(raw) == CUBE[:, :, 0].tobytes()


@pytest.mark.every_backend
@pytest.mark.second_driver
def test_between_buffers(q: Queue, gate: Event) -> None:
    source = filled(CUBE, kind="device", queue=q)
    target = filled(bytes(CUBE.nbytes), kind="device", queue=q)
    strides = (4, 24 * 4, 24 * 20 * 4)
    event = copy_nd(
        target, source, shape=CUBE.shape, itemsize=4, dst_strides=strides, after=gate,
        blocking=False,
    )  # fmt: skip
    assert event is not None
    assert not event.done
    gate.complete()
    event.wait()
    assert target.tobytes() == CUBE.T.tobytes()


def test_repeated_rows() -> None:
    target = Buffer(5 * CUBE[0].nbytes, queue=Queue("host"))
    copy_nd(target, np.broadcast_to(CUBE[0], (5, 20, 16)))
    assert target.tobytes() == CUBE[0].tobytes() * 5
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(50), 7)
    copy_nd(target, windows)
    assert target.tobytes()[: windows.nbytes] == windows.tobytes()


def test_what_it_keeps(q: Queue, gate: Event) -> None:
    view = CUBE[::2].copy()[:, ::2]
    expected = view.tobytes()
    buffer = Buffer(len(expected), kind="device", queue=q)
    event = copy_nd(buffer, view, after=gate, blocking=False)
    del view
    gate.complete()
    assert event is not None
    event.wait()
    assert buffer.tobytes() == expected


@pytest.mark.parametrize(
    ("arguments", "options", "error", "parts"),
    [
        ((CUBE[:, ::-1],), {}, ValueError, ["dimension 1", "negative stride", "-64"]),
        ((CUBE.astype(object),), {}, TypeError, ["references"]),
        ((CUBE,), {"shape": (4, 4)}, OutOfRangeError, ["destination", "10"]),
        ((CUBE,), {"itemsize": 4}, ValueError, ["itemsize"]),
        ((CUBE,), {"shape": 5}, TypeError, []),
        ((CUBE,), {"shape": (-1,)}, ValueError, ["-1"]),
        ((CUBE,), {"shape": (2, 2.0)}, TypeError, ["extent"]),
        ((CUBE,), {"shape": (1 << 62, 1 << 62)}, OutOfRangeError, []),
        ((CUBE,), {"shape": (2,), "src_strides": (1 << 62, 4)}, ValueError, ["1 dim", "not 2"]),
        ((CUBE,), {"shape": (9,), "src_strides": (1 << 62,)}, OutOfRangeError, ["source"]),
        ((CUBE,), {"shape": (5,), "dst_strides": (0,)}, InvalidArgumentError, ["overlap"]),
        ((CUBE,), {"shape": (1,) * 9}, InvalidArgumentError, ["9 dimensions", "8"]),
        ((CUBE,), {"shape": (5,), "dst_offset": 6}, OutOfRangeError, ["offset 6"]),
        ((CUBE,), {"shape": (5,), "src_offset": -6}, ValueError, ["source offset"]),
        ((5,), {}, TypeError, ["source", "int"]),
        ((Buffer(10, queue=Queue("host")),), {"blocking": 2}, TypeError, ["blocking"]),
    ],
)
def test_bad_input(
    arguments: tuple[object], options: dict[str, object], error: type[Exception], parts: list[str]
) -> None:
    target = np.zeros(10, np.uint8)
    with pytest.raises(error) as told:
        copy_nd(target, *arguments, **options)  # type: ignore[arg-type]
    message_has(told, parts)
    assert not target.any()


def test_bad_places() -> None:
    with pytest.raises(ValueError, match="differ in shape or element size"):
        copy_nd(np.zeros((2, 3)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"neither .* has a shape"):
        copy_nd(Buffer(10, queue=Queue("host")), Buffer(10, queue=Queue("host")))
    with pytest.raises(isthmus.ReadOnlyError):
        copy_nd(CUBE.tobytes(), CUBE)
    frozen = np.zeros((4, 4))
    frozen.flags.writeable = False
    with pytest.raises(isthmus.ReadOnlyError):
        copy_nd(frozen[:, ::2], np.ones((4, 2)))
