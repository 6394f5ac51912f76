# SPDX-License-Identifier: Apache-2.0
"""Slices: views of a buffer that keep it alive and allocate nothing."""

from __future__ import annotations

import gc
import weakref

import pytest
from support import filled, noise

import isthmus
from isthmus import Buffer, Queue

pytestmark = pytest.mark.sim_and_host
DATA = noise(1000)

SLICES = [
    slice(100, 200),
    slice(None),
    slice(None, 10),
    slice(990, None),
    slice(-10, None),
    slice(-200, -100),
    slice(5, 5),
    slice(10, 5),
    slice(2000, 3000),
    slice(-5000, 5000),
    slice(0, 1),
    slice(3, 77, 1),
]


@pytest.mark.parametrize("part", SLICES, ids=str)
def test_as_pythons_own(q: Queue, kind: str, part: slice) -> None:
    base = filled(DATA, kind=kind, queue=q)
    view = base[part]
    assert view.tobytes() == DATA[part].tobytes()
    assert len(view) == len(DATA[part])
    assert view.base is base
    assert (view.kind, view.queue, view.device) == (base.kind, base.queue, base.device)
    if view.nbytes:
        assert view.ptr == base.ptr + part.indices(1000)[0]


def test_keeps_the_base_alive(q: Queue, kind: str) -> None:
    base = filled(DATA, kind=kind, queue=q)
    gone = weakref.ref(base)
    view = base[100:200]
    del base
    gc.collect()
    assert gone() is not None
    assert view.tobytes() == DATA[100:200].tobytes()
    del view
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("step", [2, -1, 1000])
def test_steps_are_refused(q: Queue, step: int) -> None:
    buffer = Buffer(10, kind=q.device.kinds[0], queue=q)
    with pytest.raises(ValueError, match=f"step 1, not {step}"):
        buffer[::step]


@pytest.mark.parametrize("key", [0, -1, "a", None, (slice(1), slice(1)), ...])
def test_other_keys_are_refused(q: Queue, key: object) -> None:
    buffer = Buffer(10, kind=q.device.kinds[0], queue=q)
    with pytest.raises(TypeError, match="slices"):
        buffer[key]  # type: ignore[index]


def test_no_items_are_set(q: Queue) -> None:
    buffer = Buffer(10, kind=q.device.kinds[0], queue=q)
    with pytest.raises(TypeError):
        buffer[0:2] = b"ab"  # type: ignore[index]


def test_freeing_a_slice_affects_it_only(q: Queue, kind: str) -> None:
    base = filled(DATA, kind=kind, queue=q)
    view = base[10:20]
    view.free()
    assert view.freed
    assert not base.freed
    assert base.tobytes() == DATA.tobytes()
    with pytest.raises(isthmus.ClosedError):
        view.tobytes()
