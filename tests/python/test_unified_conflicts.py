# SPDX-License-Identifier: Apache-2.0
"""Writes on both sides: disjoint ranges are merged, overlapping ones reported or resolved."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import message_has
from unified_support import each_means, numbers, read_on_device, two_copies, write_on_device

import isthmus
from isthmus import BufferState, ConflictError, UnifiedBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Device

pytestmark = pytest.mark.sim_and_host
SIZE = 300_000
# In another granule than 0 with any kind of tracking, except with the largest pages.
FAR = SIZE - 10


def both_wrote(dev: Device, tracking: str, **options: Any) -> Any:
    """A synchronized buffer in which the device then wrote 0 to 8, and the host 4 to 10."""
    buf = two_copies(dev, SIZE, tracking, granularity="page", **options)
    buf.copy_from(numbers(SIZE)).sync_to_device()
    kept = buf.host
    buf.device[:8].fill(-1)
    buf.mark_device_dirty((0, 8))
    kept[4:10] = -2
    return buf


@each_means
@pytest.mark.every_backend
def test_disjoint_ranges_are_merged(dev: Device, tracking: str) -> None:
    buf = two_copies(dev, SIZE, tracking, granularity="page")
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


@each_means
@pytest.mark.parametrize("access", ACCESSES)
def test_overlapping_ones_raise(dev: Device, tracking: str, access: str) -> None:
    buf = both_wrote(dev, tracking)
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


@each_means
def test_other_ranges_work_despite_a_conflict(dev: Device, tracking: str) -> None:
    buf = both_wrote(dev, tracking)
    with buf.host_read((FAR, SIZE)) as array:
        assert (array == numbers(SIZE)[FAR:]).all()
    buf.sync_to_device((FAR, SIZE))
    with buf.host_write((FAR, SIZE)) as array:
        array[:] = 9
    with buf.device_read((FAR, SIZE)) as array:
        assert (array.to_numpy() == 9).all()


@each_means
@pytest.mark.parametrize("winner", ["host", "device"])
def test_a_winner_was_named(dev: Device, tracking: str, winner: str) -> None:
    buf = both_wrote(dev, tracking, on_conflict=winner)
    if winner == "device":
        host, first = buf.host, [-1] * 8
        assert host[:8].tolist() == first
        if tracking == "bytes":
            assert host[8:10].tolist() == [-2, -2], "there only the host wrote"
    else:
        host = buf.host
        assert host[4:10].tolist() == [-2] * 6
        if tracking == "bytes":
            assert host[:4].tolist() == [-1] * 4
    assert (read_on_device(buf) == host).all()
    assert (host[10:] == numbers(SIZE)[10:]).all()
    assert buf.state is BufferState.SYNCHRONIZED


@each_means
@pytest.mark.parametrize("winner", ["host", "device"])
def test_settled_by_hand(dev: Device, tracking: str, winner: str) -> None:
    buf = both_wrote(dev, tracking)
    buf.resolve(winner, (0, 8))
    host = buf.host
    expected = [-1] * 8 if winner == "device" else [1, 2, 3, 4, -2, -2, -2, -2]
    assert host[:8].tolist() == expected
    assert host[8:10].tolist() == [-2, -2]
    assert (read_on_device(buf) == host).all()
    assert buf.state is BufferState.SYNCHRONIZED
    buf.resolve(winner)  # there is nothing to resolve
    assert buf.host[:8].tolist() == expected


@each_means
def test_a_range_is_settled(dev: Device, tracking: str) -> None:
    buf = both_wrote(dev, tracking)
    buf.resolve("device", (0, 6))
    with pytest.raises(ConflictError):
        buf.host  # noqa: B018
    buf.resolve("host", (6, 8))
    host = buf.host[:10].tolist()
    assert host[:4] == [-1] * 4
    assert host[4:] == [-1, -1, -2, -2, -2, -2]
    assert read_on_device(buf)[:10].tolist() == host


@each_means
def test_new_contents_settle_it(dev: Device, tracking: str) -> None:
    buf = both_wrote(dev, tracking)
    buf.fill(5)
    assert buf.state is BufferState.HOST_DIRTY
    assert (read_on_device(buf) == 5).all()


@each_means
def test_a_mark_after_the_fact(dev: Device, tracking: str) -> None:
    buf = two_copies(dev, SIZE, tracking)
    kept = buf.host
    kept[:] = 1
    buf.device.fill(2)
    kept[0] = 3
    buf.mark_device_dirty()
    with pytest.raises(ConflictError):
        buf.sync_to_host()
    buf.resolve("device")
    assert (kept == 2).all()


def test_exact_ones_within_one_granule(dev: Device) -> None:
    buf = two_copies(dev, SIZE)
    buf.fill(0).sync_to_device()
    write_on_device(buf, 1, (0, 8))
    with buf.host_write((8, 16)) as array:
        array[:] = 2
    assert buf.dirty_ranges() == (((8, 16),), ((0, 8),))
    expected = [1] * 8 + [2] * 8 + [0] * 8
    assert buf.host[:24].tolist() == expected
    assert read_on_device(buf)[:24].tolist() == expected


def test_one_copy_has_no_conflicts() -> None:
    buf = UnifiedBuffer(1000, device="host")
    host, array = buf.host, buf.device
    host[0] = 1
    array[1] = 2
    buf.mark_device_dirty()
    assert buf.state is BufferState.DEVICE_DIRTY
    host[2] = 3
    assert buf.device[:3].tolist() == buf.host[:3].tolist() == [1, 2, 3]


@pytest.mark.every_backend
def test_writers_on_both_sides_apart(dev: Device) -> None:
    """A host thread writes its half and the device the other half, repeatedly."""
    buf = two_copies(dev, 200_000, granularity="page")
    buf.fill(0).sync_to_device()
    half = buf.size // 2 // 1024 * 1024
    kept = buf.host
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            kept[half + 1024 :: 1024] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(1, 60):
            write_on_device(buf, number, (0, half // 2))
            buf.sync_to_host()
            buf.sync_to_device()
            assert (kept[: half // 2] == number).all()
    finally:
        stop.set()
        writer.join()
    assert (read_on_device(buf) == kept).all()
    assert len(set(kept[half + 1024 :: 1024].tolist())) == 1
