# SPDX-License-Identifier: Apache-2.0
"""isthmus.low_level: lists of operations, prefetch, advice, residency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import message_has, sim

import isthmus
from isthmus import Array, Buffer, Device, Queue, low_level
from isthmus.testing import sim_calls

if TYPE_CHECKING:
    from isthmus.low_level import UsmPointer


# ---- lists of operations ---------------------------------------------------------------------


def test_operations_run_in_their_order(dev: Device, q: Queue, host_kind: str) -> None:
    data = np.arange(256, dtype=np.uint8)
    ptr = Buffer(256, device=dev)
    back = np.zeros(256, np.uint8)

    def work(commands: low_level.CommandList) -> None:
        commands.append_fill(ptr, 1)
        commands.append_copy(ptr, data, 200)
        commands.append_fill(ptr, b"\x07\x08", 10)
        commands.append_copy(back, ptr)

    low_level.execute(q, work).wait()
    expected = np.ones(256, np.uint8)
    expected[:200] = data[:200]
    expected[:10] = [7, 8] * 5
    assert np.array_equal(back, expected)


def test_a_list_is_executed_again(dev: Device, q: Queue) -> None:
    source = np.zeros(4, np.int32)
    array = Array(Buffer(16, device=dev), 4, "int32")
    commands = low_level.CommandList()
    commands.append_copy(array, source)
    for number in range(3):
        source[:] = number
        low_level.execute(q, commands).wait()
        assert (array.to_numpy() == number).all()
    assert len(commands) == 1


def test_functions_of_a_queue_are_operations(dev: Device, q: Queue) -> None:
    buffer = Buffer(8, device=dev)
    low_level.execute(
        q,
        (
            (lambda queue, byte=byte: buffer.fill(byte, queue=queue, blocking=False))
            for byte in range(5)
        ),
    ).wait()
    assert buffer.tobytes() == bytes([4]) * 8


def test_an_empty_list(q: Queue) -> None:
    low_level.execute(q, lambda commands: None).wait()
    low_level.execute(q, []).wait()


def test_events_hold_a_list_back(dev: Device, q: Queue, gate: isthmus.Event) -> None:
    buffer = Buffer(8, device=dev)
    buffer.fill(1)
    if "wait_for_host" not in dev.capabilities:
        pytest.skip("its queues cannot wait for the host")
    event = low_level.execute(q, lambda commands: commands.append_fill(buffer, 5, after=gate))
    assert not event.done
    gate.complete()
    event.wait()
    assert buffer.tobytes() == bytes([5]) * 8


def test_what_is_refused_comes_before_anything_ran(dev: Device, q: Queue) -> None:
    buffer = Buffer(8, device=dev)
    buffer.fill(1)

    def too_long(commands: low_level.CommandList) -> None:
        commands.append_fill(buffer, 5)
        commands.append_copy(buffer, bytes(9))

    def raises(commands: low_level.CommandList) -> None:
        commands.append_fill(buffer, 5)
        raise KeyError("mine")

    def address(commands: low_level.CommandList) -> None:
        commands.append_copy(buffer, 4096)

    def uneven(commands: low_level.CommandList) -> None:
        commands.append_fill(buffer, b"1234", 6)

    def negative(commands: low_level.CommandList) -> None:
        commands.append_fill(buffer, b"1234", -4)

    array = Array(buffer, 4, "int16")
    freed = Buffer(8, device=dev)
    freed.free()
    seen = isthmus.broadcast_to(array, (4,))

    for work, error in (
        (too_long, isthmus.OutOfRangeError),
        (raises, KeyError),
        (address, TypeError),
        (uneven, isthmus.InvalidArgumentError),
        (negative, isthmus.InvalidArgumentError),
        (lambda commands: commands.append_fill(array, 1.5), TypeError),
        (lambda commands: commands.append_fill(array, 1 << 15), OverflowError),
        (lambda commands: commands.append_fill(seen, 1), isthmus.ReadOnlyError),
        (lambda commands: commands.append_copy(seen, bytes(8)), isthmus.ReadOnlyError),
        (lambda commands: commands.append_copy(bytes(8), buffer), isthmus.ReadOnlyError),
        (lambda commands: commands.append_fill(freed, 1), isthmus.ClosedError),
        (lambda commands: commands.append_copy(freed, bytes(8)), isthmus.ClosedError),
        (lambda commands: commands.append_copy(buffer, freed), isthmus.ClosedError),
    ):
        commands = low_level.CommandList()
        commands.append_fill(buffer, 5)
        with pytest.raises(error):
            work(commands)
        with pytest.raises(error):
            low_level.execute(q, work)
    for wrong in ([5], 5, [lambda queue: None, "a"]):
        with pytest.raises(TypeError):
            low_level.execute(q, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="queue must be"):
        low_level.execute(dev, [])  # type: ignore[arg-type]
    q.wait()
    assert buffer.tobytes() == bytes([1]) * 8


# ---- prefetch, advice, residency -------------------------------------------------------------


def shared(dev: Device, nbytes: int = 4096) -> UsmPointer:
    if "shared" not in dev.kinds:
        pytest.skip(f"{dev.filter} offers no shared kind")
    return low_level.shared_alloc(dev.default_context, dev, nbytes)


@pytest.mark.parametrize("where", [None, "host", "own"])
def test_prefetch(dev: Device, q: Queue, where: str | None) -> None:
    ptr = shared(dev)
    to = dev if where == "own" else where
    if "prefetch" not in dev.capabilities:
        with pytest.raises(isthmus.UnsupportedError, match="prefetch"):
            low_level.prefetch(ptr, device=to)
        return
    low_level.unsafe_fill(ptr.context, dev, ptr, 3, 4096)
    low_level.prefetch(ptr, device=to)
    low_level.prefetch(ptr + 100, 1000, "host:0" if to == "host" else to)
    event = low_level.prefetch(Array(ptr.buffer, 1024), device=to, blocking=False)
    assert event is not None
    event.wait()
    low_level.execute(q, lambda commands: commands.append_prefetch(ptr, 4096, to)).wait()
    assert ptr.buffer.tobytes() == bytes([3]) * 4096


def test_prefetch_to_a_third_device(dev: Device) -> None:
    ptr = shared(dev)
    if "prefetch" not in dev.capabilities:
        pytest.skip("no prefetch")
    with pytest.raises(isthmus.UnsupportedError, match="copy it"):
        low_level.prefetch(ptr, device=sim())


def test_prefetch_past_the_end(dev: Device) -> None:
    ptr = shared(dev)
    if "prefetch" not in dev.capabilities:
        pytest.skip("no prefetch")
    with pytest.raises(isthmus.OutOfRangeError):
        low_level.prefetch(ptr + 100, 4000)
    with pytest.raises(isthmus.InvalidArgumentError):
        low_level.prefetch(ptr, -1)
    with pytest.raises(TypeError):
        low_level.prefetch(b"host memory")


@pytest.mark.parametrize("advice", list(low_level.Advice))
def test_advice_is_accepted_or_unsupported(dev: Device, q: Queue, advice: low_level.Advice) -> None:
    """Depends on the driver: six on CUDA, none on OpenCL and the host, all in the simulation."""
    has = {"sim": len(low_level.Advice), "cuda": 6}.get(dev.backend, 0)
    ptr = shared(dev)
    low_level.unsafe_fill(ptr.context, dev, ptr, 3, 4096).wait()
    calls = [
        lambda: low_level.advise(ptr, advice),
        lambda: low_level.advise(ptr + 10, advice.value, dev, nbytes=100),
        lambda: low_level.execute(q, lambda c: c.append_advise(dev, ptr, 4096, advice)).wait(),
    ]
    for call in calls:
        if list(low_level.Advice).index(advice) < has:
            call()
        else:
            with pytest.raises(isthmus.UnsupportedError) as caught:
                call()
            message_has(caught, [dev.filter])
    assert ptr.buffer.tobytes() == bytes([3]) * 4096


def test_the_simulated_driver_receives_it() -> None:
    dev = sim()
    ptr = shared(dev)
    before = sim_calls(dev, "advise")
    low_level.advise(ptr, "read_mostly")
    low_level.advise(ptr, "preferred_location", "host")
    assert sim_calls(dev, "advise") == before + 2


def test_advice_about_the_host(dev: Device) -> None:
    """On CUDA, Isthmus does not pass it to the driver, as the error says."""
    ptr = shared(dev)
    if "advise" not in dev.capabilities:
        pytest.skip("no advice")
    for host in ("host", "host:0", Device("host")):
        if dev.backend != "cuda":
            low_level.advise(ptr, "preferred_location", host)
            continue
        with pytest.raises(isthmus.UnsupportedError, match="not passed to the driver"):
            low_level.advise(ptr, "preferred_location", host)


def test_bad_advice() -> None:
    dev = sim()
    ptr = shared(dev)
    with pytest.raises(isthmus.InvalidArgumentError) as caught:
        low_level.advise(ptr, "read_often")
    message_has(caught, ["read_often", "read_mostly", "bias_uncached"])
    with pytest.raises(isthmus.UnsupportedError, match="allocate it there"):
        low_level.advise(ptr, "accessed_by", sim())
    with pytest.raises(TypeError):
        low_level.advise(ptr, "accessed_by", 5)  # type: ignore[arg-type]
    with pytest.raises(isthmus.OutOfRangeError):
        low_level.advise(ptr, "read_mostly", nbytes=4097)
    assert sim_calls(dev, "advise") == 0


def test_residency_is_unsupported(dev: Device) -> None:
    ptr = low_level.device_alloc(dev.default_context, dev, 100)
    for call in (low_level.make_resident, low_level.evict):
        with pytest.raises(isthmus.UnsupportedError, match="residen"):
            call(ptr.context, dev, ptr)
        with pytest.raises(isthmus.OutOfRangeError):
            call(ptr.context, dev, ptr, 101)
