# SPDX-License-Identifier: Apache-2.0
"""isthmus.compat.pydotcompute as documented for PyDotCompute: document 003, and its API pages."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import test_document_unified as document
from pydotcompute_support import NEW, OLD, SIZE, new_buffer, on_device
from support import has_cuda, sim, trim_default_pools
from unified_support import write_on_device

import isthmus
from isthmus.compat.pydotcompute import BufferState, UnifiedBuffer, get_accelerator
from isthmus.compat.pydotcompute.core.memory_pool import get_memory_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isthmus import Device

DOOR = "from isthmus.compat.pydotcompute"
IMPORTS = {
    "from isthmus import get_memory_pool": f"{DOOR}.core.memory_pool import get_memory_pool",
    "from isthmus import ": f"{DOOR} import ",
}


def of_the_door(block: str) -> str:
    """The document's block with its imports replaced by those of this package."""
    for ours, theirs in IMPORTS.items():
        block = block.replace(ours, theirs)
    return block


def add_one(array: Any) -> None:
    """A kernel for arrays of whichever library the device uses."""
    if isinstance(array, isthmus.Array):
        document.add_one(array)
    else:
        array += 1


class Runtime(document.Runtime):
    async def send(self, actor: str, message: Any) -> None:
        buf = self.space["buffers"][message.buffer_id]
        add_one(buf.device)
        buf.mark_device_dirty()
        of = slice(message.offset, message.offset + message.size)
        self.sums.append(float(buf.to_numpy()[of].sum()))


def names() -> dict[str, Any]:
    space = document.names()
    space |= dict.fromkeys(("my_kernel", "gpu_kernel", "process", "process_on_gpu"), add_one)
    space |= {
        "runtime": Runtime(space),
        "UnifiedBuffer": UnifiedBuffer,
        "get_memory_pool": get_memory_pool,
    }
    return space


@contextmanager
def emptied() -> Iterator[None]:
    try:
        yield
    finally:
        get_memory_pool().clear()


async def outcome_of(text: str, dev: Device) -> dict[str, Any]:
    space = names()
    with dev.default_queue:
        await document.run(of_the_door(document.block_with(text)), space)
    return space


async def test_all_blocks(dev: Device) -> None:
    space = names()
    printed: list[str] = []
    trim_default_pools(dev)
    with emptied(), dev.default_queue:
        for block in document.BLOCKS:
            printed += await document.run(of_the_door(block), space)
    assert space["UnifiedBuffer"] is UnifiedBuffer
    assert space["get_memory_pool"] is get_memory_pool
    assert printed[:2] == ["HOST_DIRTY", "SYNCHRONIZED"]
    name, megabytes, unit = printed[2].split()
    assert (name, unit) == ("Allocated:", "MB")
    assert 40.0 <= float(megabytes) <= 42.0  # a pool obtains driver memory in whole chunks


async def test_results_of_work_on_the_device(dev: Device) -> None:
    explicit = await outcome_of("# Explicitly sync before kernel launch", dev)
    assert (explicit["result"] == np.arange(1000) + 1).all()
    read = await outcome_of("gpu_kernel(buf.device)", dev)
    assert (read["result"] == np.arange(1000) * 2 + 1).all()
    sent = await outcome_of("create_work_buffer", dev)
    assert sent["runtime"].sums == [float((np.arange(1000) + 1).sum())]
    swapped = await outcome_of("buf_a, buf_b = buf_b, buf_a", dev)
    assert (swapped["buf_a"].host == np.arange(1000) + 3).all()


async def test_the_pool_returns_the_same_buffer(dev: Device) -> None:
    with emptied():
        space = await outcome_of("# Acquire from pool", dev)
        assert space["buf2"] is space["buf"]
        assert isinstance(space["buf"], UnifiedBuffer)
        assert len((await outcome_of("results.append", dev))["results"]) == 4


def test_without_a_gpu_the_devices_array_is_numpys() -> None:
    if has_cuda():
        pytest.skip("there is a CUDA device")
    buf: UnifiedBuffer[np.float32] = UnifiedBuffer((SIZE,))
    buf.host[:] = OLD
    assert isinstance(buf.device, np.ndarray)
    assert np.shares_memory(buf.device, buf.host)
    buf.device[:] += 1
    buf.mark_device_dirty()
    assert (buf.to_numpy() == OLD + 1).all()


def test_a_chosen_device_is_used() -> None:
    chosen = sim()
    with chosen:
        assert UnifiedBuffer(SIZE).queue == chosen.default_queue
    with isthmus.Queue(chosen) as queue:
        assert UnifiedBuffer(SIZE).queue == queue
    with isthmus.Device("host"):
        assert UnifiedBuffer(SIZE, device=chosen).queue == chosen.default_queue


def test_state_tracking(dev: Device) -> None:
    buf = new_buffer(dev, 100)
    assert str(buf.state) == "UNINITIALIZED"
    buf.host[:] = 1.0
    assert str(buf.state) == "HOST_DIRTY"
    buf.sync_to_device()
    assert str(buf.state) == "SYNCHRONIZED"
    assert (on_device(buf) == 1).all()


def test_explicit_synchronization(dev: Device) -> None:
    buf = new_buffer(dev)
    buf.host[:] = OLD
    buf.sync_to_device()
    write_on_device(buf, NEW)
    assert buf.state is BufferState.DEVICE_DIRTY
    buf.sync_to_host()
    assert buf.state is BufferState.SYNCHRONIZED
    assert (buf.host == NEW).all()


def test_to_numpy_is_a_copy(dev: Device) -> None:
    buf = new_buffer(dev).copy_from(OLD)
    taken = buf.to_numpy()
    buf.host[:] = NEW
    assert (taken == OLD).all()
    taken[:] = 0
    assert (buf.host == NEW).all()


def test_pinned(dev: Device) -> None:
    buf = new_buffer(dev, pinned=True)
    buf.host[:] = OLD
    assert (on_device(buf) == OLD).all()


def test_monitoring() -> None:
    accelerator = get_accelerator()
    free, total = accelerator.get_memory_info()
    assert 0 < free <= total
    with sim(capacity="64MiB"):
        before, total = accelerator.get_memory_info()
        assert total == 64 << 20
        kept = UnifiedBuffer((1 << 20,))
        _ = kept.device
        assert before - accelerator.get_memory_info()["free"] >= 4 << 20
