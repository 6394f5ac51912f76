# SPDX-License-Identifier: Apache-2.0
"""Forked children: driver work is refused, frees do nothing, host memory can be read."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import program_environment, python

if TYPE_CHECKING:
    from pathlib import Path

SETUP = """
import gc, os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on of any fork beside threads
import numpy as np
import isthmus
from isthmus import Buffer, Context, Event, ForkedError, Queue
from isthmus.memory import live
from support import open_backend

def forked(child):
    # Runs `child` in a forked child, which ends without cleaning up, and checks that all went well.
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            child()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0

def refused(action):
    try:
        action()
    except ForkedError:
        return
    raise AssertionError("was not refused")

device = open_backend(sys.argv[1])
queue = Queue(device)
kind = device.kinds[0]
"""
BACKENDS = ["host", "late", "opencl"]


def run(backend: str, code: str) -> str:
    return python(SETUP + code, backend, timeout=120).stdout


@pytest.mark.parametrize("backend", BACKENDS)
def test_driver_work_is_refused(backend: str) -> None:
    run(backend, """
buffer, other = (Buffer(4096, kind=kind, queue=queue) for _ in range(2))
buffer.fill(3)
def child():
    refused(lambda: Buffer(64, kind=kind, queue=queue))
    refused(lambda: Queue(device))
    refused(lambda: queue.fence())
    refused(lambda: queue.submit(lambda: None))
    refused(lambda: buffer.fill(1, blocking=False))
    refused(lambda: buffer.copy_from(bytes(4096), blocking=False))
    refused(lambda: Context(device))
    if kind == "device" and sys.argv[1] != "host":
        refused(lambda: buffer.fill(1))
        refused(lambda: buffer.tobytes())
        refused(lambda: other.copy_from(buffer))
for _ in range(3):
    forked(child)
assert buffer.tobytes() == bytes([3]) * 4096
buffer.fill(4)
assert other.copy_from(buffer) is None and other.tobytes() == bytes([4]) * 4096
""")  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_frees_do_nothing(backend: str) -> None:
    run(backend, """
buffers = [Buffer(1 << 16, kind=kind, queue=queue) for kind in device.kinds for _ in range(5)]
events = [buffer.fill(1, blocking=False) for buffer in buffers]
def child():
    global buffers, events, queue, device
    buffers[0].free()
    with buffers[1]:
        pass
    del buffers, events, queue, device
    gc.collect()
forked(child)
for buffer in buffers:
    assert buffer.tobytes() == bytes([1]) * (1 << 16)
""")  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_frees_of_arrays_do_nothing(backend: str) -> None:
    run(backend, """
made, other = (isthmus.ones(100, kind=kind, queue=queue) for _ in range(2))
def child():
    made.free()
    try:
        with other:
            raise KeyError
    except KeyError:
        pass
forked(child)
assert made.to_numpy().sum() == other.to_numpy().sum() == 100
""")  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_host_memory_can_be_read(backend: str) -> None:
    run(backend, """
for kind in ("shared", "host"):
    buffer = Buffer(4096, kind=kind, queue=queue)
    buffer.fill(7)
    view, before = np.asarray(buffer), bytes([7]) * 4096
    def child():
        assert view.tobytes() == before
        assert bytes(memoryview(buffer)) == before
        assert buffer.tobytes() == before
        assert buffer[5:10].tobytes() == before[:5]
        got = bytearray(4096)
        buffer.copy_to(got)
        assert got == before
        assert buffer.nbytes == 4096 and buffer.kind == kind and repr(buffer)
    forked(child)
""")  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_with_work_in_flight(backend: str) -> None:
    run(backend, """
gate = Event()
buffer = Buffer(4096, kind=kind, queue=queue)
got = bytearray(4096)
buffer.fill(9, after=[gate], blocking=False)
out = buffer.copy_to(got, blocking=False)
done = queue.submit(lambda: None)
def child():
    global buffer, out, got, done
    refused(lambda: out.wait())
    refused(lambda: queue.wait())
    del buffer, out, got, done
    gc.collect()
forked(child)
gate.complete()
out.wait()
done.wait()
assert got == bytes([9]) * 4096
""")  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pool_of_the_parent(backend: str) -> None:
    run(backend, """
from isthmus.memory import PoolResource
pool = PoolResource(kind, device)
freed, kept = pool.allocate(1000), [pool.allocate(n) for n in (1000, 1 << 20)]
for buffer in kept:
    buffer.fill(5)
freed.free()
held = pool.held_bytes
def child():
    global pool, kept
    refused(lambda: pool.allocate(1000))
    refused(lambda: pool.allocate(1 << 20))
    refused(lambda: Buffer(1000, resource=pool))
    refused(lambda: PoolResource(kind, device))
    kept[0].free()
    del kept, pool
    gc.collect()
for _ in range(3):
    forked(child)
assert [set(buffer.tobytes()) for buffer in kept] == [{5}, {5}]
assert pool.held_bytes == held
again = pool.allocate(1000)
again.fill(6)
assert set(kept[0].tobytes()) == {5}
del kept, again, buffer
pool.trim()
""")  # fmt: skip


def test_before_any_driver_was_opened() -> None:
    python("""
import os, sys
import isthmus
pid = os.fork()
buffer = isthmus.Buffer(64, kind="host")
buffer.fill(3)
assert buffer.tobytes() == bytes([3]) * 64
if pid:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
""")


def test_a_child_that_ends_in_the_ordinary_way() -> None:
    run("opencl", """
buffer = Buffer(4096, kind="host", queue=queue)
queue.submit(lambda: None)
pid = os.fork()
if pid:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
""")  # fmt: skip


def test_an_exec_in_a_child() -> None:
    run("opencl", """
import subprocess
code = "import isthmus; b = isthmus.Buffer(8); b.fill(1); print(b.tobytes())"
said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                      preexec_fn=lambda: None)
assert said.stdout == repr(bytes([1]) * 8) + "\\n", said
""")  # fmt: skip


MULTIPROCESSING = """
import multiprocessing, sys
import isthmus

def work(buffer):
    try:
        made = isthmus.Buffer(8, kind="host")
        made.fill(2)
    except isthmus.ForkedError:
        return "refused", buffer.tobytes()
    return "made", buffer.tobytes()

if __name__ == "__main__":
    buffer = isthmus.Buffer(8, kind="host")
    buffer.fill(1)
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[1] == "fork":
        # A child of fork reads the memory that it inherited.
        ends = context.Pipe()
        child = context.Process(target=lambda: ends[1].send(work(buffer)))
        child.start()
        print(ends[0].recv())
        child.join()
        assert child.exitcode == 0
    else:
        with context.Pool(2) as pool:
            print(*set(pool.map(work, [buffer] * 4)))
    buffer.fill(3)
    assert buffer.tobytes() == bytes([3]) * 8
"""


@pytest.mark.parametrize(("method", "outcome"), [("fork", "refused"), ("spawn", "made")])
def test_multiprocessing(tmp_path: Path, method: str, outcome: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(MULTIPROCESSING)
    done = subprocess.run(
        [sys.executable, str(script), method], capture_output=True, text=True, timeout=120,
        env=program_environment(), check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"({outcome!r}, {bytes([1]) * 8!r})\n"


def test_results_in_a_child_are_freed() -> None:
    run(
        "host",
        """
buffer = Buffer(8 << 20, kind="host", queue=queue)
buffer.fill(7)
kept = buffer.to_numpy()
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
def child():
    global kept
    first = buffer.to_numpy()
    before = resident()
    for _ in range(40):
        assert buffer.to_numpy()[-1] == 7
    kept = first = None
    assert resident() - before < 64 << 20
forked(child)
""",
    )
