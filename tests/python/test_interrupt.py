"""Ctrl-C interrupts every wait, and not the operation."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time

import pytest
from support import program_environment, until

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
