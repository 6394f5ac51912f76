"""Ctrl-C interrupts every wait, and not the operation; no signal's exception is lost."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time

import pytest
from support import program_environment, python, some_of, until
from unified_support import TELLS_PAGES

PROGRAM = """
import sys
import time
import numpy
import isthmus
from isthmus import Buffer, Event, Queue
from support import open_backend

queue = Queue(open_backend(sys.argv[1]))
gate, data, got = Event(), bytes([7]) * 4096, bytearray(4096)
buffer = Buffer(4096, kind="shared", queue=queue)
waits = {
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
}
if sys.argv[2] in ("buffer", "view", "asarray", "interface", "busy elsewhere"):
    # On another queue, so that the buffer is busy and its own queue is not.
    Queue(queue.device).copy(buffer, data, after=[gate], blocking=False)
try:
    print("ready", flush=True)
    waits[sys.argv[2]]()
except KeyboardInterrupt:
    print("interrupted", flush=True)
gate.complete()
if sys.argv[2] in ("copy", "fill", "busy elsewhere"):
    assert buffer.tobytes() == data, "the operation went on, with its memory alive"
queue.wait()
print("end", flush=True)
"""
WAITS = ["event", "host event", "timeout", "queue", "wait_for", "copy", "fill"]
WAITS += ["buffer", "view", "asarray", "interface", "busy elsewhere"]


CASES = [*itertools.product(["host", "opencl"], WAITS), ("late", "copy")]


@pytest.mark.parametrize(("backend", "wait"), CASES)
def test_ctrl_c(backend: str, wait: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, backend, wait],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=program_environment(),
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        interrupt_until_it_ends(program)
        out, err = program.communicate(timeout=30)
    finally:
        program.kill()
    assert (out, err, program.returncode) == ("interrupted\nend\n", "", 0)


def interrupt_until_it_ends(program: subprocess.Popen[str]) -> None:
    """One signal, sent once the program surely waits: its main thread sleeps."""

    def sleeps() -> bool:
        with open(f"/proc/{program.pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "S"

    assert until(lambda: sleeps() and not time.sleep(0.05) and sleeps(), 30)
    program.send_signal(signal.SIGINT)


UNIFIED = """
import copy
import pickle
import sys
import warnings
import numpy as np
import isthmus
from isthmus import Event, Queue, UnifiedBuffer
from support import open_backend

warnings.simplefilter("ignore")  # a simulated device is not there for a pickle
backend, tracking, name, n = *sys.argv[1:4], 200_000
queue, gate = Queue(open_backend(backend)), Event()
u = UnifiedBuffer(n, np.uint8, queue=queue, separate=True, tracking=tracking)
u.host[:] = 1
u.device.fill(7, after=[gate], blocking=False)
u.mark_device_dirty()
target = isthmus.empty(n, "uint8", device="host")

def read(entered):
    with entered as array:
        return array

def resolve():
    u.mark_host_dirty()
    u.resolve("device")
    return u.host

def twice():
    try:
        u.host
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    return u.host

def pipeline():
    def fn(array):
        array.fill(7, after=[gate], blocking=False)
    return next(isthmus.pipeline([np.ones(n, np.uint8)], fn, queue=queue))

waits = {
    "host": lambda: u.host,
    "twice": twice,
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
    "pipeline": pipeline,
}
try:
    print("ready", flush=True)
    waits[name]()
except KeyboardInterrupt:
    print("interrupted", flush=True)
if gate.done:
    sys.exit("it waited for the work")
gate.complete()
assert (waits[name]() == 7).all(), "the same call again gives the bytes of the device"
assert (u.host == 7).all()
assert (u.device.to_numpy() == 7).all()
u.host[5] = 9
assert u.device.to_numpy()[5] == 9
queue.wait()
print("end", flush=True)
"""
LISTED = UNIFIED.partition("waits = {\n")[2].partition("\n}")[0]
UNIFIED_WAITS = [line.split('"')[1] for line in LISTED.splitlines()]
# On the host a pipeline's function gets NumPy's arrays, whose fill waits for no event.
HOST_WAITS = [name for name in UNIFIED_WAITS if name != "pipeline"]
# Each takes a process of its own: all calls on one device, and some of them on the others.
UNIFIED_CASES = [
    *itertools.product(["late"], ["bytes"], UNIFIED_WAITS),
    *some_of(itertools.product(["host"], ["bytes"], HOST_WAITS)),
    *some_of(itertools.product(["opencl"], ["bytes"], UNIFIED_WAITS)),
    *some_of(itertools.product(["late"], ["hashes"], UNIFIED_WAITS)),
    *some_of(itertools.product(["late"], ["pages"] if TELLS_PAGES else [], UNIFIED_WAITS)),
]


@pytest.mark.parametrize(("backend", "tracking", "wait"), UNIFIED_CASES)
def test_ctrl_c_where_the_device_has_newer_bytes(backend: str, tracking: str, wait: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", UNIFIED, backend, tracking, wait],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=program_environment(),
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        interrupt_until_it_ends(program)
        if wait == "twice":
            assert program.stdout.readline() == "interrupted\n"
            interrupt_until_it_ends(program)
        out, err = program.communicate(timeout=30)
    finally:
        program.kill()
    assert (out, err, program.returncode) == ("interrupted\nend\n", "", 0)


OUT_OF_MEMORY = """
import os
import signal
import threading
from isthmus import Event, Queue
from isthmus.memory import PoolResource, USMAllocationError

class Alarm(Exception):
    pass

def ring(*_):
    raise Alarm

def send():
    while not pool.rungs["wait"].tried:
        pass
    os.kill(os.getpid(), signal.SIGALRM)

signal.signal(signal.SIGALRM, ring)
queue, gate = Queue("host"), Event()
pool = PoolResource("host", "host", limit_bytes="8MiB", wait=3)
block = pool.allocate(6 << 20, queue=queue)
block.fill(1, after=[gate], blocking=False)
block.free()
sender = threading.Thread(target=send)
sender.start()
try:
    pool.allocate(6 << 20, queue=Queue("host"))
except Alarm as alarm:
    assert type(alarm.__context__) is USMAllocationError, alarm.__context__
    print("alarm", flush=True)
sender.join()
gate.complete()
"""


def test_a_signal_while_memory_is_short_is_not_lost() -> None:
    assert python(OUT_OF_MEMORY).stdout == "alarm\n"


ALARMS = """
import signal
from isthmus.memory import PoolResource, USMAllocationError

class Alarm(Exception):
    pass

def ring(*_):
    rung.append(True)
    raise Alarm

rung = []
pool = PoolResource("host", "host", limit_bytes="1MiB", wait=0)
signal.signal(signal.SIGALRM, ring)
for count in range(1, 301):
    try:
        signal.setitimer(signal.ITIMER_REAL, count * 1e-6)
        while len(rung) < count:
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
