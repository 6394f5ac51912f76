# SPDX-License-Identifier: Apache-2.0
"""isthmus.compat.pydotcompute as PyDotCompute 0.2.0: explicit allocation, dirty marks and free."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydotcompute_support import NEW, OLD, SIZE, STATES, either_way, in_state, new_buffer, on_device
from unified_support import write_on_device

import isthmus
from isthmus.compat.pydotcompute import BufferState, UnifiedBuffer

if TYPE_CHECKING:
    from isthmus import Device

pytestmark = pytest.mark.sim_and_host
EVERY_STATE = pytest.mark.parametrize("state", STATES, ids=str)


def test_it_is_isthmus_buffer(dev: Device) -> None:
    buf = new_buffer(dev)
    assert isinstance(buf, isthmus.UnifiedBuffer)
    buf.host[:] = OLD
    isthmus.synchronize([buf])
    assert buf.state is BufferState.SYNCHRONIZED
    assert UnifiedBuffer[np.float32](SIZE).dtype == np.float32


ALLOCATED = {
    (True, True): BufferState.SYNCHRONIZED,
    (True, False): BufferState.HOST_ONLY,
    (False, True): BufferState.DEVICE_ONLY,
    (False, False): BufferState.HOST_ONLY,
}


@either_way
@pytest.mark.parametrize("sides", ALLOCATED)
def test_allocate(dev: Device, separate: bool, sides: tuple[bool, bool]) -> None:
    buf = new_buffer(dev, separate=separate)
    assert not buf.is_allocated
    host, device = sides
    assert buf.allocate(host=host, device=device) is buf
    assert buf.is_allocated
    assert buf.state is ALLOCATED[sides]
    assert buf.host.shape == (SIZE,)


def test_allocate_takes_keywords(dev: Device) -> None:
    with pytest.raises(TypeError):
        new_buffer(dev).allocate(True)


def test_allocated_copies_hold_the_same(dev: Device) -> None:
    buf = new_buffer(dev).allocate()
    assert buf.state is BufferState.SYNCHRONIZED
    assert (on_device(buf) == buf.host).all()


@pytest.mark.parametrize("shape", [7, (7,), [7], (2, 3), (2, 3, 4), ()], ids=str)
def test_shapes(dev: Device, shape: Any) -> None:
    buf = new_buffer(dev, shape).allocate()
    assert buf.shape == np.empty(shape).shape
    assert buf.size == np.empty(shape).size
    assert buf.nbytes == buf.size * 4
    if buf.shape:
        assert len(buf) == buf.shape[0]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u2", "c8", "?"])
def test_dtypes(dev: Device, dtype: str) -> None:
    buf = new_buffer(dev, dtype=dtype).allocate().fill(1)
    assert buf.dtype == buf.host.dtype == np.dtype(dtype)
    assert (on_device(buf) == np.ones(SIZE, dtype)).all()


@EVERY_STATE
@pytest.mark.every_backend
def test_contents_from_any_state(dev: Device, state: BufferState) -> None:
    for write, expected in (
        (lambda buf: buf.copy_from(NEW), NEW),
        (lambda buf: buf.fill(np.float32(7)), np.full(SIZE, 7)),
        (lambda buf: buf.zeros(), np.zeros(SIZE)),
    ):
        buf = in_state(dev, state)
        write(buf)
        assert buf.state is BufferState.HOST_DIRTY
        assert (buf.host == expected).all()
        assert (on_device(buf) == expected).all()


def test_fill_and_zeros_chain(dev: Device) -> None:
    buf = new_buffer(dev)
    assert buf.fill(3) is buf
    assert buf.zeros() is buf


@pytest.mark.parametrize(
    "source",
    [list(range(SIZE)), 7, 7.5, np.float64(2), np.arange(SIZE), np.ones((1, SIZE)), [3.5]],
    ids=repr,
)
def test_sources(dev: Device, source: Any) -> None:
    buf = new_buffer(dev)
    buf.copy_from(source)
    expected = np.empty(SIZE, np.float32)
    np.copyto(expected, source)
    assert (on_device(buf) == expected).all()


@pytest.mark.every_backend
def test_copy_to(dev: Device) -> None:
    buf = in_state(dev, BufferState.DEVICE_DIRTY)
    target = np.zeros(SIZE)
    assert buf.copy_to(target) is None
    assert (target == NEW).all()


def test_indices_are_numpys(dev: Device) -> None:
    buf = new_buffer(dev, (4, 5)).allocate()
    buf[:] = np.arange(20).reshape(4, 5)
    buf[1, 2] = 42
    buf[2][3] = 43
    assert buf[1, 2] == 42
    assert buf[2, 3] == 43
    assert isinstance(buf[1:3], np.ndarray)
    assert buf[1:3].sum() == buf.host[1:3].sum()
    assert [row.tolist() for row in buf] == buf.host.tolist()
    assert (on_device(buf) == buf.host).all()


def test_indexing_reads_device_writes(dev: Device) -> None:
    buf = in_state(dev, BufferState.DEVICE_DIRTY)
    assert buf[3] == NEW[3]
    write_on_device(buf, OLD)
    buf[3] = -1
    assert buf.state is BufferState.HOST_DIRTY
    assert on_device(buf).tolist() == [*OLD[:3], -1, *OLD[4:]]


@pytest.mark.every_backend
async def test_ensure(dev: Device) -> None:
    buf = in_state(dev, BufferState.HOST_DIRTY)
    assert await buf.ensure_on_device() is None
    assert buf.state is BufferState.SYNCHRONIZED
    assert (on_device(buf) == NEW).all()
    write_on_device(buf, OLD)
    assert await buf.ensure_on_host() is None
    assert buf.state is BufferState.SYNCHRONIZED
    assert (buf.host == OLD).all()


async def test_ensure_allocates(dev: Device) -> None:
    buf = new_buffer(dev)
    await buf.ensure_on_host()
    assert buf.is_allocated
    buf.free()
    await buf.ensure_on_device()
    assert buf.state is BufferState.DEVICE_ONLY


@either_way
@EVERY_STATE
def test_free_and_again(dev: Device, state: BufferState, separate: bool) -> None:
    buf = in_state(dev, state, separate=separate) if separate else new_buffer(dev, separate=False)
    for data in (NEW, OLD, NEW):
        buf.free()
        assert not buf.is_allocated
        assert buf.state is BufferState.UNINITIALIZED
        buf.free()
        buf.allocate()
        buf.host[:] = data
        assert (on_device(buf) == data).all()
        write_on_device(buf, data + 1)
        assert (buf.to_numpy() == data + 1).all()
        assert (np.asarray(buf) == data + 1).all()


def test_free_returns_the_memory() -> None:
    from support import sim

    device = sim()
    buf = new_buffer(device, 1 << 20).allocate()
    pool = isthmus.default_pool("device", device, use="buffers")
    assert pool.held_bytes - pool.free_bytes >= 4 << 20
    buf.free()
    gc.collect()
    pool.trim()
    assert isthmus._core.sim_state(device)[1] == 0


def test_arrays_outlive_free(dev: Device) -> None:
    buf = new_buffer(dev).copy_from(OLD)
    kept = buf.host
    buf.free()
    buf.copy_from(NEW)
    assert (kept == OLD).all()
    assert (buf.host == NEW).all()


def test_a_memoryview_is_never_of_freed_memory(dev: Device) -> None:
    buf = new_buffer(dev).copy_from(OLD)
    buf.free()
    buf.copy_from(NEW)
    with pytest.raises(isthmus.ClosedError):
        memoryview(buf)
    assert memoryview(buf.host).tolist() == NEW.tolist()


@pytest.mark.every_backend
def test_with(dev: Device) -> None:
    with new_buffer(dev) as buf:
        buf.copy_from(OLD)
    assert not buf.is_allocated
    assert buf.fill(2)[0] == 2


def pickled(buf: Any) -> Any:
    return pickle.loads(pickle.dumps(buf))


@EVERY_STATE
@pytest.mark.parametrize("freed", [False, True], ids=["new", "freed_before"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_copies(dev: Device, state: BufferState, freed: bool, copied: Any) -> None:
    if copied is pickled and dev.backend == "sim":
        pytest.skip("a simulated device of a test's own cannot be found again by its filter")
    buf = in_state(dev, state, pinned=True)
    if freed:
        buf.free()
        STATES[state](buf)
    had = buf.to_numpy()
    other = copied(buf)
    assert type(other) is UnifiedBuffer
    assert other.queue.device == dev
    other.host[:] += 1
    assert (buf.to_numpy() == had).all()
    assert (on_device(other) == had + 1).all()


def test_repr(dev: Device) -> None:
    buf = new_buffer(dev)
    assert all(part in repr(buf) for part in ("UnifiedBuffer", "(10,)", "float32", "UNINITIALIZED"))
    buf.allocate().free()
    assert "UNINITIALIZED" in repr(buf)
