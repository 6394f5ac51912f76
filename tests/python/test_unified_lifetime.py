# SPDX-License-Identifier: Apache-2.0
"""The end of a buffer, objects that outlive it, and copies of it: pickles, copy.copy."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import is_memory_released
from unified_support import each_means, numbers, read_on_device, two_copies, write_on_device

import isthmus
from isthmus import BufferState, ClosedError, Device, UnifiedBuffer
from isthmus.memory import live

if TYPE_CHECKING:
    from collections.abc import Callable

USES: dict[str, Callable[[Any], Any]] = {
    "host": lambda buf: buf.host,
    "device": lambda buf: buf.device,
    "state": lambda buf: buf.state,
    "to_numpy": lambda buf: buf.to_numpy(),
    "pinned": lambda buf: buf.pinned,
    "statistics": lambda buf: buf.statistics,
    "dirty_ranges": lambda buf: buf.dirty_ranges(),
    "copy_from": lambda buf: buf.copy_from(1),
    "copy_to": lambda buf: buf.copy_to(np.empty(buf.shape)),
    "fill": lambda buf: buf.fill(1),
    "sync_to_device": lambda buf: buf.sync_to_device(),
    "sync_to_host": lambda buf: buf.sync_to_host(),
    "prefetch_host": lambda buf: buf.prefetch_host(),
    "synchronize": lambda buf: buf.synchronize(),
    "many": lambda buf: isthmus.synchronize([buf]),
    "mark_host_dirty": lambda buf: buf.mark_host_dirty(),
    "mark_device_dirty": lambda buf: buf.mark_device_dirty(),
    "resolve": lambda buf: buf.resolve("host"),
    "item": lambda buf: buf[0],
    "set_item": lambda buf: buf.__setitem__(0, 1),
    "part": lambda buf: buf[1:2].host,
    "asarray": np.asarray,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "host_read": lambda buf: buf.host_read().__enter__(),
    "host_write": lambda buf: buf.host_write().__enter__(),
    "device_read": lambda buf: buf.device_read().__enter__(),
    "device_write": lambda buf: buf.device_write().__enter__(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.sim_and_host
def test_use_after_free(dev: Device, use: str) -> None:
    for used in (False, True):
        buf = two_copies(dev, 1000)
        if used:
            buf.fill(1).sync_to_device()
        buf.free()
        buf.free()
        with pytest.raises(ClosedError, match="freed"):
            USES[use](buf)


def test_what_is_known_of_a_freed_one(dev: Device) -> None:
    buf = two_copies(dev, (10, 10))
    part = buf[2:4]
    buf.free()
    assert (buf.shape, buf.dtype, buf.nbytes, len(buf)) == ((10, 10), np.float32, 400, 10)
    assert repr(buf) == f"<isthmus.UnifiedBuffer float32 (10, 10) freed on {dev.filter}>"
    assert "freed" in repr(part)
    with pytest.raises(ClosedError):
        part.device  # noqa: B018
    with pytest.raises((ClosedError, BufferError)):
        memoryview(buf)


@each_means
@pytest.mark.parametrize("size", [300, 100_000])
@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.sim_and_host
def test_views_outlive_it(dev: Device, tracking: str, size: int, pinned: bool) -> None:
    before = live()
    buf = two_copies(dev, size, tracking, pinned=pinned)
    view, part = buf.host, buf.host[5:10]
    view[:] = numbers(size)
    array = buf.device
    buf.free()
    view[0] = -1
    assert part.tolist() == [6, 7, 8, 9, 10]
    assert array.to_numpy()[1] == 2, "the device's array has its memory"
    del buf, view, array
    gc.collect()
    part[:] = 3
    assert part.tolist() == [3] * 5
    del part
    assert is_memory_released(before)


def test_dropped_without_free(dev: Device) -> None:
    before = live()
    buf = two_copies(dev, 100_000)
    view = buf.host
    view[:] = 2
    buf.sync_to_device(blocking=False)
    array, there = buf.device, weakref.ref(buf)
    del buf
    gc.collect()
    assert there() is None
    assert (view == 2).all()
    assert (array.to_numpy() == 2).all()
    del array, view
    assert is_memory_released(before)


def test_exact_access_outlives_it(dev: Device) -> None:
    buf = two_copies(dev, 1000)
    buf.fill(4)
    with buf.host_read() as array:
        buf.free()
    del buf
    gc.collect()
    assert (array == 4).all()


def test_freed_within_an_exact_write(dev: Device) -> None:
    buf = two_copies(dev, 1000)
    with pytest.raises(ClosedError), buf.host_write() as array:  # noqa: PT012
        buf.free()
        array[:] = 1


def test_a_part_keeps_it(dev: Device) -> None:
    part = two_copies(dev, 1000).fill(3)[10:20]
    gc.collect()
    assert (part.host == 3).all()
    there = weakref.ref(part)
    del part
    assert there() is None


def test_garbage_in_circles(dev: Device) -> None:
    buf = two_copies(dev, 1000)
    buf.itself, buf.view, buf.part = buf, buf.host, buf[1:3]
    there = weakref.ref(buf)
    del buf
    gc.collect()
    assert there() is None


def test_context_manager(dev: Device) -> None:
    with two_copies(dev, 1000) as buf:
        buf.fill(1)
        view = buf.host
    with pytest.raises(ClosedError):
        buf.state  # noqa: B018
    assert view[0] == 1
    with pytest.raises(ZeroDivisionError), two_copies(dev, 10) as buf:
        _ = 1 / 0
    with pytest.raises(ClosedError):
        buf.host  # noqa: B018


def test_repr(dev: Device) -> None:
    buf = two_copies(dev, (2, 3), dtype=np.int16)
    for state in ("UNINITIALIZED", "HOST_ONLY"):
        assert repr(buf) == f"<isthmus.UnifiedBuffer int16 (2, 3) {state} on {dev.filter}>"
        buf.host  # noqa: B018


def test_identity(dev: Device) -> None:
    one, other = two_copies(dev, 3), two_copies(dev, 3)
    assert hash(one) != hash(other)
    assert len({one, other, one}) == 2


@pytest.fixture
def lasting(dev: Device) -> Device:
    if dev.backend == "sim":
        pytest.skip("simulated devices of tests come and go")
    return dev


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(lasting: Device, protocol: int) -> None:
    options = {"pinned": True, "granularity": "page", "on_conflict": "device", "tracking": "hashes"}
    buf = two_copies(lasting, (300, 70), dtype=np.int32, **options)
    buf.host[:] = np.arange(21_000).reshape(300, 70)
    write_on_device(buf, -1, (0, 1))
    again = pickle.loads(pickle.dumps(buf, protocol))
    assert type(again) is UnifiedBuffer
    assert (again.shape, again.dtype, again.state) == ((300, 70), np.int32, BufferState.HOST_DIRTY)
    assert (again.host[0] == -1).all()
    assert (again.host[1:] == np.arange(70, 21_000).reshape(299, 70)).all()
    assert again._options() == {"separate": True} | options
    assert again.queue.device == lasting
    again.host[:] = 0
    assert buf.host[5, 5] == 355
    part = pickle.loads(pickle.dumps(buf[10:12].reshape(-1), protocol))
    assert type(part) is UnifiedBuffer
    assert part.host.tolist() == list(range(700, 840))


def test_pickles_out_of_band(lasting: Device) -> None:
    buf = two_copies(lasting, 50_000)
    buf.host[:] = numbers(50_000)
    parts: list[pickle.PickleBuffer] = []
    head = pickle.dumps(buf, 5, buffer_callback=parts.append)
    assert (len(head) < 1000, [part.raw().nbytes for part in parts]) == (True, [200_000])
    again = pickle.loads(head, buffers=parts)
    assert (again.host == numbers(50_000)).all()
    assert not np.shares_memory(again.host, buf.host)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_copies(dev: Device, way: Callable[[Any], Any]) -> None:
    buf = two_copies(dev, 1000, tracking="hashes", on_conflict="host")
    buf.host[:] = numbers(1000)
    write_on_device(buf, -1, (0, 3))
    again = way(buf)
    assert (again.queue, again._options()) == (buf.queue, buf._options())
    buf.fill(0)
    assert again.host[:5].tolist() == [-1, -1, -1, 4, 5]
    assert (read_on_device(again) == again.host).all()
    part = way(again[1:5])
    assert (type(part), part.shape) == (UnifiedBuffer, (4,))
    part.fill(7)
    assert again.host[4] == 5


def test_on_a_device_that_is_not_here() -> None:
    load, (contents, options, _) = UnifiedBuffer(3, device="host").fill(2).__reduce__()
    with pytest.warns(RuntimeWarning, match=r"host:gpu:7.*not available"):
        again = load(contents, options, "host:gpu:7")
    assert again.host.tolist() == [2, 2, 2]
    assert again.queue.device == Device()
