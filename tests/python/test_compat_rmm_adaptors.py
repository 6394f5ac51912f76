# SPDX-License-Identifier: Apache-2.0
"""RMM's adaptors, and the program's own callbacks: counts, limits, requests, rejected arguments."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from compat_rmm_support import on, stream
from support import until

import isthmus.compat.rmm as rmm
from isthmus import Device
from isthmus.compat.rmm import DeviceBuffer, mr

if TYPE_CHECKING:
    from isthmus.compat.rmm.pylibrmm.stream import Stream

__all__ = ["on", "stream"]
pytestmark = pytest.mark.sim_and_host


def a_pool() -> mr.PoolMemoryResource:
    """A resource with stream-ordered frees: counts over it fall as soon as a buffer ends."""
    return mr.PoolMemoryResource(mr.CudaMemoryResource())


def test_limit(on: Device) -> None:
    limited = mr.LimitingResourceAdaptor(a_pool(), 1 << 20)
    assert limited.get_allocation_limit() == 1 << 20
    exactly = DeviceBuffer(size=1 << 20, mr=limited)
    assert limited.get_allocated_bytes() == 1 << 20
    with pytest.raises(MemoryError, match="1 MiB"):
        DeviceBuffer(size=1, mr=limited)
    exactly.free()
    assert limited.get_allocated_bytes() == 0
    assert DeviceBuffer(size=1000, mr=limited).size == 1000


@pytest.mark.parametrize("stacks", [False, True])
def test_tracking(on: Device, stacks: bool, caplog: pytest.LogCaptureFixture) -> None:
    tracked = mr.TrackingResourceAdaptor(a_pool(), stacks)
    assert tracked.get_outstanding_allocations_str() == ""
    held = [DeviceBuffer(size=1000, mr=tracked) for _ in range(10)]
    del held[::2]
    assert tracked.get_allocated_bytes() == 5000
    outer = mr.TrackingResourceAdaptor(tracked)
    more = [DeviceBuffer(size=1000, mr=outer) for _ in range(2)]
    assert (outer.get_allocated_bytes(), tracked.get_allocated_bytes()) == (2000, 7000)
    text = tracked.get_outstanding_allocations_str()
    assert all(hex(one.ptr) in text for one in held + more)
    assert (__file__ in text) == stacks
    rmm.set_logging_level(rmm.level_enum.debug)
    with caplog.at_level("DEBUG", "isthmus.compat.rmm"):
        tracked.log_outstanding_allocations()
    rmm.set_logging_level(rmm.level_enum.info)
    assert text in caplog.text
    del held, more
    assert tracked.get_outstanding_allocations_str() == ""
    assert tracked.get_allocated_bytes() == 0


def test_failure_callback(on: Device) -> None:
    asked: list[int] = []
    kept: list[DeviceBuffer] = []
    limited = mr.LimitingResourceAdaptor(a_pool(), 1000)

    def give_up(nbytes: int) -> bool:
        asked.append(nbytes)
        if not kept:
            return False
        kept.pop().free()
        return True

    resource = mr.FailureCallbackResourceAdaptor(limited, give_up)
    kept.append(DeviceBuffer(size=600, mr=resource))
    made = DeviceBuffer(size=700, mr=resource)
    assert (asked, kept) == ([700], [])
    with pytest.raises(MemoryError):
        DeviceBuffer(size=700, mr=resource)
    assert asked == [700, 700]
    made.free()
    with pytest.raises(TypeError, match="callable"):
        mr.FailureCallbackResourceAdaptor(limited, 3)  # type: ignore[arg-type]


class Told(Exception):
    pass


def test_what_a_failure_callback_raises(on: Device) -> None:
    def refuse(nbytes: int) -> bool:
        raise Told(nbytes)

    limited = mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), 10)
    resource = mr.FailureCallbackResourceAdaptor(limited, refuse)
    with pytest.raises(RuntimeError, match="11") as told:
        DeviceBuffer(size=11, mr=resource)
    assert isinstance(told.value.__cause__, Told)


def test_callback(on: Device, stream: Stream) -> None:
    base = mr.CudaMemoryResource()
    calls: list[tuple[Any, ...]] = []

    def allocate(nbytes: int, on_stream: Stream) -> int:
        calls.append((nbytes, on_stream))
        return base.allocate(nbytes, on_stream)

    def deallocate(pointer: int, nbytes: int, on_stream: Stream) -> None:
        calls.append((pointer, nbytes))
        base.deallocate(pointer, nbytes, on_stream)

    resource = mr.CallbackMemoryResource(allocate, deallocate)
    made = DeviceBuffer(size=256, stream=stream, mr=resource)
    made.copy_from_host(bytes(256))
    address = made.ptr
    assert made.tobytes() == bytes(256)
    stream.synchronize()
    del made
    stream.synchronize()
    assert calls[0][0] == 256
    assert calls[0][1] == stream or stream.queue == calls[0][1].queue
    rmm.reinitialize(devices=[])
    pointer = resource.allocate(100)
    resource.deallocate(pointer, 100)
    assert until(lambda: (address, 256) in calls and (pointer, 100) in calls)


def test_what_callbacks_raise(on: Device) -> None:
    for error in (MemoryError, RuntimeError, Told, KeyError, BaseException, SystemExit):
        wanted = MemoryError if error is MemoryError else RuntimeError

        def allocate(nbytes: int, on_stream: Any, error: type[BaseException] = error) -> int:
            raise error("no memory here")

        resource = mr.CallbackMemoryResource(allocate, lambda *_: None)
        for call in (
            lambda made=resource: DeviceBuffer(size=10, mr=made),
            lambda made=resource: made.allocate(10),
        ):
            with pytest.raises(wanted, match="no memory here"):
                call()


@pytest.mark.parametrize("bad", [None, "address", 1.5, -1, 1 << 64])
def test_what_callbacks_return(on: Device, bad: Any) -> None:
    resource = mr.CallbackMemoryResource(lambda *_: bad, lambda *_: None)
    with pytest.raises(RuntimeError, match="the result of allocate_func"):
        DeviceBuffer(size=10, mr=resource)


@pytest.mark.parametrize(
    "name", ["CudaMemoryResource", "ManagedMemoryResource", "PinnedHostMemoryResource"]
)
@pytest.mark.every_backend
def test_callbacks_that_return_memory_of_any_kind(on: Device, name: str) -> None:
    """Each block has the kind of its memory, also below and above other resources."""
    try:
        base = getattr(mr, name)()
    except RuntimeError:
        pytest.skip(f"no such memory on {on.filter}")
    resource = mr.CallbackMemoryResource(base.allocate, base.deallocate)
    for over in (
        resource,
        mr.StatisticsResourceAdaptor(resource),
        mr.PoolMemoryResource(mr.TrackingResourceAdaptor(resource)),
        mr.FixedSizeMemoryResource(resource, 4096, 4),
        mr.BinningMemoryResource(resource, 10, 12),
    ):
        made = DeviceBuffer(size=1000, mr=over)
        made.copy_from_host(bytes(range(250)) * 4)
        assert made.buffer.kind == base.resource.kind
        assert made.tobytes() == bytes(range(250)) * 4
        made.free()


@pytest.mark.parametrize("bad", [None, 3, "f"])
@pytest.mark.host_only
def test_callbacks_that_are_none(on: Device, bad: Any) -> None:
    with pytest.raises(TypeError, match="allocate_func must be callable"):
        mr.CallbackMemoryResource(bad, print)
    with pytest.raises(TypeError, match="deallocate_func must be callable"):
        mr.CallbackMemoryResource(print, bad)


def test_callbacks_of_another_kind(on: Device) -> None:
    base = mr.ManagedMemoryResource()
    resource = mr.CallbackMemoryResource(base.allocate, base.deallocate, kind="shared")
    assert DeviceBuffer(size=10, mr=resource).buffer.kind == "shared"
    with pytest.raises(ValueError, match="kind"):
        mr.CallbackMemoryResource(base.allocate, base.deallocate, kind="managed")


def test_threads(on: Device) -> None:
    tracked = mr.TrackingResourceAdaptor(mr.PoolMemoryResource(mr.CudaMemoryResource()))
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        start.wait()
        for round_ in range(200):
            size = (round_ * 331 + seed) % 9000 + 1
            address = tracked.allocate(size)
            if round_ % 3:
                tracked.deallocate(address, size)
            else:
                left.append((address, size))

    left: list[tuple[int, int]] = []
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert tracked.get_allocated_bytes() == sum(size for _, size in left)
    for address, size in left:
        tracked.deallocate(address, size)
    assert tracked.get_outstanding_allocations_str() == ""
