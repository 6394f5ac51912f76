# SPDX-License-Identifier: Apache-2.0
"""One test for each write or error that PyDotCompute loses: here it is kept or reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydotcompute_support import NEW, OLD, SIZE, STATES, in_state, new_buffer, on_device
from support import message_has, sim
from unified_support import each_means, write_on_device

import isthmus
from isthmus import ClosedError, ConflictError, USMAllocationError
from isthmus._core import sim_configure, sim_state
from isthmus.compat.pydotcompute import BufferState, UnifiedBuffer
from isthmus.compat.pydotcompute.exceptions import BufferSyncError

if TYPE_CHECKING:
    from isthmus import Device

pytestmark = pytest.mark.sim_and_host
MIB = 1 << 20
HOLDING = [BufferState.SYNCHRONIZED, BufferState.HOST_DIRTY, BufferState.DEVICE_DIRTY]


@each_means
@pytest.mark.parametrize("size", [SIZE, 100_000])
def test_an_unmarked_write(dev: Device, tracking: str, size: int) -> None:
    buf = new_buffer(dev, size, tracking=tracking).allocate()
    buf.host[:] = 5
    assert buf.state is BufferState.HOST_DIRTY
    assert (on_device(buf) == 5).all()


def test_a_write_through_an_array_of_long_ago(dev: Device) -> None:
    buf = new_buffer(dev).copy_from(OLD)
    kept = buf.host
    _ = buf.device
    kept[3] = -1
    assert on_device(buf)[3] == -1


def test_a_write_into_device_data(dev: Device) -> None:
    buf = in_state(dev, BufferState.DEVICE_DIRTY)
    buf.host[0] = -1
    assert on_device(buf).tolist() == [-1, *NEW[1:]]


@pytest.mark.parametrize("state", HOLDING, ids=str)
@pytest.mark.parametrize("sides", [{}, {"host": False}, {"device": False}], ids=str)
def test_allocate_again_keeps_the_contents(
    dev: Device, state: BufferState, sides: dict[str, bool]
) -> None:
    buf = in_state(dev, state)
    kept = buf.to_numpy()
    buf.allocate(**sides)
    assert (buf.host == kept).all()
    assert (on_device(buf) == kept).all()


def test_allocate_keeps_the_host_array_that_is_out(dev: Device) -> None:
    buf = new_buffer(dev).copy_from(OLD)
    out = buf.host
    assert np.shares_memory(buf.allocate().host, out)


def test_a_device_result_is_not_dropped_for_a_mark(dev: Device) -> None:
    buf = in_state(dev, BufferState.DEVICE_DIRTY)
    buf.mark_host_dirty()
    with pytest.raises(ConflictError):
        buf.host  # noqa: B018
    buf.resolve("device")
    assert (buf.host == NEW).all()


def test_a_host_write_is_not_dropped_for_a_mark(dev: Device) -> None:
    buf = in_state(dev, BufferState.HOST_DIRTY)
    buf.mark_device_dirty()
    with pytest.raises(ConflictError):
        buf.device  # noqa: B018
    buf.resolve("host")
    assert (on_device(buf) == NEW).all()


def test_writes_of_both_in_different_places_are_both_kept(dev: Device) -> None:
    buf = new_buffer(dev).copy_from(OLD)
    write_on_device(buf, [50, 51], (0, 2))
    buf.host[8:] = 60
    expected = [50, 51, *OLD[2:8], 60, 60]
    assert buf.host.tolist() == expected
    assert on_device(buf).tolist() == expected


@pytest.mark.every_backend
def test_only_changes_are_copied(dev: Device) -> None:
    buf = new_buffer(dev, (16 * MIB,), granularity="page")
    buf.fill(1).sync_to_device()
    before = buf.statistics.bytes_to_device
    buf.host[12345] = 2
    _ = buf.device
    assert 0 < buf.statistics.bytes_to_device - before <= 2 * MIB


def test_out_of_device_memory_is_reported() -> None:
    device = sim(capacity="1MiB")
    for ask in (lambda buf: buf.device, lambda buf: buf.allocate()):
        buf = new_buffer(device, MIB)
        with pytest.raises(BufferSyncError) as told:
            ask(buf)
        assert isinstance(told.value, USMAllocationError)
        assert isinstance(told.value, MemoryError)
        assert isinstance(told.value.cause, USMAllocationError)
        message_has(told, [4 * MIB, MIB, "host->device"])
        assert (buf.fill(3).host == 3).all()  # the failure left the host copy usable


def test_pinned_whatever_the_size(dev: Device) -> None:
    """Memory is pinned where the driver supports it; ``pinned`` reports whether it is."""
    for size in (1, 125, 1000, 4097):
        buf = new_buffer(dev, size, pinned=True).allocate()
        assert buf.pinned == (dev.backend == "cuda")
        buf.host[:] = 2
        assert (on_device(buf) == 2).all()


def test_fill_fills_whatever_the_state(dev: Device) -> None:
    for state in STATES:
        buf = in_state(dev, state).fill(9)
        assert (buf.host == 9).all()
        assert (on_device(buf) == 9).all()


def test_fill_does_not_cut_off() -> None:
    buf: Any = UnifiedBuffer(SIZE, np.int32, device="host").fill(4.0)
    assert (buf.host == 4).all()
    with pytest.raises(TypeError, match="float64"):
        buf.fill(2.5)
    with pytest.raises(OverflowError):
        UnifiedBuffer(SIZE, np.uint8, device="host").fill(300)
    assert (buf.host == 4).all()
    assert UnifiedBuffer(SIZE, bool, device="host").fill(1).host.all()


def test_a_failed_copy_stays_dirty_and_is_reported() -> None:
    device = sim()
    buf = new_buffer(device, 1000).copy_from(3)
    sim_configure(device, "fail=copy:1,fail=copy_ranges:1")
    with pytest.raises(BufferSyncError):
        buf.device  # noqa: B018
    assert buf.state is BufferState.HOST_DIRTY
    sim_configure(device, "fail=none")
    assert (on_device(buf) == 3).all()


def test_memory_of_one_side_is_made_alone() -> None:
    device = sim()
    host_only = new_buffer(device, MIB)
    host_only.host[:] = 1
    assert sim_state(device)[1] == 0
    device_only = new_buffer(device, MIB)
    _ = device_only.device
    assert sim_state(device)[1] >= 4 * MIB
    assert device_only.state is BufferState.DEVICE_ONLY


def test_bytes_of_live_buffers_are_known(dev: Device) -> None:
    counted = isthmus.memory.StatisticsResource(isthmus.memory.PoolResource("device", dev))
    buf = new_buffer(dev, 1000, resource=counted).allocate()
    assert counted.current_bytes >= 4000
    buf.free()
    again = new_buffer(dev, 1000, resource=counted)
    assert again.state is BufferState.UNINITIALIZED


def test_as_an_array_at_once(dev: Device) -> None:
    buf = in_state(dev, BufferState.DEVICE_DIRTY)
    assert np.shares_memory(np.asarray(buf), buf.host)
    assert (np.asarray(buf) == NEW).all()
    assert (np.asarray(buf, np.float64) == NEW).all()
    assert (memoryview(buf).tolist()) == NEW.tolist()


def test_buffers_of_several_devices_in_one_process() -> None:
    first, second = sim(), sim()
    bufs = [new_buffer(each).copy_from(number) for number, each in enumerate((first, second))]
    assert [on_device(buf)[0] for buf in bufs] == [0, 1]
    assert [buf.queue.device for buf in bufs] == [first, second]


def test_a_write_to_freed_memory_ends_no_other(dev: Device) -> None:
    buf = new_buffer(dev).allocate()
    first, second = buf.host_write(), buf.host_write()
    first.__enter__()
    buf.free()
    array = second.__enter__()  # of the memory that was allocated since
    with pytest.raises(ClosedError):
        first.__exit__(None, None, None)
    buf.synchronize()  # which uploads the ranges dirty so far
    array[:] = NEW
    second.__exit__(None, None, None)
    assert (on_device(buf) == NEW).all()


BOTH = [UnifiedBuffer, isthmus.UnifiedBuffer]


@pytest.mark.parametrize("write", ["host_write", "device_write"])
@pytest.mark.parametrize("which", BOTH)
@pytest.mark.every_backend
def test_freed_while_it_is_written(which: Any, write: str, dev: Device) -> None:
    buf = which(SIZE, device=dev, separate=True)
    with pytest.raises(ClosedError), getattr(buf, write)():
        buf.free()


@pytest.mark.parametrize("write", ["host_write", "device_write"])
@pytest.mark.parametrize("which", BOTH)
def test_the_end_of_a_write_hides_no_error(which: Any, write: str, dev: Device) -> None:
    buf = which(SIZE, device=dev, separate=True)
    with pytest.raises(TypeError, match="NoneType"), getattr(buf, write)():
        buf.fill(1 / buf.free())


@pytest.mark.parametrize("which", BOTH)
def test_what_was_written_before_an_error_counts(which: Any, dev: Device) -> None:
    buf = which(SIZE, device=dev, separate=True)
    with pytest.raises(IndexError), buf.host_write() as array:
        array[:], array[SIZE] = NEW, 1
    assert (on_device(buf) == NEW).all()


def test_parts_of_freed_buffers(dev: Device) -> None:
    buf = new_buffer(dev).copy_from(OLD)
    part = buf.reshape(2, 5)
    buf.free()
    buf.allocate()
    with pytest.raises(ClosedError):
        part.host  # noqa: B018
    assert buf.reshape(2, 5).fill(1).host.sum() == SIZE


STRUCT = np.dtype([("number", "i4"), ("share", "f4")])
KEPT: list[tuple[Any, Any]] = [
    (STRUCT, (1, 2.0)),
    (STRUCT, np.array((1, 0.1), STRUCT)),
    ("S4", b"abcd"),
    ("S4", b"ab"),
    ("U2", "ab"),
]


@pytest.mark.parametrize(("dtype", "value"), KEPT, ids=str)
def test_fill_of_structs_and_text(dtype: Any, value: Any) -> None:
    expected = np.empty(SIZE, dtype)
    expected.fill(value)
    assert (UnifiedBuffer(SIZE, dtype, device="host").fill(value).to_numpy() == expected).all()


CHANGED: list[tuple[Any, Any, type[Exception], str]] = [
    (STRUCT, (1.5, 2.0), TypeError, "1.5"),
    (STRUCT, (1, 0.1), TypeError, "0.1"),
    (np.dtype([("pair", "i4", 2)]), ([1, 2],), TypeError, "cannot be converted exactly"),
    ("S4", b"abcdef", ValueError, "abcdef"),
    ("S4", 12345, ValueError, "12345"),
    ("U2", "abc", ValueError, "abc"),
]


@pytest.mark.parametrize(("dtype", "value", "error", "part"), CHANGED, ids=str)
def test_fill_cuts_nothing_off(dtype: Any, value: Any, error: type[Exception], part: str) -> None:
    buf = UnifiedBuffer(SIZE, dtype, device="host")
    with pytest.raises(error, match=part):
        buf.fill(value)
    assert not buf.is_allocated
