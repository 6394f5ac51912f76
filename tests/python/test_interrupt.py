# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C interrupts every wait but not the operation, and no exception of a signal is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest
from support import program_environment, python, relay, until
from unified_support import TELLS_PAGES

# Both programs try each of their waits in turn: they print its name first, then its outcome.
ATTEMPT = """
def attempt(name, wait):
    print("waits:", name, flush=True)
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""

BUFFERS = (
    """
import sys
import numpy
import isthmus
from isthmus import Buffer, Event, Queue
from support import open_backend
"""
    + ATTEMPT
    + """
queue = Queue(open_backend(sys.argv[1]))
data, got = bytes([7]) * 4096, bytearray(4096)

def waits_for(buffer, gate):
    return {
        "event": lambda: queue.fence([gate]).wait(),
        "host event": lambda: gate.wait(),
        "timeout": lambda: queue.fence([gate]).wait(1000),
        "queue": lambda: (queue.fence([gate]), queue.wait()),
        "wait_for": lambda: Event.wait_for([gate]),
        "copy": lambda: buffer.copy_from(data, after=[gate]),
        "fill": lambda: buffer.fill(7, after=[gate]),
        "buffer": lambda: buffer.wait(),
        "view": lambda: memoryview(buffer),
        "asarray": lambda: numpy.asarray(buffer),
        "interface": lambda: buffer.__array_interface__,
        "busy elsewhere": lambda: buffer.copy_to(got),
        "item of device memory": lambda: array[5],
        "items of device memory": lambda: list(array),
        "number in device memory": lambda: int(array[5:6]),
    }

for name in sys.argv[2].split(",") if len(sys.argv) > 2 else waits_for(None, None):
    gate, buffer = Event(), Buffer(4096, kind="shared", queue=queue)
    array = isthmus.zeros(10, "u1", kind="device", queue=queue)
    if "device memory" in name:
        array.buffer.fill(7, after=[gate], blocking=False, queue=Queue(queue.device))
    if name in ("buffer", "view", "asarray", "interface", "busy elsewhere"):
        # On another queue, so that the buffer is busy and its own queue is not.
        Queue(queue.device).copy(buffer, data, after=[gate], blocking=False)
    with isthmus.allow_scalar():
        attempt(name, waits_for(buffer, gate)[name])
    gate.complete()
    if "device memory" in name:
        assert array.tolist() == [7] * 10
    if name in ("copy", "fill", "busy elsewhere"):
        assert buffer.tobytes() == data, "the operation went on, with its memory alive"
    queue.wait()
print("end", flush=True)
"""
)


@pytest.mark.parametrize("arguments", [["host"], ["opencl"], ["late", "copy"]], ids=" ".join)
def test_ctrl_c(arguments: list[str]) -> None:
    assert interrupted(BUFFERS, *arguments) >= (15 if len(arguments) == 1 else 1)


def interrupted(code: str, *arguments: str, environment: dict[str, str] | None = None) -> int:
    """Interrupts each wait that the program announces with one signal, and returns their number."""
    program = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=program_environment() | (environment or {}),
    )
    watchdog = threading.Timer(120, program.kill)  # for a wait that a signal fails to interrupt
    watchdog.start()
    count = 0
    try:
        assert program.stdout is not None
        while (line := program.stdout.readline()).startswith("waits:"):
            interrupt(program, line)
            assert program.stdout.readline() == "interrupted\n", line
            count += 1
        out, err = program.communicate(timeout=30)
    finally:
        watchdog.cancel()
        program.kill()
    assert (line + out, err, program.returncode) == ("end\n", "", 0)
    return count


def interrupt(program: subprocess.Popen[str], line: str) -> None:
    """Sends one signal, once the main thread of the program sleeps and therefore waits."""

    def sleeps() -> bool:
        with open(f"/proc/{program.pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "S"

    assert until(lambda: sleeps() and not time.sleep(0.05) and sleeps(), 30), line
    program.send_signal(signal.SIGINT)


UNIFIED = (
    """
import copy
import pickle
import sys
import warnings
import numpy as np
import isthmus
from isthmus import Event, Queue, UnifiedBuffer
from support import open_backend
"""
    + ATTEMPT
    + """
warnings.simplefilter("ignore")  # a simulated device is not there for a pickle
backend, tracking, n = *sys.argv[1:3], 200_000
queue = Queue(open_backend(backend))
target = isthmus.empty(n, "uint8", device="host")

def read(entered):
    with entered as array:
        return array

def waits_for(u, gate):
    def resolve():
        u.mark_host_dirty()
        u.resolve("device")
        return u.host

    def pipeline():
        def fn(array):
            array.fill(7, after=[gate], blocking=False)
        return next(isthmus.pipeline([np.ones(n, np.uint8)], fn, queue=queue))

    waits = {
        "host": lambda: u.host,
        "to_numpy": lambda: u.to_numpy(),
        "asarray": lambda: np.asarray(u),
        "view": lambda: np.array(memoryview(u)),
        "sync_to_host": lambda: u.sync_to_host() or u.host,
        "sync_on_another_queue": lambda: u.sync_to_host(queue=Queue(queue.device)) or u.host,
        "synchronize": lambda: u.synchronize() or u.host,
        "item": lambda: (u[3], u.host)[1],
        "part": lambda: u[3:].host,
        "host_read": lambda: read(u.host_read()),
        "host_write": lambda: read(u.host_write()),
        "copy_to": lambda: (u.copy_to(got := np.empty(n, np.uint8)), got)[1],
        "pickle": lambda: pickle.loads(pickle.dumps(u)).host,
        "copy": lambda: copy.copy(u).host,
        "copyto": lambda: (isthmus.copyto(target, u), target.to_numpy())[1],
        "asarray of it": lambda: isthmus.asarray(u, device="host").to_numpy(),
        "resolve": resolve,
        "accelerator": lambda: (queue.wait(), u.host)[1],
    }
    if backend != "host":  # there the function gets NumPy's arrays, whose fill waits for no event
        waits["pipeline"] = pipeline
    return waits

for name in waits_for(None, None):
    u, gate = UnifiedBuffer(n, np.uint8, queue=queue, separate=True, tracking=tracking), Event()
    u.host[:] = 1
    u.device.fill(7, after=[gate], blocking=False)
    u.mark_device_dirty()
    wait = waits_for(u, gate)[name]
    attempt(name, wait)
    if name == "host":
        attempt("host again", wait)
    if gate.done:
        sys.exit("it waited for the work")
    gate.complete()
    assert (wait() == 7).all(), "the same call again gives the bytes of the device"
    assert (u.host == 7).all()
    assert (u.device.to_numpy() == 7).all()
    u.host[5] = 9
    assert u.device.to_numpy()[5] == 9
    queue.wait()
print("end", flush=True)
"""
)
TRACKED = [("late", "bytes"), ("host", "bytes"), ("opencl", "bytes"), ("late", "hashes")]
TRACKED += [("late", "pages")] if TELLS_PAGES else []


@pytest.mark.parametrize(("backend", "tracking"), TRACKED)
def test_ctrl_c_where_the_device_has_newer_bytes(backend: str, tracking: str) -> None:
    assert interrupted(UNIFIED, backend, tracking) >= (19 if backend == "host" else 20)


MEMORY = (
    """
import sys
import threading
import numpy as np
import isthmus
from isthmus import Buffer, Event, Queue, UnifiedBuffer, _frameworks
from isthmus.memory import DebugResource, PoolResource, StatisticsResource
from support import open_backend
"""
    + ATTEMPT
    + """
device = open_backend(sys.argv[1])
n = 6 << 20

def short_of(kind, gate):
    # All that the pool may hold is free once the work on another queue has ended.
    pool = PoolResource(kind, device, limit_bytes="8MiB", wait=600)
    busy = Queue(device)
    block = pool.allocate(n, queue=busy)
    block.fill(1, after=[gate], blocking=False)
    block.free()
    return pool

def checked(gate, queue):
    queue.fence([gate])
    return DebugResource(PoolResource("host", device))

def waits_for(gate, queue, counted):
    return {
        "pool": lambda: counted.allocate(n, queue=queue),
        "pool buffer": lambda: Buffer(n, resource=counted, queue=queue),
        "pool array": lambda: isthmus.empty(n, "uint8", resource=counted, queue=queue),
        "pool zeros": lambda: isthmus.zeros(n, "uint8", resource=counted, queue=queue),
        "pool copy": lambda: isthmus.array(
            np.zeros(n, np.uint8), resource=counted, queue=queue),
        "pool block": lambda: _frameworks.BareBlock(counted, queue, n),
        "pool unified": lambda: UnifiedBuffer(
            n, np.uint8, queue=queue, separate=True, resource=counted).device,
        "debug": lambda: counted.allocate(1000, queue=queue),
        "debug buffer": lambda: Buffer(1000, resource=counted, queue=queue),
        "debug array": lambda: isthmus.empty(1000, "uint8", resource=counted, queue=queue),
    }

for name in waits_for(None, None, None):
    gate, queue = Event(), Queue(device)
    below = StatisticsResource(
        short_of("device", gate) if name.startswith("pool") else checked(gate, queue))
    counted = StatisticsResource(below)
    wait = waits_for(gate, queue, counted)[name]
    attempt(name, wait)
    assert not gate.done, "it waited for the work"
    assert (counted.current_count, counted.total_count, below.current_count) == (0, 0, 0)
    gate.complete()
    made = wait()
    assert counted.current_count == 1
    queue.wait()
    del made
    if name.startswith("debug"):
        below.verify()
print("end", flush=True)
"""
)


@pytest.mark.parametrize("backend", ["host", "late", "opencl"])
def test_ctrl_c_in_requests_for_memory(backend: str) -> None:
    assert interrupted(MEMORY, backend) == 10


COPY = (
    """
import isthmus
from isthmus import Event, Queue
from isthmus.memory import PoolResource
from support import open_backend
"""
    + ATTEMPT
    + """
device, gate, n = open_backend("late"), Event(), 3 << 20
queue, busy = Queue(device), Queue(device)
pool = PoolResource("device", device, initial_bytes="8MiB", limit_bytes="8MiB", wait=600)
array = isthmus.empty(n, "uint8", resource=pool, queue=queue)
array.fill(1)
array[:1].fill(7)
block = pool.allocate(4 << 20, queue=busy)
block.fill(1, after=[gate], blocking=False)
block.free()

def copy():
    isthmus.copyto(array[1:], array[:-1])

attempt("a copy of itself", copy)
assert not gate.done, "it waited for the work"
assert array.to_numpy()[:2].tolist() == [7, 1], "nothing was copied"
gate.complete()
copy()
assert array.to_numpy()[:3].tolist() == [7, 7, 1]
print("end", flush=True)
"""
)


def test_ctrl_c_in_a_copy_that_needs_memory() -> None:
    assert interrupted(COPY) == 1


EXPORTS = (
    """
import sys
from isthmus import Array, Buffer, Event, Queue
from support import open_backend
"""
    + ATTEMPT
    + """
WAYS = {
    "cuda": {
        "interface": lambda view: view.__cuda_array_interface__,
        "dlpack": lambda view: view.__dlpack__(),
        "dlpack of an array": lambda view: Array(view, 4096, "u1").__dlpack__(),
    },
    "sycl": {"interface": lambda view: view.__sycl_usm_array_interface__},
}
device = open_backend(sys.argv[1])
for name, way in WAYS[sys.argv[1]].items():
    gate, queue, other = Event(), Queue(device), Queue(device)
    buffer = Buffer(4096, kind="device", queue=queue)
    view = buffer.on_queue(other)
    buffer.fill(7, after=[gate], blocking=False)
    attempt(name, lambda: way(view))
    assert not gate.done, "it waited for the work"
    gate.complete()
    lent = way(view)
    other.wait()
    del lent
    assert buffer.tobytes() == bytes([7]) * 4096
print("end", flush=True)
"""
)


@pytest.mark.parametrize(("backend", "ways"), [("cuda", 3), ("sycl", 1)])
def test_ctrl_c_in_exports_to_a_queue(backend: str, ways: int) -> None:
    """The driver has no event that the host completes, so the export waits for host events."""
    assert interrupted(EXPORTS, backend, environment=relay(backend)) == ways


OOM_CALLBACK = (
    """
import threading
from isthmus.memory import PoolResource, OomCallback, USMAllocationError
"""
    + ATTEMPT
    + """
runs, goes = threading.Event(), threading.Event()

def drop(request):
    runs.set()
    goes.wait()

def ask():
    try:
        pool.allocate(1 << 20)
    except USMAllocationError:
        refused.append(True)

refused = []
pool = PoolResource("host", "host", limit_bytes="1MiB", wait=0)
block = pool.allocate(1 << 20)
oom_callback = OomCallback(drop)
asks = threading.Thread(target=ask)
asks.start()
runs.wait()
attempt("oom_callback", oom_callback.close)
assert oom_callback.closed
goes.set()
asks.join()
assert refused
runs.clear()
ask()
assert not runs.is_set(), "it was removed"
print("end", flush=True)
"""
)


def test_ctrl_c_while_an_oom_callback_runs_on_another_thread() -> None:
    assert interrupted(OOM_CALLBACK) == 1


OUT_OF_MEMORY = """
import os
import signal
import threading
from isthmus import Event, Queue
from isthmus.memory import PoolResource

class Alarm(Exception):
    pass

def ring(*_):
    oom_stage.append(True)
    if len(oom_stage) == 3:
        raise Alarm

def send():
    while not pool.oom_stages["wait"].tried:
        pass
    while len(oom_stage) < 3:
        seen = len(oom_stage)
        os.kill(os.getpid(), signal.SIGALRM)
        while len(oom_stage) == seen:
            pass

oom_stage = []
signal.signal(signal.SIGALRM, ring)
queue, gate = Queue("host"), Event()
pool = PoolResource("host", "host", limit_bytes="8MiB", wait=600)
block = pool.allocate(6 << 20, queue=queue)
block.fill(1, after=[gate], blocking=False)
block.free()
sender = threading.Thread(target=send)
sender.start()
try:
    pool.allocate(6 << 20, queue=Queue("host"))
except Alarm as alarm:
    assert alarm.__context__ is None and alarm.__cause__ is None
    print("alarm", flush=True)
sender.join()
gate.complete()
pool.allocate(6 << 20, queue=Queue("host"))
"""


def test_handlers_run_during_an_oom_wait_and_may_end_it() -> None:
    assert python(OUT_OF_MEMORY).stdout == "alarm\n"


ALARMS = """
import signal
from isthmus.memory import PoolResource, USMAllocationError

class Alarm(Exception):
    pass

def ring(*_):
    oom_stage.append(True)
    raise Alarm

oom_stage = []
pool = PoolResource("host", "host", limit_bytes="1MiB", wait=0)
signal.signal(signal.SIGALRM, ring)
for count in range(1, 301):
    try:
        signal.setitimer(signal.ITIMER_REAL, count * 1e-6)
        while len(oom_stage) < count:
            try:
                pool.allocate(2 << 20)
            except USMAllocationError:
                pass
    except Alarm:
        continue
    raise AssertionError("the handler's exception was lost")
"""


def test_no_alarm_is_lost_however_it_comes() -> None:
    python(ALARMS)
