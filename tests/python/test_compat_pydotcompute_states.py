# SPDX-License-Identifier: Apache-2.0
"""Each operation in each state, with the copies that it makes, on buffers with two copies."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydotcompute_support import NEW, OLD, STATES, in_state, new_buffer, on_device

import isthmus
from isthmus import ConflictError
from isthmus.compat.pydotcompute.exceptions import BufferNotAllocatedError, BufferSyncError

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Device
    from isthmus.compat.pydotcompute import BufferState

UNINIT, HOST, DEVICE, SYNC, HOST_DIRTY, DEVICE_DIRTY = STATES
pytestmark = pytest.mark.sim_and_host
ABSENT = BufferNotAllocatedError
# Every test writes new values: bytes that do not change are no write, and memory may be reused.
values = count(1000)


def write_host(buf: Any, value: int) -> None:
    buf.host[:] = value


def write_item(buf: Any, value: int) -> None:
    buf[:] = value


OPERATIONS: dict[str, Callable[[Any, int], Any]] = {
    "allocate": lambda buf, _: buf.allocate(),
    "host": lambda buf, _: buf.host,
    "device": lambda buf, _: buf.device,
    "host[:]=": write_host,
    "b[:]=": write_item,
    "mark_host": lambda buf, _: buf.mark_host_dirty(),
    "mark_device": lambda buf, _: buf.mark_device_dirty(),
    "synchronize": lambda buf, _: buf.synchronize(),
    "sync_to_device": lambda buf, _: buf.sync_to_device(),
    "sync_to_host": lambda buf, _: buf.sync_to_host(),
    "copy_from": lambda buf, value: buf.copy_from(np.full_like(OLD, value)),
    "fill": lambda buf, value: buf.fill(value),
    "zeros": lambda buf, _: buf.zeros(),
    "to_numpy": lambda buf, _: buf.to_numpy(),
    "free": lambda buf, _: buf.free(),
}
WRITES = ("host[:]=", "b[:]=", "copy_from", "fill", "zeros")

# For each initial state: the resulting state, and the number of copies between the two sides. An
# error leaves the state unchanged.
Outcome = tuple[Any, int]
TABLE: dict[str, dict[BufferState, Outcome]] = {
    "allocate": {
        UNINIT: (SYNC, 1),
        HOST: (SYNC, 1),
        DEVICE: (SYNC, 1),
        SYNC: (SYNC, 0),
        HOST_DIRTY: (SYNC, 1),
        DEVICE_DIRTY: (SYNC, 1),
    },
    "host": {
        UNINIT: (HOST, 0),
        HOST: (HOST, 0),
        DEVICE: (SYNC, 1),
        SYNC: (SYNC, 0),
        HOST_DIRTY: (HOST_DIRTY, 0),
        DEVICE_DIRTY: (SYNC, 1),
    },
    "device": {
        UNINIT: (DEVICE, 0),
        HOST: (SYNC, 1),
        DEVICE: (DEVICE, 0),
        SYNC: (SYNC, 0),
        HOST_DIRTY: (SYNC, 1),
        DEVICE_DIRTY: (DEVICE_DIRTY, 0),
    },
    "host[:]=": {
        UNINIT: (HOST_DIRTY, 0),
        HOST: (HOST_DIRTY, 0),
        DEVICE: (HOST_DIRTY, 1),
        SYNC: (HOST_DIRTY, 0),
        HOST_DIRTY: (HOST_DIRTY, 0),
        DEVICE_DIRTY: (HOST_DIRTY, 1),
    },
    "mark_host": {
        UNINIT: (ABSENT, 0),
        HOST: (HOST_DIRTY, 0),
        DEVICE: (ABSENT, 0),
        SYNC: (HOST_DIRTY, 0),
        HOST_DIRTY: (HOST_DIRTY, 0),
        DEVICE_DIRTY: (DEVICE_DIRTY, 0),  # both sides are dirty from here on, see below
    },
    "mark_device": {
        UNINIT: (ABSENT, 0),
        HOST: (ABSENT, 0),
        DEVICE: (DEVICE, 0),
        SYNC: (DEVICE_DIRTY, 0),
        HOST_DIRTY: (DEVICE_DIRTY, 0),  # both sides are dirty
        DEVICE_DIRTY: (DEVICE_DIRTY, 0),
    },
    "synchronize": {
        UNINIT: (UNINIT, 0),
        HOST: (HOST, 0),
        DEVICE: (DEVICE, 0),
        SYNC: (SYNC, 0),
        HOST_DIRTY: (SYNC, 1),
        DEVICE_DIRTY: (SYNC, 1),
    },
    "copy_from": dict.fromkeys(STATES, (HOST_DIRTY, 0)),
    "free": dict.fromkeys(STATES, (UNINIT, 0)),
}
TABLE["b[:]="] = TABLE["host[:]="]
TABLE["sync_to_device"] = TABLE["device"]
TABLE["sync_to_host"] = TABLE["to_numpy"] = TABLE["host"]
TABLE["fill"] = TABLE["zeros"] = TABLE["copy_from"]
HELD = {DEVICE: OLD, SYNC: OLD, HOST_DIRTY: NEW, DEVICE_DIRTY: NEW}


def test_the_table_is_whole() -> None:
    assert TABLE.keys() == OPERATIONS.keys()
    assert all(row.keys() == STATES.keys() for row in TABLE.values())


def copies(buf: Any) -> int:
    return int(buf.statistics.copies)


@pytest.mark.parametrize("freed", [False, True], ids=["new", "freed_before"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_transitions(dev: Device, operation: str, freed: bool) -> None:
    for state in STATES:
        check_transition(dev, operation, state, freed)


def check_transition(dev: Device, operation: str, state: BufferState, freed: bool) -> None:
    buf = new_buffer(dev)
    if freed:
        buf.fill(99).allocate().free()
    STATES[state](buf)
    assert buf.state is state
    before = copies(buf)
    then, moved = TABLE[operation][state]
    if then is ABSENT:
        with pytest.raises(ABSENT):
            OPERATIONS[operation](buf, next(values))
        assert buf.state is state
    else:
        OPERATIONS[operation](buf, next(values))
        assert buf.state is then
        assert copies(buf) - (0 if operation == "free" else before) == moved


@pytest.mark.parametrize(
    "operation", sorted(OPERATIONS.keys() - {"free", "mark_host", "mark_device"})
)
@pytest.mark.every_backend
def test_contents_after_it(dev: Device, operation: str) -> None:
    for state, held in HELD.items():
        buf, value = in_state(dev, state), next(values)
        OPERATIONS[operation](buf, value)
        expected = held
        if operation in WRITES:
            expected = np.full_like(OLD, 0 if operation == "zeros" else value)
        assert (on_device(buf) == expected).all(), state
        assert (buf.host == expected).all(), state


@pytest.mark.parametrize(
    ("state", "mark"),
    [(HOST_DIRTY, "mark_device"), (DEVICE_DIRTY, "mark_host")],
    ids=["host_first", "device_first"],
)
@pytest.mark.parametrize("winner", ["host", "device"])
def test_both_sides_marked(dev: Device, state: BufferState, mark: str, winner: str) -> None:
    buf = in_state(dev, state)
    OPERATIONS[mark](buf, 0)
    for access in ("host", "device", "synchronize", "to_numpy", "allocate"):
        with pytest.raises(BufferSyncError) as told:
            OPERATIONS[access](buf, 0)
        assert isinstance(told.value, ConflictError)
    buf.resolve(winner)
    expected = NEW if winner == str(state).partition("_")[0].lower() else OLD
    assert (on_device(buf) == expected).all()
    assert (buf.host == expected).all()
    assert buf.state is SYNC


@pytest.mark.parametrize("state", STATES, ids=str)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_with_one_memory_for_both(operation: str, state: BufferState) -> None:
    """One memory for both: no copies, no conflicts, and the same resulting states."""
    buf = new_buffer(isthmus.Device("host"), separate=False)
    if state is DEVICE_DIRTY:
        buf.copy_from(OLD).device[:] = NEW
        buf.mark_device_dirty()
    else:
        STATES[state](buf)
    then, _ = TABLE[operation][state]
    if then is ABSENT:
        with pytest.raises(ABSENT):
            OPERATIONS[operation](buf, next(values))
        return
    OPERATIONS[operation](buf, next(values))
    last_marked = HOST_DIRTY if (operation, state) == ("mark_host", DEVICE_DIRTY) else then
    assert buf.state is last_marked
    assert buf.statistics == (0, 0, 0)
    if state in HELD and operation not in WRITES and operation != "free":
        assert (buf.host == HELD[state]).all()
        assert (buf.device == HELD[state]).all()
