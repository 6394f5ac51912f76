# SPDX-License-Identifier: Apache-2.0
"""Six measured faults of dpctl 0.22.1, one test each: Isthmus has none of them."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from support import filled, is_memory_released, message_has, noise, sim, until

import isthmus
from isthmus import Buffer, Context, Event, Queue
from isthmus.memory import (
    MemoryUSMDevice,
    MemoryUSMShared,
    USMAllocationError,
    as_usm_memory,
    live,
)


class Foreign:
    def __init__(self, interface: dict[str, object]) -> None:
        self.__sycl_usm_array_interface__ = interface


@pytest.fixture
def q() -> Queue:
    return Queue("opencl")


def test_1_copy_true_leaks_its_source(q: Queue) -> None:
    # dpctl: "`MemoryUSMDevice(shared_mem, copy=True)` leaks the source: `_cinit_alloc` clears the
    # copied smart pointer without releasing it. 6 x 32 MiB leaves 192 MiB."
    before = live()
    for _ in range(6):
        MemoryUSMDevice(MemoryUSMShared(32 << 20, queue=q), copy=True)
    assert is_memory_released(before)


def test_2_failed_copies_are_silent(q: Queue) -> None:
    # dpctl: "copy_to_host, copy_from_host, copy_from_device ignore a failed submission (null
    # event): a view whose shape overruns its allocation copies nothing and raises nothing; the
    # destination keeps its old bytes."
    memory = MemoryUSMDevice(4096, queue=q)
    overrun = Foreign(memory.__sycl_usm_array_interface__ | {"shape": (1 << 30,)})
    with pytest.raises(isthmus.OutOfRangeError):
        as_usm_memory(overrun)
    with pytest.raises(isthmus.OutOfRangeError):
        MemoryUSMDevice(overrun)
    with pytest.raises(isthmus.OutOfRangeError):
        MemoryUSMDevice(4096, queue=q).copy_from_device(overrun)
    with pytest.raises(isthmus.OutOfRangeError):
        q.memcpy(memory, bytes(8192), 8192)


def test_2_a_driver_that_refuses_a_copy_is_heard() -> None:
    device = sim()
    memory = MemoryUSMDevice(4096, queue=Queue(device))
    for copy in (
        lambda: memory.copy_from_host(bytes(4096)),
        lambda: memory.copy_to_host(bytearray(4096)),
        lambda: memory.copy_from_device(MemoryUSMDevice(64, queue=memory.sycl_queue)),
    ):
        isthmus._core.sim_configure(device, "fail=copy:1")
        with pytest.raises(isthmus.DriverError):
            copy()


def test_3_a_wrong_context_kills_the_process(q: Queue) -> None:
    # dpctl: "An interface whose `syclobj` is a SyclContext the pointer does not belong to kills the
    # process (uncaught sycl::exception out of `DPCTLUSM_GetPointerDevice`, rc 134)."
    memory = MemoryUSMDevice(64, queue=q)
    other = Context(q.device)
    told = memory.__sycl_usm_array_interface__ | {"syclobj": other}
    with pytest.raises(isthmus.WrongContextError):
        as_usm_memory(Foreign(told))
    assert memory.get_usm_type(other) == "unknown"


def test_4_a_copy_outlives_its_source(q: Queue) -> None:
    # dpctl: "`e = q.memcpy_async(dev, arr, n); del arr; e.wait()` segfaults for 1 GiB (rc 139)."
    nbytes = 256 << 20
    device = Buffer(nbytes, queue=q)
    array = np.arange(nbytes // 8)
    event = q.memcpy_async(device, array, nbytes)
    del array
    gc.collect()
    event.wait()
    assert device[-8:].to_numpy().view(np.int64)[0] == nbytes // 8 - 1


def test_5_freeing_a_destination_blocks(q: Queue) -> None:
    # dpctl: "Freeing the destination of a copy in flight blocks the caller until it is done (184 ms
    # for 1 GiB)". Here an event that completes only after the free has returned delays the copy.
    gate = Event()
    destination = Buffer(4096, queue=q)
    before = live()
    event = destination.copy_from(noise(4096), after=[gate], blocking=False)
    assert event is not None
    destination.free()
    del destination
    assert not event.done
    gate.complete()
    event.wait()
    assert until(lambda: live()[0] == before[0] - 1)


def test_6_more_memory_than_there_is(q: Queue) -> None:
    # dpctl: "50 x 4 GiB of untouched device memory "succeed" on a 24 GiB machine; the kernel
    # decides later. max_mem_alloc_size is half of memory."
    held: list[Buffer] = []
    with pytest.raises(USMAllocationError) as error:
        held.extend(Buffer(4 << 30, queue=q) for _ in range(50))
    assert sum(buffer.nbytes for buffer in held) <= q.device.total_memory
    message_has(error, ["4 GiB", q.device.filter])
    held.clear()
    small = filled(noise(100), kind="device", queue=q)
    assert small.tobytes() == noise(100).tobytes()
