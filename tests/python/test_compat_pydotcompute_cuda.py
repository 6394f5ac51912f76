# SPDX-License-Identifier: Apache-2.0
"""isthmus.compat.pydotcompute on a CUDA device: its arrays are CuPy's, in CuPy's stream order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import has_gpu, python

from isthmus import Array, BufferState, Queue
from isthmus.compat.pydotcompute import MemoryPool, UnifiedBuffer, get_accelerator

if TYPE_CHECKING:
    from types import ModuleType

SIZE = 1 << 22


@pytest.fixture
def cupy() -> ModuleType:
    if not has_gpu():
        pytest.skip("no CUDA device")
    return pytest.importorskip("cupy")


def test_the_devices_array_is_cupys(cupy: ModuleType) -> None:
    buf: Any = UnifiedBuffer((30, 40), np.float64)
    buf.host[:] = np.arange(1200).reshape(30, 40)
    array = buf.device
    assert isinstance(array, cupy.ndarray)
    assert (array.shape, array.dtype) == ((30, 40), np.float64)
    assert array.device.id == 0
    assert (array.get() == buf.host).all()
    assert buf.device.data.ptr == array.data.ptr
    assert buf.queue == Queue.from_stream(cupy.cuda.get_current_stream(), "cuda:0")
    assert get_accelerator().current_device.device_id == 0


def test_in_the_order_of_its_stream(cupy: ModuleType) -> None:
    """Without explicit waits on either side, each read returns what the last kernel wrote."""
    buf = UnifiedBuffer(SIZE).fill(1).allocate()
    expected = np.float32(1)
    for turn in range(20):
        array = buf.device
        for _ in range(20):
            array += 1
        buf.mark_device_dirty()
        expected += 20
        assert buf.host[-1] == buf.host[turn] == expected
        buf.host[:] += 1
        expected += 1
    assert (buf.device == expected).all()


@pytest.mark.parametrize("which", ["current", "later"])
def test_on_a_stream_of_ones_own(cupy: ModuleType, which: str) -> None:
    """The stream is current at the constructor, or only later: the null stream then waits."""
    stream = cupy.cuda.Stream()
    with stream if which == "current" else cupy.cuda.Stream.null:
        buf = UnifiedBuffer(SIZE).fill(1)
        _ = buf.device
    with stream:
        array = buf.device
        for _ in range(50):
            array += 1
    buf.mark_device_dirty()
    assert (buf.host == 51).all()


def test_a_queue_that_was_chosen_is_kept(cupy: ModuleType) -> None:
    chosen = Queue("cuda:0")
    with chosen:
        buf: Any = UnifiedBuffer(10).fill(2)
    assert buf.queue == chosen
    # An Array, because the queue is not in the order of CuPy's stream
    assert isinstance(buf.device, Array)
    buf.free()
    assert (buf.fill(3).device.to_numpy() == 3).all()


def test_a_device_that_was_chosen(cupy: ModuleType) -> None:
    stream = Queue.from_stream(cupy.cuda.get_current_stream(), "cuda:0")
    assert UnifiedBuffer(10, device="cuda:0").queue == stream
    pool = MemoryPool(max_pool_size=1)
    for found in (pool.acquire(10), pool.acquire(10, device="cuda:0")):
        assert isinstance(found.device, cupy.ndarray)


def test_of_the_pool_s_memory(cupy: ModuleType) -> None:
    pool = MemoryPool(max_pool_size=1)
    pool.enable()
    try:
        buf = UnifiedBuffer(SIZE).fill(1)
        assert (buf.device == 1).all()
        assert pool.get_stats().used_bytes == 4 * SIZE
    finally:
        pool.disable()


def test_memory_outlives_the_buffer_while_a_kernel_runs(cupy: ModuleType) -> None:
    sums = []
    for number in range(20):
        buf = UnifiedBuffer(SIZE).fill(number)
        array = buf.device
        for _ in range(20):
            array += 1
        sums.append(array[:1].copy())
        buf.free()
        del buf, array
    assert [float(each[0]) for each in sums] == [number + 20 for number in range(20)]


async def test_while_other_tasks_run(cupy: ModuleType) -> None:
    buf = UnifiedBuffer(SIZE).fill(1)
    await buf.ensure_on_device()
    assert buf.state is BufferState.SYNCHRONIZED
    array = buf.device
    array *= 5
    buf.mark_device_dirty()
    await buf.ensure_on_host()
    assert (buf.host == 5).all()


def test_without_cupy_it_is_isthmus_array(cupy: ModuleType) -> None:
    python("""
import sys
sys.modules["cupy"] = None
import isthmus
from isthmus.compat.pydotcompute import UnifiedBuffer
buf = UnifiedBuffer(100).fill(3)
assert isinstance(buf.device, isthmus.Array)
assert (buf.device.to_numpy() == 3).all()
""")


def test_a_program_that_also_uses_pydotcompute(cupy: ModuleType) -> None:
    peer = pytest.importorskip("pydotcompute")

    def program(make: Any) -> list[float]:
        buf = make((1000,)).allocate()
        seen = []
        for turn in range(10):
            buf[turn] = turn * 3
            buf.fill(turn)
            buf.mark_host_dirty()
            array = buf.device
            array += cupy.arange(1000, dtype=np.float32)
            buf.mark_device_dirty()
            buf.synchronize()
            seen.append(float(buf.host.sum()))
        buf.free()
        return seen

    assert program(UnifiedBuffer) == program(peer.UnifiedBuffer)
