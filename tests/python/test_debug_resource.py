# SPDX-License-Identifier: Apache-2.0
"""The errors that a debug resource detects, and the uses that it accepts."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading

import pytest

import isthmus
from isthmus import Buffer, Queue
from isthmus.memory import DebugResource, PoolResource, ProviderResource


def over_a_pool() -> DebugResource:
    return DebugResource(PoolResource("host", "host"))


def finding(of: DebugResource) -> str:
    """The text of the error; pytest.raises would keep the reported block and its pool alive."""
    try:
        of.verify()
    except isthmus.InvalidArgumentError as problem:
        return str(problem)
    return ""


def poke(address: int) -> None:
    ctypes.memset(address, 1, 1)


@pytest.mark.parametrize("offset", [100, -1])
def test_a_write_next_to_a_block(offset: int, capfd: pytest.CaptureFixture[str]) -> None:
    checked = over_a_pool()
    buffer = checked.allocate(100)
    poke(buffer.ptr + offset)
    assert f"offset {offset} of the block" in finding(checked)
    buffer.free()
    assert f"offset {offset} of the block of 100 bytes" in capfd.readouterr().err


def test_what_is_kept_is_bounded() -> None:
    pool = PoolResource("host", "host", limit_bytes="8MiB")
    checked = DebugResource(pool, "2MiB")
    for _ in range(100):
        checked.allocate(1 << 20).free()
    assert pool.held_bytes <= 8 << 20
    checked.trim()
    assert pool.held_bytes == 0


def test_bad_arguments(q: Queue) -> None:
    with pytest.raises(TypeError, match="upstream"):
        DebugResource(None)  # type: ignore[arg-type]
    with pytest.raises(isthmus.UnsupportedError, match="device memory"):
        DebugResource(PoolResource("device", q.device))
    for wrong in (-1, 1 << 70):
        with pytest.raises(ValueError):
            DebugResource(PoolResource("host", "host"), wrong)


def test_every_resource_can_be_verified(q: Queue, kind: str) -> None:
    pool = PoolResource(kind, q.device)
    buffers = [Buffer(n, kind=kind, queue=q, resource=pool) for n in (10, 5000, 1 << 20)]
    pool.verify()
    buffers.clear()
    pool.verify()
    ProviderResource(kind, q.device).verify()


def test_it_ends_with_the_process() -> None:
    code = (
        "from isthmus.memory import DebugResource, PoolResource\n"
        "checked = DebugResource(PoolResource('host', 'host'))\n"
        "kept = checked.allocate(100)\n"
        "checked.allocate(100).free()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_free_does_not_hold_the_interpreter_up(q: Queue) -> None:
    """The function on the queue needs the GIL, which the freeing thread holds."""
    try:
        checked = DebugResource(PoolResource("host", q.device))
    except isthmus.UnsupportedError:
        pytest.skip("no host kind")
    buffer = checked.allocate(1000, queue=q)
    ran = threading.Event()
    gate = threading.Event()

    def work() -> None:
        gate.wait(10)
        ran.set()

    done = q.submit(work)
    buffer.free()
    assert not ran.is_set()
    gate.set()
    done.wait()
    checked.verify()
