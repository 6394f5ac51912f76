# SPDX-License-Identifier: Apache-2.0
"""How arrays print: like equal NumPy arrays, copying no more than the elements shown."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from array_support import WHERE
from hypothesis import given
from hypothesis import strategies as st
from support import sim

import isthmus
from isthmus import Array, Event, Queue, _core, _printing

pytestmark = pytest.mark.sim_and_host


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size in bytes of each host copy that printing made."""
    sizes: list[int] = []
    copy_out = _printing._on_host

    def counted(array: Array, deadline: float | None) -> np.ndarray:
        sizes.append(array.nbytes)
        return copy_out(array, deadline)

    monkeypatch.setattr(_printing, "_on_host", counted)
    return sizes


@pytest.mark.every_backend
def test_as_numpy_prints_them(q: Queue, kind: str) -> None:
    shapes: list[tuple[int, ...]] = [(), (1,), (5,), (3, 4), (2, 3, 4), (0,), (2, 0, 3)]
    types = ["?", "i1", "u8", "f2", "f4", "f8", "g", "F", "D", "G"]
    for shape, dtype in itertools.product(shapes, types):
        model = (np.arange(np.prod(shape, dtype=int)) % 7).astype(dtype).reshape(shape)
        made = isthmus.asarray(model, kind=kind, queue=q)
        assert str(made) == str(model)
        for part in (kind, str(shape), q.device.filter):
            assert part in repr(made)


@given(data=st.data())
def test_large_ones_as_numpy_does(data: st.DataObject) -> None:
    """Any shape, with print options of the caller: the text equals that of the complete array."""
    shape = tuple(data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=4)))
    edge = data.draw(st.integers(1, 4))
    threshold = data.draw(st.sampled_from([0, 5, 50, 1000]))
    model = np.random.default_rng(3).normal(size=shape) * 10.0 ** np.random.default_rng(4).integers(
        -3, 3, size=shape
    )
    queue, kind = data.draw(WHERE)
    made = isthmus.asarray(model, kind=kind, queue=queue)
    with np.printoptions(edgeitems=edge, threshold=threshold, precision=5):
        assert str(made) == str(model)
        assert str(made[::2]) == str(model[::2])
        assert str(made[::-1].T) == str(model[::-1].T)


def test_only_shown_elements_are_copied(moved: list[int]) -> None:
    device = sim(capacity="1GiB")
    large = isthmus.empty((1 << 12, 1 << 14), device=device)  # 256 MiB
    large[:3] = 1
    began = _core.sim_state(device)[0]
    assert str(large).startswith("[[1. 1. 1. ... ")
    assert (len(moved), sum(moved)) == (4, 4 * 9 * 4)
    took = _core.sim_state(device)[0] - began
    large[:2048].copy_to(np.empty((2048, 1 << 14), np.float32))
    assert took < (_core.sim_state(device)[0] - began - took) / 100, "the device's own time"
    moved.clear()
    str(isthmus.zeros(1 << 20, device=device))
    str(isthmus.ones((10, 10), device=device))
    assert moved == [12, 12, 400]


def test_the_whole_where_it_is_small_enough(q: Queue, kind: str) -> None:
    made = isthmus.asarray(np.arange(1000), kind=kind, queue=q)
    assert "..." not in str(made)
    assert "..." in str(isthmus.asarray(np.arange(1001), kind=kind, queue=q))


def test_repr(q: Queue, kind: str) -> None:
    made = isthmus.full((2, 3), 7, "int16", kind=kind, queue=q)
    assert repr(made) == (
        f"<isthmus.Array {kind} (2, 3) int16, 12 bytes on {q.device.filter}\n[[7 7 7]\n [7 7 7]]>"
    )
    assert "strides (6, 4)" in repr(made[:, ::2])
    assert repr(made[:0]) == f"<isthmus.Array {kind} (0, 3) int16, 0 bytes on {q.device.filter}>"
    made.free()
    assert (
        repr(made) == f"<isthmus.Array {kind} (2, 3) int16, 12 bytes, freed, on {q.device.filter}>"
    )
    with pytest.raises(isthmus.ClosedError):
        str(made)


def test_html(q: Queue, kind: str) -> None:
    made = isthmus.ones((300, 1000), kind=kind, queue=q)
    told = made._repr_html_()
    for part in ("(300, 1000)", "float32", kind, q.device.filter, "1.1 MiB (1200000 bytes)", "..."):
        assert part in told
    made.free()
    assert "freed" in made._repr_html_()
    assert "5 bytes" in isthmus.ones(5, "u1", device="host")._repr_html_()


def test_bfloat16_as_float32(q: Queue, kind: str) -> None:
    model = np.array([[1, 2.5], [-3, 1000]], np.float32)
    made = isthmus.asarray(model, "bfloat16", kind=kind, queue=q)
    assert str(made) == str(model)
    assert str(made[::-1, ::-1]) == str(model[::-1, ::-1])
    assert "bfloat16" in repr(made)


def test_repr_of_one_that_work_is_pending_on(
    q: Queue, kind: str, gate: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_printing, "MAX_WAIT_SECONDS", 0.01)
    made = isthmus.zeros(3, kind=kind, queue=q)
    made.fill(1, after=gate, blocking=False)
    assert "work on it has not completed" in repr(made)
    gate.complete()
    assert str(made) == "[1. 1. 1.]"


def test_repr_after_work_on_other_memory(
    q: Queue, kind: str, gate: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy for printing is ordered after the pending work of the array's queue."""
    if "wait_for_host" not in q.device.capabilities:
        pytest.skip("its queues cannot wait for the host")
    monkeypatch.setattr(_printing, "MAX_WAIT_SECONDS", 0.01)
    made, other = isthmus.ones((3, 3), kind=kind, queue=q), isthmus.ones(3, kind=kind, queue=q)
    q.wait()
    q.fence(gate)
    other.fill(2, blocking=False)
    for told in (repr(made), made._repr_html_()):
        assert "work on it has not completed" in told
    gate.complete()
    assert str(made[0]) == "[1. 1. 1.]"


def test_repr_of_unreadable_arrays() -> None:
    device = sim(fail="copy:1")
    made = isthmus.empty(3, device=device)
    assert "cannot be read" in repr(made)


def test_views_of_a_buffer(q: Queue, kind: str) -> None:
    made = isthmus.asarray(np.arange(24.0), kind=kind, queue=q)
    again = Array(made.buffer, (3, 4), "f8", strides=(32, -8), offset=56)
    model = np.arange(24.0)[4:8][::-1] + np.array([[0], [4], [8]])
    assert str(again) == str(model)
