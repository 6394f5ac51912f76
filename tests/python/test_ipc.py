# SPDX-License-Identifier: Apache-2.0
"""Device memory in several processes: this one, and one that it spawns."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import filled, noise

import isthmus
from isthmus import Buffer, Device, IpcHandle, Queue, open_ipc
from isthmus.memory import PoolResource, live

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

DATA = noise(1 << 16)


def shares(device: Device) -> bool:
    return "ipc" in device.capabilities


@pytest.fixture
def device() -> Device:
    found = next((each for each in isthmus.devices() if shares(each)), None)
    if found is None:
        pytest.skip("no device shares memory with other processes")
    return found


def serve(calls: Connection, device: str) -> None:
    """In the other process: increments all bytes of each buffer, reports it, and releases it."""
    while (handle := calls.recv()) is not None:
        with open_ipc(handle, device=device) as there:
            found = there.to_numpy() + np.uint8(1)
            there.copy_from(found)
            calls.send((there.nbytes, there.kind))
    gc.collect()
    calls.send(live()[0])


def test_two_processes_have_one_memory(device: Device) -> None:
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    other = context.Process(target=serve, args=(theirs, device.filter))
    other.start()
    queue = Queue(device)
    pool = PoolResource("device", device, remap=False)
    for resource in (None, pool):
        whole = Buffer(DATA.nbytes, queue=queue, resource=resource)
        for part in (whole, whole[100:5000]):
            wanted = DATA.copy()
            whole.copy_from(wanted, blocking=False)
            mine.send(part.ipc_handle())
            assert mine.poll(60)
            assert mine.recv() == (part.nbytes, "device")
            start = part.ptr - whole.ptr
            wanted[start : start + part.nbytes] += 1
            np.testing.assert_array_equal(whole.to_numpy(), wanted)
    mine.send(None)
    assert mine.recv() == 0, "what was opened is closed"
    other.join(60)
    assert other.exitcode == 0


def test_a_handle_is_plain_bytes(device: Device) -> None:
    whole = filled(DATA, kind="device", queue=Queue(device))
    handle = whole.ipc_handle()
    assert (len(handle.handle), handle.nbytes) == (64, DATA.nbytes)
    again = pickle.loads(pickle.dumps(handle))
    assert again == handle
    assert hash(again) == hash(handle)
    assert again == IpcHandle(handle.handle, handle.offset, handle.nbytes)
    part = whole[10:].ipc_handle()
    assert (part.handle, part.offset) == (handle.handle, handle.offset + 10)
    assert part != handle
    assert handle != "a text"
    assert repr(part) == f"<isthmus.IpcHandle of {DATA.nbytes - 10} bytes at offset {part.offset}>"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((b"short", 0, 1), ValueError, "64 bytes, not 5"),
        (("text", 0, 1), TypeError, "must be bytes"),
        ((bytes(64), -1, 1), ValueError, "offset"),
        ((bytes(64), 0, -1), ValueError, "nbytes"),
        ((bytes(64), 1.5, 1), TypeError, "offset"),
    ],
)
def test_handles_that_cannot_be(
    arguments: tuple[object, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        IpcHandle(*arguments)  # type: ignore[arg-type]


def test_what_is_no_handle(device: Device) -> None:
    with pytest.raises(TypeError):
        open_ipc(bytes(64), device=device)  # type: ignore[arg-type]


def test_devices_that_share_nothing() -> None:
    with pytest.raises(isthmus.UnsupportedError, match='capability "ipc"'):
        Buffer(8, device="host").ipc_handle()
    with pytest.raises(isthmus.UnsupportedError, match='capability "ipc"'):
        open_ipc(IpcHandle(bytes(64), 0, 8), device="host")
