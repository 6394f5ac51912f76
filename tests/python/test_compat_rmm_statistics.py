# SPDX-License-Identifier: Apache-2.0
"""Counters, their stack, and the profiler, by RMM's interface."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from compat_rmm_support import on
from support import is_memory_released

import isthmus
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.compat.rmm import statistics as module
from isthmus.compat.rmm.pylibrmm.stream import Stream
from isthmus.compat.rmm.statistics import (
    ProfilerRecords,
    Statistics,
    default_profiler_records,
    enable_statistics,
    get_statistics,
    pop_statistics,
    profiler,
    push_statistics,
    statistics,
)

if TYPE_CHECKING:
    from isthmus import Device, Event

__all__ = ["on"]
pytestmark = pytest.mark.sim_and_host


def counts(*numbers: int) -> Statistics:
    """(bytes, count) pairs: current, peak and total."""
    return Statistics(*numbers)


@pytest.fixture
def counted(on: Device) -> None:
    """Statistics over a pool, whose counts fall as soon as a buffer ends."""
    mr.set_current_device_resource(mr.PoolMemoryResource(mr.CudaMemoryResource()))
    enable_statistics()


def now() -> Statistics:
    found = get_statistics()
    assert found is not None
    return found


def test_disabled(on: Device) -> None:
    assert get_statistics() is None
    assert push_statistics() is None
    assert pop_statistics() is None


def test_enable(counted: None) -> None:
    resource = mr.get_current_device_resource()
    assert isinstance(resource, mr.StatisticsResourceAdaptor)
    enable_statistics()
    assert mr.get_current_device_resource() is resource
    buffers = [DeviceBuffer(size=1000) for _ in range(10)]
    del buffers[::2]
    assert now() == counts(5000, 5, 10_000, 10, 10_000, 10)
    buffers.clear()
    assert now() == counts(0, 0, 10_000, 10, 10_000, 10)


def test_adaptors_on_one_another(counted: None) -> None:
    below: Any = mr.get_current_device_resource()
    kept = DeviceBuffer(size=100)
    above = mr.StatisticsResourceAdaptor(below)
    other = DeviceBuffer(size=10, mr=above)
    assert above.allocation_counts == counts(10, 1, 10, 1, 10, 1)
    assert below.allocation_counts == counts(110, 2, 110, 2, 110, 2)
    del kept, other
    assert above.allocation_counts == counts(0, 0, 10, 1, 10, 1)


def test_the_stack(counted: None) -> None:
    first = [DeviceBuffer(size=10) for _ in range(3)]
    assert push_statistics() == counts(30, 3, 30, 3, 30, 3)
    assert now() == counts(0, 0, 0, 0, 0, 0)
    second = DeviceBuffer(size=7)
    assert push_statistics() == counts(7, 1, 7, 1, 7, 1)
    third = DeviceBuffer(size=5)
    assert pop_statistics() == counts(5, 1, 5, 1, 5, 1)
    assert now() == counts(12, 2, 12, 2, 12, 2)
    del third
    assert pop_statistics() == counts(7, 1, 12, 2, 12, 2)
    assert now() == counts(37, 4, 42, 5, 42, 5)
    del first, second
    with pytest.raises(IndexError, match="cannot pop the last counter pair"):
        pop_statistics()


def test_the_end_of_older_memory_is_counted(counted: None) -> None:
    """Current counts become negative, as in RMM, and the peaks are those of these counts."""
    before = [DeviceBuffer(size=10), DeviceBuffer(size=20)]
    push_statistics()
    push_statistics()
    before.pop(0)
    assert now() == counts(-10, -1, 0, 0, 0, 0)
    DeviceBuffer(size=7)
    assert pop_statistics() == counts(-10, -1, 0, 0, 7, 1)
    DeviceBuffer(size=15)
    assert now() == counts(-10, -1, 5, 0, 22, 2)
    before.clear()
    assert pop_statistics() == counts(-30, -2, 5, 0, 22, 2)
    assert now() == counts(0, 0, 35, 2, 52, 4)


def test_older_memory_that_another_thread_frees(on: Device, counted: None) -> None:
    before = [DeviceBuffer(size=10)]
    push_statistics()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(before.clear).result()
    assert pop_statistics() == counts(0, 0, 0, 0, 0, 0)
    assert now() == counts(0, 0, 10, 1, 10, 1)


@pytest.mark.every_backend
def test_counts_fall_when_the_caller_frees(on: Device, gate: Event) -> None:
    """They do not wait for the release to the driver, which follows the work on the block."""
    own, before = Stream(), isthmus.memory.live()
    counted = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    tracked = mr.TrackingResourceAdaptor(counted)
    limited = mr.LimitingResourceAdaptor(tracked, 1 << 20)
    made = DeviceBuffer(size=1000, mr=limited, stream=own)
    address = limited.allocate(500, own)
    own.queue.fence(after=gate)
    made.buffer.record(own.queue)
    limited.deallocate(address, 500, own)
    assert tracked.get_allocated_bytes() == limited.get_allocated_bytes() == 1000
    counted.push_counters()
    del made
    assert counted.pop_counters() == counts(-1000, -1, 0, 0, 0, 0)
    assert counted.allocation_counts == counts(0, 0, 1500, 2, 1500, 2)
    assert tracked.get_outstanding_allocations_str() == ""
    assert tracked.get_allocated_bytes() == limited.get_allocated_bytes() == 0
    gate.complete()
    own.synchronize()
    assert is_memory_released(before)
    assert counted.allocation_counts == counts(0, 0, 1500, 2, 1500, 2)
    assert limited.get_allocated_bytes() == 0


def test_pushed_counters_are_the_threads(on: Device, counted: None) -> None:
    """RMM's stack is process-wide, so one thread pops counters that another one pushed."""
    start, done = threading.Barrier(4), threading.Barrier(4)

    def work(number: int) -> Statistics | None:
        with on:
            start.wait()
            push_statistics()
            kept = [DeviceBuffer(size=number) for _ in range(100)]
            done.wait()
            del kept
            return pop_statistics()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(work, range(1, 5)))
    assert found == [counts(0, 0, 100 * n, 100, 100 * n, 100) for n in range(1, 5)]
    assert now().total_count == 400

    def pop_elsewhere() -> None:
        with on, pytest.raises(IndexError):
            pop_statistics()

    push_statistics()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(pop_elsewhere).result()
    pop_statistics()


def test_tasks(counted: None) -> None:
    async def task(nbytes: int) -> Statistics | None:
        push_statistics()
        kept = []
        for _ in range(10):
            kept.append(DeviceBuffer(size=nbytes))
            await asyncio.sleep(0)
        return pop_statistics()

    async def both() -> list[Statistics | None]:
        return await asyncio.gather(task(10), task(1000))

    assert asyncio.run(both()) == [counts(n, 10, n, 10, n, 10) for n in (100, 10_000)]


def test_counters_of_two_resources_end_in_reverse(on: Device) -> None:
    first, second = (mr.StatisticsResourceAdaptor(mr.CudaMemoryResource()) for _ in range(2))
    first.push_counters()
    second.push_counters()
    with pytest.raises(RuntimeError, match="reverse order"):
        first.pop_counters()
    second.pop_counters()
    assert first.pop_counters() == counts(0, 0, 0, 0, 0, 0)


def test_the_context(on: Device) -> None:
    before = mr.get_current_device_resource()
    with statistics():
        inside = mr.get_current_device_resource()
        assert isinstance(inside, mr.StatisticsResourceAdaptor)
        first = DeviceBuffer(size=20)
        assert now() == counts(20, 1, 20, 1, 20, 1)
        with statistics():
            assert mr.get_current_device_resource() is inside
            second = DeviceBuffer(size=10)
            assert now() == counts(10, 1, 10, 1, 10, 1)
        assert now() == counts(30, 2, 30, 2, 30, 2)
    assert mr.get_current_device_resource() is before
    assert get_statistics() is None
    del first, second


def test_the_context_of_a_changed_resource(on: Device) -> None:
    with pytest.raises(ValueError, match="was changed"), statistics():
        mr.set_current_device_resource(mr.CudaMemoryResource())
    with pytest.raises(KeyError), statistics():
        raise KeyError
    assert get_statistics() is None


def test_a_changed_resource_leaves_no_counters(counted: None) -> None:
    before = mr.get_current_device_resource()

    def change(error: type[Exception] | None) -> None:
        with statistics():
            mr.set_current_device_resource(mr.CudaMemoryResource())
            if error is not None:
                raise error

    for error, wanted in ((None, ValueError), (KeyError, KeyError)):
        with pytest.raises(wanted):
            change(error)
        assert mr.get_current_device_resource() is not before
        mr.set_current_device_resource(before)
        with pytest.raises(IndexError):
            pop_statistics()


def test_a_profiler_pops_counters_of_other_resources(counted: None) -> None:
    before, records = mr.get_current_device_resource(), ProfilerRecords()
    with profiler(records=records, name="a"):
        DeviceBuffer(size=10)
        mr.set_current_device_resource(mr.StatisticsResourceAdaptor(mr.CudaMemoryResource()))
        push_statistics()
    assert records.records["a"].memory_total == 10
    with pytest.raises(IndexError):
        pop_statistics()
    mr.set_current_device_resource(before)
    with pytest.raises(IndexError):
        pop_statistics()


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("make", [statistics, lambda: profiler(name="block")])
def test_blocks_are_left_where_they_were_entered(
    on: Device, counted: None, make: Any, in_thread: bool
) -> None:
    async def enter_and_have_others_leave() -> None:
        block = make()
        block.__enter__()

        def leave() -> None:
            with on, pytest.raises(RuntimeError, match="thread or task"):
                block.__exit__(None, None, None)

        async def leave_in_a_task() -> None:
            leave()

        if in_thread:
            await asyncio.get_running_loop().run_in_executor(None, leave)
        else:
            await asyncio.create_task(leave_in_a_task())

    asyncio.run(enter_and_have_others_leave())


def test_a_block_whose_counters_were_popped(counted: None) -> None:
    with pytest.raises(RuntimeError, match="popped"), statistics():
        pop_statistics()


def test_records() -> None:
    records = ProfilerRecords()
    assert "No data" in records.report()
    records.add("a", counts(0, 0, 100, 1, 300, 3))
    records.add("a", counts(0, 0, 200, 1, 300, 3))
    records.add("b", counts(0, 0, 50, 1, 1_000_000, 9))
    assert records.records == {
        "a": ProfilerRecords.MemoryRecord(num_calls=2, memory_total=600, memory_peak=200),
        "b": ProfilerRecords.MemoryRecord(1, 1_000_000, 50),
    }
    assert records.records["a"] is not records.records["a"]
    rows = [line.split() for line in records.report().splitlines()[-2:]]
    assert rows == [["2", "200", "600", "a"], ["1", "50", "1,000,000", "b"]]
    assert records.report("memory_total").splitlines()[-1].endswith(" a")
    assert str(records) == records.report("memory_peak")
    assert "'a'" in repr(records)
    with pytest.raises(ValueError, match="'size'"):
        records.report("size")  # type: ignore[arg-type]


def test_profiler_of_functions(counted: None) -> None:
    records = ProfilerRecords()

    @profiler(records=records)
    def outer(nbytes: int, *, keep: bool = False) -> DeviceBuffer | None:
        """Text."""
        one = DeviceBuffer(size=nbytes)
        inner(one)
        return one if keep else None

    @profiler(records=records, name="inner")
    def inner(one: DeviceBuffer) -> None:
        DeviceBuffer(size=10)
        DeviceBuffer(size=10)

    kept = outer(100, keep=True)
    outer(1000)
    assert (outer.__name__, outer.__doc__) == ("outer", "Text.")
    found = records.records
    assert found.pop("inner") == ProfilerRecords.MemoryRecord(2, 40, 10)
    (name, record), *rest = found.items()
    assert record == ProfilerRecords.MemoryRecord(2, 1140, 1010)
    assert name.startswith(f"{__file__}:")
    assert name.endswith("(test_profiler_of_functions.<locals>.outer)")
    assert not rest
    del kept


def test_profiler_of_other_objects(counted: None) -> None:
    records = ProfilerRecords()
    assert profiler(records=records)(len)("abc") == 3
    assert list(records.records) == ["len"]


def test_profiler_of_blocks(counted: None) -> None:
    default_profiler_records._records.clear()
    block = profiler(name="block")
    for _ in range(2):
        with block:
            DeviceBuffer(size=100)
            with block, profiler(name="inside"):
                DeviceBuffer(size=10)
    assert default_profiler_records.records == {
        "block": ProfilerRecords.MemoryRecord(4, 240, 100),
        "inside": ProfilerRecords.MemoryRecord(2, 20, 10),
    }
    assert "block" in default_profiler_records.report()
    default_profiler_records._records.clear()
    with pytest.raises(ValueError, match="needs a name"), profiler():
        pass


def test_profiler_of_failing_functions(counted: None) -> None:
    records = ProfilerRecords()

    def fail() -> None:
        with profiler(records=records, name="a"):
            DeviceBuffer(size=10)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert records.records["a"].memory_total == 10
    with pytest.raises(IndexError):
        pop_statistics()


def test_profiler_without_statistics(on: Device) -> None:
    records = ProfilerRecords()
    with profiler(records=records, name="a"):
        enable_statistics()  # too late for this block
        DeviceBuffer(size=10)
    assert records.records == {}
    with profiler(records=records, name="b"):
        mr.set_current_device_resource(mr.CudaMemoryResource())
        DeviceBuffer(size=10)
    assert records.records == {"b": ProfilerRecords.MemoryRecord(1, 0, 0)}


def test_profilers_of_threads(on: Device, counted: None) -> None:
    records = ProfilerRecords()
    start = threading.Barrier(4)
    shared = profiler(records=records, name="block")

    def work(number: int) -> None:
        with on:
            start.wait()
            for _ in range(50):
                with shared:
                    DeviceBuffer(size=100)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert records.records == {"block": ProfilerRecords.MemoryRecord(200, 20_000, 100)}


def test_names() -> None:
    assert all(hasattr(module, name) for name in module.__all__)
