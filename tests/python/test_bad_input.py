# SPDX-License-Identifier: Apache-2.0
"""Each kind of bad input raises the documented error, with the value and the limit in its message.

Faulty interface dictionaries of foreign objects are in test_usm_interface_bad.py, negative numbers
and numbers that do not fit in test_integer_parameters.py.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import filled, is_memory_released, message_has, sim

import isthmus
from isthmus import (
    Buffer,
    ClosedError,
    Context,
    Device,
    DeviceLostError,
    Event,
    InvalidArgumentError,
    OutOfRangeError,
    Queue,
    ReadOnlyError,
    USMAllocationError,
    WrongContextError,
    _core,
)
from isthmus.memory import (
    MemoryUSMDevice,
    PoolResource,
    ProviderResource,
    StatisticsResource,
    live,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.sim_and_host
HUGE = [2**40, 2**62, 2**63 - 1]
TOO_HUGE = [2**64]


@pytest.fixture
def buffer(q: Queue, kind: str) -> Iterator[Buffer]:
    made = filled(bytes(range(100)), kind=kind, queue=q)
    yield made
    assert made.tobytes() == bytes(range(100)), "nothing was half done"
    made.free()


def raises(error: type[BaseException], parts: list[object], action: Callable[[], object]) -> None:
    before = live()
    with pytest.raises(error) as raised:
        action()
    message_has(raised, parts)
    del raised
    assert is_memory_released(before)


class TestSizes:
    @pytest.mark.parametrize("nbytes", HUGE)
    @pytest.mark.every_backend
    def test_huge(self, q: Queue, kind: str, nbytes: int) -> None:
        for action in (
            lambda: Buffer(nbytes, kind=kind, queue=q),
            lambda: Buffer(nbytes, kind=kind, queue=q, alignment=4096),
            lambda: ProviderResource(kind, q.device).allocate(nbytes),
        ):
            raises(USMAllocationError, [kind, q.device.filter], action)
        with pytest.raises(MemoryError, match=str(nbytes)):
            Buffer(nbytes, kind=kind, queue=q)

    @pytest.mark.parametrize("nbytes", TOO_HUGE)
    def test_too_huge(self, q: Queue, kind: str, nbytes: int) -> None:
        for action in (
            lambda: Buffer(nbytes, kind=kind, queue=q),
            lambda: Buffer(nbytes, kind=kind, queue=q, alignment=4096),
            lambda: ProviderResource(kind, q.device).allocate(nbytes),
        ):
            raises(USMAllocationError, [nbytes, kind, q.device.filter], action)

    @pytest.mark.parametrize("nbytes", [*HUGE, 101])
    def test_of_copies(self, buffer: Buffer, nbytes: int) -> None:
        data = bytes(100)
        for action in (
            lambda: buffer.copy_from(data, nbytes=nbytes),
            lambda: buffer.copy_from(data, nbytes=nbytes, blocking=False),
            lambda: buffer.copy_to(bytearray(100), nbytes=nbytes),
            lambda: buffer.fill(1, nbytes=nbytes),
            lambda: buffer.queue.copy(buffer, data, nbytes),
            lambda: buffer.prefetch(nbytes=nbytes),
            lambda: buffer.advise(0, nbytes=nbytes),
            lambda: Buffer.adopt(buffer.ptr, nbytes, kind=buffer.kind, queue=buffer.queue),
        ):
            raises(OutOfRangeError, [nbytes, 100], action)
        for action in (
            lambda: buffer.copy_from_2d(data, nbytes, 1),
            lambda: buffer.copy_from_2d(data, 1, nbytes),
        ):
            raises(OutOfRangeError, [nbytes], action)
        for action in (
            lambda: buffer.copy_from_2d(data, 1, 2, pitch=nbytes),
            lambda: buffer.copy_to_2d(bytearray(100), 1, 2, other_pitch=nbytes),
        ):
            raises(OutOfRangeError, [nbytes + 1, 100], action)  # the end of the second row

    @pytest.mark.parametrize("nbytes", TOO_HUGE)
    def test_of_copies_that_do_not_fit(self, buffer: Buffer, nbytes: int) -> None:
        for action in (
            lambda: buffer.copy_from(bytes(100), nbytes=nbytes),
            lambda: buffer.fill(1, nbytes=nbytes),
            lambda: buffer.prefetch(nbytes=nbytes),
            lambda: buffer.advise(0, nbytes=nbytes),
            lambda: Buffer.adopt(buffer.ptr, nbytes, kind=buffer.kind, queue=buffer.queue),
            lambda: buffer.copy_to_2d(bytearray(100), nbytes, 1),
            lambda: buffer.copy_to_2d(bytearray(100), 1, 2, pitch=nbytes),
        ):
            raises(OutOfRangeError, [nbytes], action)


class TestOffsets:
    @pytest.mark.parametrize("offset", [101, *HUGE])
    def test_past_the_end(self, buffer: Buffer, offset: int) -> None:
        for action in (
            lambda: buffer.copy_from(b"a", offset=offset),
            lambda: buffer.copy_from(bytes(100), nbytes=1, src_offset=offset),
            lambda: buffer.copy_to(bytearray(100), nbytes=1, offset=offset),
            lambda: buffer.copy_to(bytearray(100), nbytes=1, dst_offset=offset),
            lambda: buffer.fill(1, offset=offset, nbytes=1),
            lambda: buffer.copy_from_2d(bytes(4), 2, 2, offset=offset),
            lambda: buffer.prefetch(offset=offset, nbytes=1),
            lambda: buffer.advise(0, offset=offset, nbytes=1),
        ):
            raises(OutOfRangeError, [offset, 100], action)

    @pytest.mark.parametrize("offset", TOO_HUGE)
    def test_that_do_not_fit(self, buffer: Buffer, offset: int) -> None:
        raises(OutOfRangeError, [offset], lambda: buffer.copy_from(b"a", offset=offset))
        raises(OutOfRangeError, [offset], lambda: buffer.fill(1, offset=offset))

    def test_that_overflow_with_the_size(self, buffer: Buffer) -> None:
        top = 2**63 - 1
        raises(OutOfRangeError, [], lambda: buffer.fill(1, offset=top, nbytes=top))
        raises(OutOfRangeError, [], lambda: buffer.copy_from(bytes(9), nbytes=top, offset=top))

    @pytest.mark.parametrize("offset", [1.5, "1", None])
    def test_of_a_wrong_type(self, buffer: Buffer, offset: object) -> None:
        raises(TypeError, [], lambda: buffer.fill(1, offset=offset))  # type: ignore[arg-type]


class TestAlignments:
    @pytest.mark.parametrize("alignment", [3, 5, 24, 2**20 + 1, 2**62 - 1])
    def test_no_power_of_two(self, q: Queue, kind: str, alignment: int) -> None:
        for nbytes in (64, 0):
            raises(
                InvalidArgumentError,
                [alignment, "power"],
                lambda nbytes=nbytes: Buffer(nbytes, kind=kind, queue=q, alignment=alignment),
            )
        raises(ValueError, [alignment], lambda: MemoryUSMDevice(64, queue=q, alignment=alignment))

    def test_larger_than_the_device_can(self, q: Queue, kind: str) -> None:
        limit = q.device.max_alignment
        for alignment in (limit * 2, 2**62):
            raises(
                InvalidArgumentError,
                [alignment, limit],
                lambda alignment=alignment: Buffer(64, kind=kind, queue=q, alignment=alignment),
            )

    @pytest.mark.parametrize("alignment", [-8, 24, 2**62 - 1, *TOO_HUGE])
    def test_of_a_resource(self, q: Queue, kind: str, alignment: int) -> None:
        pool = PoolResource(kind, q.device)
        for resource in (pool, ProviderResource(kind, q.device), StatisticsResource(pool)):
            for nbytes in (0, 64):
                raises(
                    InvalidArgumentError,
                    [alignment, "power of two"],
                    lambda nbytes=nbytes, resource=resource: resource.allocate(nbytes, alignment),
                )
        limit = q.device.max_alignment
        raises(ValueError, [limit * 2, limit], lambda: pool.allocate(64, limit * 2))
        assert pool.allocate(64, None).nbytes == 64  # type: ignore[arg-type]


class TestPlaces:
    def test_read_only_destinations(self, buffer: Buffer) -> None:
        array = np.zeros(100, np.uint8)
        array.flags.writeable = False
        for target in (bytes(100), array, memoryview(bytearray(100)).toreadonly()):
            raises(ReadOnlyError, ["read-only"], lambda target=target: buffer.copy_to(target))

    def test_read_only_buffers(self, buffer: Buffer) -> None:
        fixed = Buffer.adopt(buffer.ptr, 100, queue=buffer.queue, owner=buffer, read_only=True)
        for action in (
            lambda: fixed.fill(1),
            lambda: fixed.copy_from(b"a"),
            lambda: fixed.copy_from(b"a", blocking=False),
            lambda: fixed.copy_from_2d(b"a", 1, 1),
            lambda: buffer.queue.copy(fixed, b"a"),
        ):
            raises(ReadOnlyError, ["read-only"], action)


class TestDead:
    def test_freed_buffers(self, q: Queue, buffer: Buffer) -> None:
        dead = Buffer(100, kind=buffer.kind, queue=q)
        part = dead[10:20]
        dead.free()
        assert part.freed
        for one in (dead, part):
            for action in (
                lambda one=one: one.fill(1),
                lambda one=one: one.copy_from(b"a"),
                lambda one=one: one.tobytes(),
                lambda one=one: buffer.copy_from(one),
                lambda one=one: buffer.copy_to(one, nbytes=1),
                lambda one=one: q.copy(buffer, one),
                lambda one=one: one[0:1],
                lambda one=one: one.on_queue(q),
            ):
                raises(ClosedError, ["freed"], action)

    def test_closed_queues(self, dev: Device, kind: str) -> None:
        queue = Queue(dev)
        buffer, fine = Buffer(100, kind=kind, queue=queue), Buffer(100, kind=kind, queue=Queue(dev))
        queue.close()
        queue.close()
        for action in (
            lambda: Buffer(100, kind=kind, queue=queue),
            lambda: buffer.fill(1),
            lambda: buffer.copy_from(bytes(100), blocking=False),
            lambda: fine.copy_from(bytes(100), queue=queue),
            lambda: fine.fill(0, queue=queue),
            lambda: buffer.fill(1, nbytes=0),
            lambda: buffer.copy_from(b"", nbytes=0),
            lambda: buffer.prefetch(nbytes=0),
            lambda: buffer.prefetch(nbytes=0, blocking=False),
            lambda: buffer.advise(0, nbytes=0),
            lambda: queue.fence(),
            lambda: queue.submit(lambda: None),
        ):
            raises(ClosedError, ["closed"], action)
        queue.wait()

    def test_a_default_queue_cannot_be_closed(self, dev: Device) -> None:
        raises(ValueError, ["default"], dev.default_queue.close)
        dev.default_queue.fence().wait()

    def test_a_lost_device(self) -> None:
        device = sim()
        queue = Queue(device)
        buffer, pending = Buffer(100, queue=queue), Event()
        late = buffer.fill(1, after=[pending], blocking=False)
        _core.sim_configure(device, "lost=now")
        pending.complete()
        assert late is not None
        for action in (
            lambda: Buffer(100, queue=queue),
            lambda: buffer.fill(1),
            lambda: buffer.copy_from(bytes(100)),
            lambda: buffer.copy_to(bytearray(100)),
            lambda: late.wait(30),
            lambda: queue.fence().wait(30),
        ):
            raises(DeviceLostError, [device.filter], action)
        buffer.free()


class TestStrangers:
    def test_queues_of_another_context(self, q: Queue, buffer: Buffer) -> None:
        for other in (Queue(Context(q.device)), Queue(sim())):
            actions: list[Callable[[], object]] = [
                lambda other=other: buffer.on_queue(other),
                lambda other=other: buffer.fill(1, queue=other),
                lambda other=other: buffer.copy_from(b"a", queue=other),
            ]
            if buffer.kind == "device" and "run_functions" in other.device.capabilities:
                actions.append(lambda other=other: other.submit(len, buffer))
            for action in actions:
                raises(WrongContextError, ["context"], action)

    def test_pointers_of_another_context(self, q: Queue, buffer: Buffer) -> None:
        for other in (Queue(Context(q.device)), Queue(sim())):
            raises(
                WrongContextError,
                [f"{buffer.ptr:#x}"],
                lambda other=other: Buffer.adopt(buffer.ptr, 100, queue=other, owner=buffer),
            )

    def test_devices_of_another_context(self, q: Queue) -> None:
        raises(WrongContextError, [], lambda: Queue(sim(), context=q.context))

    def test_events_of_another_platform_are_welcome(self, buffer: Buffer, gate: Event) -> None:
        foreign = Queue(sim()).fence([gate])
        event = buffer.fill(1, nbytes=0, after=[foreign], blocking=False)
        gate.complete()
        assert event is not None
        event.wait(30)


def test_no_memory_left() -> None:
    device = sim(capacity="1MiB")
    first = Buffer(1 << 19, device=device)
    with pytest.raises(USMAllocationError) as error:
        Buffer(1 << 20, device=device)
    message_has(error, ["device", device.filter])
    first.free()
    assert Buffer(1 << 20, device=device).nbytes == 1 << 20


def test_wrong_kinds(q: Queue) -> None:
    for wrong in ("managed", "", "Device", "unknown"):
        raises(ValueError, [wrong], lambda wrong=wrong: Buffer(8, kind=wrong, queue=q))
    gc.collect()
    assert isinstance(isthmus.Error("x"), Exception)


def test_an_unreadable_source_raises_its_own_error(q: Queue) -> None:
    released = memoryview(bytes(8))
    released.release()
    with pytest.raises(ValueError, match="released memoryview"):
        Buffer(8, kind=q.device.kinds[0], queue=q).copy_from(released)
