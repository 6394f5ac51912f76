# SPDX-License-Identifier: Apache-2.0
"""The simulated device from Python: capacity, faults, late effects, device loss."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support import message_has, noise, python, sim

import isthmus
from isthmus import Buffer, Device, Event, Queue
from isthmus._core import sim_calls, sim_configure, sim_state
from isthmus.memory import ProviderResource

DATA = noise(4096)


def test_capacity() -> None:
    device = sim(capacity="64KiB")
    assert device.total_memory == 64 << 10
    held = [Buffer(16 << 10, device=device) for _ in range(4)]
    with pytest.raises(isthmus.USMAllocationError) as error:
        Buffer(1, device=device)
    message_has(error, [device.filter])
    assert device.memory_info() == (0, 64 << 10)
    held.pop().free()
    isthmus.default_pool("device", device, use="buffers").trim()
    assert Buffer(16 << 10, device=device).nbytes == 16 << 10


def test_capacity_is_of_the_device_kind() -> None:
    device = sim(capacity="4KiB")
    held = [Buffer(4096, kind="host", device=device) for _ in range(3)]
    assert Buffer(4096, device=device).nbytes == held[0].nbytes


def test_small_copies_wait_without_the_interpreters_lock() -> None:
    queue = Queue(sim(wait_for_host=0))
    buffer, gate = Buffer(64, kind="shared", queue=queue), Event()
    buffer.record(gate)
    completer = threading.Timer(0.05, gate.complete)
    completer.start()
    buffer.copy_from(b"x" * 64)  # hangs if it waits for the gate
    completer.join()
    assert buffer.tobytes() == b"x" * 64


@pytest.mark.parametrize("option", ["kinds", "usm", "wait_for_host", "remap"])
def test_what_a_device_lacks(option: str) -> None:
    lacking = {
        "kinds": sim(kinds="host"),
        "usm": sim(usm=0),
        "wait_for_host": sim(wait_for_host=0),
        "remap": sim(remap=0),
    }[option]
    name = "device_kind" if option == "kinds" else option
    assert name in sim().capabilities
    assert name not in lacking.capabilities


def test_device_memory_faults_on_the_host() -> None:
    code = (
        "import ctypes, isthmus, resource, signal\n"
        "from support import sim\n"
        "buffer = isthmus.Buffer(4096, device=sim())\n"
        "pid = __import__('os').fork()\n"
        "if pid == 0:\n"
        "    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "    signal.signal(signal.SIGSEGV, signal.SIG_DFL)\n"
        "    ctypes.string_at(buffer.ptr, 1)\n"
        "    __import__('os')._exit(0)\n"
        "status = __import__('os').waitpid(pid, 0)[1]\n"
        "assert __import__('os').waitstatus_to_exitcode(status) == -signal.SIGSEGV, status\n"
    )
    python(code)


CALLS = {
    "allocate": lambda queue, buffer: unpooled(queue),
    "copy": lambda queue, buffer: buffer.copy_from(DATA),
    "copy_2d": lambda queue, buffer: buffer.copy_from_2d(DATA, 8, 8, pitch=16),
    "fill": lambda queue, buffer: buffer.fill(1),
    "fence": lambda queue, buffer: queue.fence(),
    "queue": lambda queue, buffer: Queue(queue.device),
    "context": lambda queue, buffer: isthmus.Context(queue.device),
    "prefetch": lambda queue, buffer: shared(queue).prefetch(),
    "advise": lambda queue, buffer: buffer.advise(0),
}


def unpooled(queue: Queue) -> Buffer:
    return Buffer(64, queue=queue, resource=ProviderResource("device", queue.device))


def shared(queue: Queue) -> Buffer:
    return Buffer(64, kind="shared", queue=queue)


@pytest.mark.parametrize("call", CALLS)
def test_faults(call: str) -> None:
    device = sim()
    queue = Queue(device)
    buffer = Buffer(4096, queue=queue)
    before = sim_calls(device, call)
    sim_configure(device, f"fail={call}:2")
    expected = isthmus.USMAllocationError if call == "allocate" else isthmus.DriverError
    CALLS[call](queue, buffer)
    with pytest.raises(expected):
        CALLS[call](queue, buffer)
    CALLS[call](queue, buffer)
    assert sim_calls(device, call) >= before + 3
    assert sim_calls(device, "any") >= before + 3


def test_several_faults_and_none() -> None:
    device = sim(fail="fill:1")
    buffer = Buffer(64, device=device)
    with pytest.raises(isthmus.DriverError):
        buffer.fill(1)
    sim_configure(device, "fail=fill:1,fail=fill:2,fail=copy:1")
    for action in (buffer.fill, buffer.fill, lambda: buffer.copy_from(b"a")):
        with pytest.raises(isthmus.DriverError):
            action()
    sim_configure(device, "fail=fill:1")
    sim_configure(device, "fail=none")
    buffer.fill(1)


def test_a_failed_copy_changes_nothing() -> None:
    device = sim()
    buffer = Buffer(4096, device=device)
    buffer.fill(5)
    sim_configure(device, "fail=copy:1")
    with pytest.raises(isthmus.DriverError):
        buffer.copy_from(DATA)
    assert buffer.tobytes() == bytes([5]) * 4096


@pytest.mark.parametrize("effect", ["early", "late"])
def test_a_missing_wait_shows(effect: str) -> None:
    """The program changes the source of a copy without waiting for it."""
    source = DATA.copy()
    buffer = Buffer(4096, device=sim(effect=effect))
    event = buffer.copy_from(source, blocking=False)
    source[:] = 0  # too early
    assert event is not None
    event.wait()
    right = buffer.tobytes() == DATA.tobytes()
    assert right == (effect == "early")


@pytest.mark.parametrize("effect", ["early", "late"])
def test_a_missing_wait_for_a_result_shows(effect: str) -> None:
    buffer = Buffer(4096, device=sim(effect=effect))
    buffer.copy_from(DATA)
    got = np.zeros(4096, np.uint8)
    event = buffer.copy_to(got, blocking=False)
    seen = got.copy()  # too early
    assert event is not None
    event.wait()
    assert (got == DATA).all()
    assert bool((seen == DATA).all()) == (effect == "early")


def test_a_program_that_waits_is_correct_with_late_effects() -> None:
    buffer = Buffer(4096, device=sim(effect="late"))
    source, got = DATA.copy(), np.zeros(4096, np.uint8)
    into = buffer.copy_from(source, blocking=False)
    assert into is not None
    into.wait()
    source[:] = 0
    out = buffer.copy_to(got, blocking=False)
    assert out is not None
    out.wait()
    assert (got == DATA).all()


def test_lost_now() -> None:
    device = sim()
    buffer = Buffer(4096, device=device)
    sim_configure(device, "lost=now")
    with pytest.raises(isthmus.DeviceLostError):
        buffer.fill(1)
    with pytest.raises(isthmus.DeviceLostError):
        Buffer(1, device=device)
    del buffer


def test_lost_after_some_calls() -> None:
    device = sim()
    buffer = Buffer(4096, device=device)
    sim_configure(device, "lost=20")
    done: list[None] = []
    with pytest.raises(isthmus.DeviceLostError):
        done.extend(buffer.fill(1) for _ in range(30))  # type: ignore[misc]
    assert 0 < len(done) <= 20


def test_the_clock_is_deterministic() -> None:
    def run() -> tuple[int, int, int]:
        device = sim(bandwidth="1GB/s", latency="5us", seed=3, effect="random")
        buffer = Buffer(1 << 20, device=device)
        for value in range(5):
            buffer.fill(value, blocking=False)
            buffer.copy_from(bytes(1 << 20))
        return sim_state(device)

    first = run()
    assert first == run()
    assert first[0] >= 5 * (1 << 20), "five megabytes at 1 GB/s"


def test_state_counts_bytes() -> None:
    device = sim()
    one = Buffer(1000, resource=ProviderResource("device", device))
    other = Buffer(500, resource=ProviderResource("host", device))
    _, on_device, on_host = sim_state(device)
    assert (on_device, on_host) == (1000, 500)
    del one, other
    assert sim_state(device)[1:] == (0, 0)


def test_no_driver_misuse() -> None:
    device = sim(effect="late")
    gate, buffer = Event(), Buffer(4096, device=device)
    event = buffer.fill(1, after=[gate], blocking=False)
    buffer.free()
    gate.complete()
    assert event is not None
    event.wait()
    assert sim_calls(device, "violation") == 0


BAD_OPTIONS = [
    "capacity",
    "capacity=lots",
    "capacity=-1",
    "capacity=0",
    "effect=never",
    "fail=copy",
    "fail=copy:0",
    "fail=nothing:1",
    "lost=0",
    "lost=soon",
    "kinds=device+managed",
    "kinds=",
    "usm=2",
    "speed=9",
    "bandwidth=fast",
    "latency=5",
    "devices=2",
    ",",
]


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_bad_options(options: str) -> None:
    with pytest.raises(ValueError, match="simulated device"):
        isthmus._core.sim_create(options)


def test_options_that_cannot_change() -> None:
    with pytest.raises(ValueError, match="capacity"):
        sim_configure(sim(), "capacity=1MiB")


def test_what_is_not_simulated() -> None:
    for use in (sim_state, sim_calls, lambda device: sim_configure(device, "fail=none")):
        with pytest.raises((ValueError, isthmus.UnsupportedError)):
            use(Device("host"))


def test_by_environment() -> None:
    code = (
        "import isthmus\n"
        "assert len(isthmus.devices('sim')) == 2, isthmus.devices('sim')\n"
        "one, two = isthmus.Device('sim:0'), isthmus.Device('sim:1')\n"
        "assert one != two and one.total_memory == 1 << 20\n"
        "assert one in isthmus.devices() and isthmus.Device() != one\n"
    )
    python(code, ISTHMUS_SIM="devices=2,capacity=1MiB")


def test_absent_unless_requested() -> None:
    code = "import isthmus\nassert all(d.backend != 'sim' for d in isthmus.devices())\n"
    python(code)


def test_a_forked_child_reads_where_queues_cannot_wait_for_the_host() -> None:
    python(
        """
import os
from isthmus import Buffer, Queue
from support import sim

buffer = Buffer(64, kind="shared", queue=Queue(sim(wait_for_host=0)))
buffer.fill(5)
child = os.fork()
if child == 0:
    os._exit(0 if buffer.tobytes() == bytes([5]) * 64 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    )
