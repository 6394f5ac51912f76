# SPDX-License-Identifier: Apache-2.0
"""The simulated device from Python: options, the errors of its faults, late effects."""

from __future__ import annotations

import threading

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


def test_faults() -> None:
    device = sim()
    calls = {
        "allocate": lambda: Buffer(64, resource=ProviderResource("device", device)),
        "copy": lambda: buffer.copy_from(DATA),
    }
    buffer = Buffer(4096, device=device)
    for kind, call in calls.items():
        before = sim_calls(device, kind)
        sim_configure(device, f"fail={kind}:2")
        call()
        with pytest.raises(
            isthmus.USMAllocationError if kind == "allocate" else isthmus.DriverError
        ):
            call()
        call()
        assert sim_calls(device, kind) == before + 3


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


def test_state_counts_bytes() -> None:
    device = sim()
    one = Buffer(1000, resource=ProviderResource("device", device))
    other = Buffer(500, resource=ProviderResource("host", device))
    _, on_device, on_host = sim_state(device)
    assert (on_device, on_host) == (1000, 500)
    del one, other
    assert sim_state(device)[1:] == (0, 0)


@pytest.mark.parametrize("options", ["capacity=lots", "fail=copy:0", ","])
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
