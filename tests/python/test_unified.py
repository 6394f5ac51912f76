# SPDX-License-Identifier: Apache-2.0
"""UnifiedBuffer: its states, their transitions, and transfers of the changed ranges only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from unified_support import (
    covered,
    each_means,
    numbers,
    read_on_device,
    two_copies,
    write_on_device,
)

import isthmus
from isthmus import Array, BufferState, Queue, UnifiedBuffer

if TYPE_CHECKING:
    from isthmus import Device


def test_states_have_bare_names() -> None:
    names = ["UNINITIALIZED", "HOST_ONLY", "DEVICE_ONLY", "SYNCHRONIZED", "HOST_DIRTY"]
    assert [str(state) for state in BufferState] == [*names, "DEVICE_DIRTY"]
    assert f"{BufferState.HOST_DIRTY}" == "HOST_DIRTY"


@pytest.mark.parametrize("pinned", [False, True])
def test_the_life_of_a_buffer(dev: Device, pinned: bool) -> None:
    size = 20_000
    buf = two_copies(dev, size, pinned=pinned)
    assert str(buf.state) == "UNINITIALIZED"
    host = buf.host
    assert str(buf.state) == "HOST_ONLY"
    host[:] = numbers(size)
    assert str(buf.state) == "HOST_DIRTY"
    assert (read_on_device(buf) == numbers(size)).all()
    assert str(buf.state) == "SYNCHRONIZED"
    host[size // 2] = -1
    assert str(buf.state) == "HOST_DIRTY"
    buf.sync_to_device()
    assert str(buf.state) == "SYNCHRONIZED"
    write_on_device(buf, 7)
    assert str(buf.state) == "DEVICE_DIRTY"
    assert (buf.host == 7).all()
    assert str(buf.state) == "SYNCHRONIZED"


def test_the_device_first(dev: Device) -> None:
    buf = two_copies(dev, 300)
    write_on_device(buf, numbers(300))
    assert buf.state is BufferState.DEVICE_ONLY, "its copy is the only one"
    assert (buf.to_numpy() == numbers(300)).all()
    assert buf.state is BufferState.SYNCHRONIZED


def test_copies_are_allocated_on_first_access(dev: Device) -> None:
    before = isthmus.memory.live()
    buf = two_copies(dev, 1_000_000)
    assert (buf.state, buf.size, buf.nbytes) == (BufferState.UNINITIALIZED, 1_000_000, 4_000_000)
    assert isthmus.memory.live() == before
    buf.free()


def test_writes_of_a_dropped_view_are_detected(dev: Device) -> None:
    buf = two_copies(dev, 100_000)
    for number in range(1, 4):
        buf.host[number] = number
        assert buf.state is BufferState.HOST_DIRTY
        assert read_on_device(buf)[number] == number


@each_means
def test_only_written_ranges_are_copied(dev: Device, tracking: str) -> None:
    buf = two_copies(dev, 4_000_000, tracking, granularity="page")
    buf.host[:] = numbers(4_000_000)
    buf.sync_to_device()
    before = buf.statistics
    assert before.bytes_to_device == buf.nbytes
    buf.host[[5, 1_000_000, 3_999_999]] = -1
    buf.sync_to_device()
    moved = buf.statistics.bytes_to_device - before.bytes_to_device
    assert 0 < moved <= 3 * max(buf._info()["granule"], buf.itemsize)
    operations = buf.statistics.copies - before.copies
    assert operations == 1 or (tracking == "hashes" and operations <= 3), "of three ranges"
    assert read_on_device(buf)[[5, 6, 1_000_000, 3_999_999]].tolist() == [-1, 7, -1, -1]
    assert buf.sync_to_device(blocking=False) is None
    assert buf.statistics.copies == before.copies + operations
    write_on_device(buf, 3, (10, 20))
    buf.sync_to_host()
    assert buf.statistics.bytes_to_host == 40


def test_ranges_that_are_synchronised(dev: Device) -> None:
    buf = two_copies(dev, (1000, 1000), granularity="page")
    buf.host[:] = 1
    buf.sync_to_device()
    buf.host[10], buf.host[900] = 2, 3
    buf.sync_to_device((0, 500))
    assert buf.state is BufferState.HOST_DIRTY
    assert 900_000 in covered(buf.dirty_ranges().host)
    assert 10_000 not in covered(buf.dirty_ranges().host)
    buf.sync_to_device(slice(-500, None))
    assert buf.state is BufferState.SYNCHRONIZED
    buf.device.fill(4)
    buf.mark_device_dirty(slice(0, 100))
    buf.mark_device_dirty((200, 300))
    assert buf.dirty_ranges() == ((), ((0, 100_000), (200_000, 300_000)))
    buf.sync_to_host((0, 250))
    assert buf.dirty_ranges().device == ((250_000, 300_000),)
    assert buf.prefetch_host((250, 300)).wait() is None
    assert buf.state is BufferState.SYNCHRONIZED
    assert buf.host[:, 0].tolist() == [4] * 100 + [1] * 100 + [4] * 100 + [1] * 600 + [3] + [1] * 99


def test_events_complete_after_the_copy(dev: Device) -> None:
    size = 20_000
    buf = two_copies(dev, size)
    assert buf.sync_to_device(blocking=False) is None, "nothing yet"
    kept = buf.host
    kept[:] = numbers(size)
    sent = buf.sync_to_device(blocking=False)
    if sent is not None:
        sent.wait()
    kept[:] = 0  # from here on the change is permitted
    assert (buf.device.to_numpy() == 0).all()
    write_on_device(buf, 5)
    fetched = buf.prefetch_host()
    assert fetched is not None
    fetched.wait()
    assert (buf.host == 5).all()
    assert (kept == 5).all()
    assert buf.state is BufferState.SYNCHRONIZED


def test_synchronize_brings_both_up_to_date(dev: Device) -> None:
    buf = two_copies(dev, (100, 100), "bytes")
    buf.synchronize()
    assert buf.state is BufferState.UNINITIALIZED
    buf.host[:] = 1
    buf.sync_to_device()
    buf.host[:50] = 2
    write_on_device(buf, 3, (50, 100))
    assert buf.state is BufferState.DEVICE_DIRTY
    buf.synchronize()
    assert buf.state is BufferState.SYNCHRONIZED
    assert buf.host[:, 0].tolist() == [2] * 50 + [3] * 50
    assert (read_on_device(buf) == buf.host).all()


def test_many_with_one_look(dev: Device) -> None:
    many = [two_copies(dev, 5000) for _ in range(50)]
    views = [each.host for each in many]
    isthmus.synchronize(many)
    assert {str(each.state) for each in many} == {"SYNCHRONIZED"}
    for number in (3, 17, 42):
        views[number][number] = number
    copies = [each.statistics.copies for each in many]
    isthmus.synchronize(iter(many), queue=Queue(dev))
    moved = [each.statistics.copies - had for each, had in zip(many, copies, strict=True)]
    assert [number for number, count in enumerate(moved) if count] == [3, 17, 42]
    assert all(read_on_device(many[number])[number] == number for number in (3, 17, 42))
    isthmus.synchronize([])
    with pytest.raises((TypeError, AttributeError)):
        isthmus.synchronize([1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="buffers must be iterable, not int"):
        isthmus.synchronize(1)  # type: ignore[arg-type]


def test_kinds_of_device_arrays(dev: Device) -> None:
    buf = two_copies(dev, (3, 4), dtype=np.int16)
    array = buf.device
    assert isinstance(array, Array)
    assert (array.shape, array.dtype, array.device) == ((3, 4), np.int16, dev)
    assert array.queue == buf.queue
    on_host = UnifiedBuffer((3, 4), np.int16, device="host")
    assert isinstance(on_host.device, np.ndarray)
    assert on_host.device is on_host.device


def test_one_copy_where_it_serves() -> None:
    buf = UnifiedBuffer(100_000, device="host")
    assert (buf.state, buf._info()["one_memory"]) == (BufferState.UNINITIALIZED, True)
    host, array = buf.host, buf.device
    host[5] = 1
    assert buf.state is BufferState.HOST_DIRTY
    assert buf.device[5] == 1
    assert buf.state is BufferState.SYNCHRONIZED
    array[6] = 2
    buf.mark_device_dirty()
    assert buf.state is BufferState.DEVICE_DIRTY
    assert buf.host[6] == 2
    assert (buf.statistics.bytes_to_device, buf.statistics.bytes_to_host) == (0, 0)


@pytest.mark.parametrize("dtype", ["?", "i1", "<u2", "f2", "i8", "f8", "F", "D"])
def test_dtypes(dev: Device, dtype: str) -> None:
    data: Any = (np.arange(24) % 5).astype(dtype).reshape(2, 3, 4)
    buf = two_copies(dev, (2, 3, 4), dtype=dtype)
    assert (buf.dtype, buf.itemsize, buf.ndim, len(buf)) == (data.dtype, data.itemsize, 3, 2)
    buf.host[:] = data
    got = read_on_device(buf)
    assert got.dtype == data.dtype
    assert (got == data).all()


def test_structures_and_no_dimensions(dev: Device) -> None:
    pair = np.dtype([("at", "<i4"), ("weight", "<f8")])
    buf = UnifiedBuffer(10, pair, device=dev)
    buf.host["weight"] = 0.5
    buf.sync_to_device()
    assert buf.host["weight"].tolist() == [0.5] * 10
    one = two_copies(dev, (), dtype=np.float64)
    one.host[()] = 2.5
    assert (one.shape, one.size, one.ndim) == ((), 1, 0)
    assert read_on_device(one) == 2.5
    write_on_device(one, 3.5)
    assert one.host == 3.5
    assert one.dirty_ranges() == ((), ())
