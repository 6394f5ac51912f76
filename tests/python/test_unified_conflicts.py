# SPDX-License-Identifier: Apache-2.0
"""Writes on both sides: disjoint ranges are merged, overlapping ones reported or resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import message_has
from unified_support import numbers, read_on_device, two_copies, write_on_device

import isthmus
from isthmus import BufferState, ConflictError, UnifiedBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Device

pytestmark = pytest.mark.sim_and_host
SIZE = 300_000
# In another granule than 0 with any kind of tracking, except with the largest pages.
FAR = SIZE - 10


def both_wrote(dev: Device, **options: Any) -> Any:
    """A synchronized buffer in which the device then wrote 0 to 8, and the host 4 to 10."""
    buf = two_copies(dev, SIZE, granularity="page", **options)
    buf.copy_from(numbers(SIZE)).sync_to_device()
    kept = buf.host
    buf.device[:8].fill(-1)
    buf.mark_device_dirty((0, 8))
    kept[4:10] = -2
    return buf


@pytest.mark.every_backend
def test_disjoint_ranges_are_merged(dev: Device) -> None:
    buf = two_copies(dev, SIZE, granularity="page")
    buf.copy_from(numbers(SIZE)).sync_to_device()
    kept = buf.host
    write_on_device(buf, -1, (0, 8))
    kept[FAR:] = -2
    assert buf.state is BufferState.DEVICE_DIRTY
    told = buf.dirty_ranges()
    assert told.device == ((0, 8),)
    assert [start <= FAR and stop == SIZE for start, stop in told.host[-1:]] == [True]
    expected = np.concatenate([[-1] * 8, numbers(SIZE)[8:FAR], [-2] * 10])
    assert (buf.to_numpy() == expected).all()
    assert (read_on_device(buf) == expected).all()
    assert buf.state is BufferState.SYNCHRONIZED


ACCESSES: dict[str, Callable[[Any], Any]] = {
    "host": lambda buf: buf.host,
    "device": lambda buf: buf.device,
    "to_numpy": lambda buf: buf.to_numpy(),
    "sync_to_host": lambda buf: buf.sync_to_host(),
    "sync_to_device": lambda buf: buf.sync_to_device(),
    "not_blocking": lambda buf: buf.sync_to_device(blocking=False),
    "prefetch": lambda buf: buf.prefetch_host((0, 100)),
    "synchronize": lambda buf: buf.synchronize(),
    "many": lambda buf: isthmus.synchronize([buf]),
    "item": lambda buf: buf[5],
    "part": lambda buf: buf[4:6].host,
    "memoryview": memoryview,
    "asarray": np.asarray,
    "host_read": lambda buf: buf.host_read((4, 8)).__enter__(),
    "host_write": lambda buf: buf.host_write((4, 8)).__enter__(),
    "device_read": lambda buf: buf.device_read((4, 8)).__enter__(),
    "device_write": lambda buf: buf.device_write((4, 8)).__enter__(),
    "copy_to": lambda buf: buf.copy_to(np.empty(SIZE)),
}


@pytest.mark.parametrize("access", ACCESSES)
def test_overlapping_ones_raise(dev: Device, access: str) -> None:
    buf = both_wrote(dev)
    for _ in range(2):
        with pytest.raises(ConflictError) as error:
            ACCESSES[access](buf)
        message_has(error, ["host and device both wrote", "resolve()"])
    assert buf.state is BufferState.DEVICE_DIRTY
    assert buf.dirty_ranges().device == ((0, 8),)
    buf.resolve("host")
    assert buf.host[:10].tolist() == [1, 2, 3, 4, -2, -2, -2, -2, -2, -2]


def test_the_message_names_the_ranges(dev: Device) -> None:
    buf = two_copies(dev, 100, "bytes", dtype=np.uint8)
    buf.fill(0).sync_to_device()
    kept = buf.host
    write_on_device(buf, 1, (10, 30))
    kept[20:40] = 2
    with pytest.raises(ConflictError) as error:
        buf.host  # noqa: B018
    message_has(error, ["20 to 30", "(10 bytes", "granules of 1 byte"])


@pytest.mark.parametrize("winner", ["host", "device"])
def test_a_winner_was_named(dev: Device, winner: str) -> None:
    buf = both_wrote(dev, tracking="bytes", on_conflict=winner)
    host = buf.host
    expected = [-1] * 8 + [-2] * 2 if winner == "device" else [-1] * 4 + [-2] * 6
    assert host[:10].tolist() == expected
    assert (host[10:] == numbers(SIZE)[10:]).all()
    assert (read_on_device(buf) == host).all()
    assert buf.state is BufferState.SYNCHRONIZED


@pytest.mark.parametrize("winner", ["host", "device"])
def test_settled_by_hand(dev: Device, winner: str) -> None:
    buf = both_wrote(dev)
    buf.resolve(winner, (0, 8))
    host = buf.host
    expected = [-1] * 8 if winner == "device" else [1, 2, 3, 4, -2, -2, -2, -2]
    assert host[:8].tolist() == expected
    assert host[8:10].tolist() == [-2, -2]
    assert (read_on_device(buf) == host).all()
    assert buf.state is BufferState.SYNCHRONIZED
    buf.resolve(winner)  # there is nothing to resolve
    assert buf.host[:8].tolist() == expected


def test_one_copy_has_no_conflicts() -> None:
    buf = UnifiedBuffer(1000, device="host")
    host, array = buf.host, buf.device
    host[0] = 1
    array[1] = 2
    buf.mark_device_dirty()
    assert buf.state is BufferState.DEVICE_DIRTY
    host[2] = 3
    assert buf.device[:3].tolist() == buf.host[:3].tolist() == [1, 2, 3]
