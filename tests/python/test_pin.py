# SPDX-License-Identifier: Apache-2.0
"""isthmus.pin: any object with a buffer or an address is pinned, kept, shared and released."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import os
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from support import message_has, noise, python, until

import isthmus
from isthmus import Buffer, ClosedError, Device, InvalidArgumentError, Pin, Queue
from isthmus.memory import PoolResource, ProviderResource, query

NBYTES = 3 << 20


def registers(dev: Device) -> bool:
    """Whether this driver registers pinned memory."""
    return dev.filter.startswith("cuda")


def known(q: Queue, memory: np.ndarray) -> bool:
    """Whether the driver currently reports the memory as its own."""
    return query(memory.ctypes.data, context=q.context).kind == "host"


def there_and_back(q: Queue, memory: np.ndarray) -> None:
    data = noise(memory.nbytes, 3)
    memory[:] = data
    there = Buffer(memory.nbytes, queue=q)
    there.copy_from(memory)
    memory[:] = 0
    there.copy_to(memory)
    assert (memory == data).all()
    copied = there.copy_from(memory, blocking=False)
    copied.wait()
    memory[:] = 0
    there.copy_to(memory, blocking=False).wait()
    assert (memory == data).all()


def test_copies_of_pinned_memory_are_right(q: Queue, dev: Device) -> None:
    memory = np.zeros(NBYTES, np.uint8)
    with isthmus.pin(memory, device=dev) as pinned:
        assert isinstance(pinned, Pin)
        assert pinned.nbytes == NBYTES
        assert pinned.ptr == memory.ctypes.data
        assert pinned.device == dev
        assert pinned.is_registered == registers(dev)
        there_and_back(q, memory)
    there_and_back(q, memory)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bytearray(100_000),
        lambda: bytes(100_000),
        lambda: memoryview(bytearray(100_000)),
        lambda: array.array("d", bytes(100_000)),
        lambda: np.zeros((100, 200), np.float32),
        lambda: np.zeros((100, 200), np.float32, order="F"),
        lambda: np.zeros(1000, "M8[s]"),
        lambda: np.float64(3),
        lambda: mmap.mmap(-1, 100_000),
        lambda: b"",
        lambda: np.empty(0),
    ],
    ids=[
        "bytearray",
        "bytes",
        "memoryview",
        "array",
        "2d",
        "fortran",
        "dates",
        "scalar",
        "mmap",
        "no bytes",
        "no elements",
    ],
)
def test_whatever_has_a_buffer(make: Any, dev: Device) -> None:
    held = make()
    pinned = isthmus.pin(held, device=dev)
    nbytes = held.nbytes if isinstance(held, np.ndarray) else memoryview(held).nbytes
    assert pinned.nbytes == nbytes
    assert pinned.is_registered == (registers(dev) and pinned.nbytes > 0)
    pinned.release()


def test_read_only_pages(q: Queue, dev: Device, tmp_path: Any) -> None:
    path = tmp_path / "data"
    data = noise(100_000)
    path.write_bytes(data.tobytes())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        try:
            pinned = isthmus.pin(mapped, device=dev)
        except (isthmus.UnsupportedError, InvalidArgumentError) as refused:
            assert "read" in str(refused)  # noqa: PT017 (devices differ)
        else:
            there = Buffer(data.nbytes, queue=q)
            there.copy_from(mapped)
            assert there.tobytes() == data.tobytes()
            pinned.release()


def test_an_address_and_its_owner(dev: Device) -> None:
    memory = np.zeros(NBYTES, np.uint8)

    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    pinned = isthmus.pin(memory.ctypes.data, memory.nbytes, device=dev, owner=owner)
    del owner
    assert gone() is not None
    pinned.release()
    assert gone() is None


def test_the_array_lives_and_keeps_its_size(dev: Device) -> None:
    held = bytearray(100_000)
    pinned = isthmus.pin(held, device=dev)
    with pytest.raises(BufferError):
        held.extend(b"more")
    pinned.release()
    held.extend(b"more")
    again = isthmus.pin(held, device=dev)
    del again
    gc.collect()
    held.extend(b"more")


def test_properties_and_repr(dev: Device) -> None:
    pinned = isthmus.pin(np.zeros(100), device=dev)
    told = "registered with" if registers(dev) else "not registered with"
    assert repr(pinned).startswith("<isthmus.Pin of 800 bytes at 0x")
    assert f", {told} " in repr(pinned)
    pinned.release()
    pinned.release()
    assert repr(pinned) == "<isthmus.Pin, released>"
    for name in ("nbytes", "ptr", "is_registered", "device"):
        with pytest.raises(ClosedError, match="released"):
            getattr(pinned, name)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "parts"),
    [
        ((3.5,), {}, TypeError, ["array", "float"]),
        ((None,), {}, TypeError, ["array", "NoneType"]),
        ((0, 8), {}, InvalidArgumentError, ["NULL"]),
        ((-1, 8), {}, ValueError, ["-1"]),
        ((2**64, 8), {}, ValueError, [2**64]),
        ((4096,), {}, TypeError, ["nbytes"]),
        ((4096, -1), {}, ValueError, [-1]),
        ((4096, 2**63), {}, ValueError, [2**63]),
        ((4096, 2**63 - 1), {"owner": 3}, InvalidArgumentError, []),
        ((bytearray(8), 8), {}, TypeError, ["bytearray", "nbytes"]),
        ((bytearray(8),), {"owner": 3}, TypeError, ["owner"]),
        ((bytearray(8),), {"read_only": "no"}, TypeError, ["read_only"]),
        ((bytearray(8),), {"device": 3}, TypeError, ["device"]),
        ((np.zeros((8, 8))[::2],), {}, ValueError, ["contiguous"]),
        ((np.array([None]),), {}, TypeError, ["references"]),
    ],
)
def test_bad_input(arguments: Any, keywords: Any, error: Any, parts: Any) -> None:
    device = Device("cuda") if isthmus.devices("cuda") else Device("host")
    if not parts and not registers(device):
        pytest.skip("the host takes any memory")
    with pytest.raises(error) as raised:
        isthmus.pin(*arguments, **({"device": device} | keywords))
    message_has(raised, parts)


def test_memory_of_ours(q: Queue, dev: Device, kind: str) -> None:
    own = Buffer(10_000, kind=kind, queue=q)
    if kind == "device":
        with pytest.raises(InvalidArgumentError, match="device memory"):
            isthmus.pin(own, device=dev)
    else:
        assert not isthmus.pin(own, device=dev).is_registered
        own.free()
    with pytest.raises(ClosedError):
        isthmus.pin(Buffer(0, queue=q).free() or freed(q), device=dev)


def freed(q: Queue) -> Buffer:
    made = Buffer(100, queue=q)
    made.free()
    return made


class InFlight:
    """Pinned memory with a pending copy."""

    def __init__(self, q: Queue, dev: Device, gate: isthmus.Event) -> None:
        if not registers(dev):
            pytest.skip("nothing is registered")
        self.data = noise(NBYTES)
        self.there = Buffer(NBYTES, queue=q)
        self.pinned: isthmus.Pin | None = isthmus.pin(self.data, device=dev)
        self.copied = self.there.copy_from(self.data, after=gate, blocking=False)


def test_release_waits_for_work_in_flight(q: Queue, dev: Device, gate: isthmus.Event) -> None:
    now = InFlight(q, dev, gate)
    assert now.pinned is not None
    opener = threading.Thread(target=gate.complete)
    opener.start()
    now.pinned.release()
    assert now.copied.done
    opener.join()
    assert now.there.tobytes() == now.data.tobytes()


def test_a_dropped_pin_ends_after_the_copy(q: Queue, dev: Device, gate: isthmus.Event) -> None:
    now = InFlight(q, dev, gate)
    now.pinned = None
    gc.collect()
    assert known(q, now.data)
    gate.complete()
    now.copied.wait()
    assert until(lambda: not known(q, now.data))


def test_a_forked_child(dev: Device) -> None:
    pinned = isthmus.pin(bytearray(10_000), device=dev)
    child = os.fork()
    if child == 0:
        try:
            isthmus.pin(bytearray(10), device=dev)
        except isthmus.ForkedError:
            pinned.release()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    pinned.release()


def test_pinned_at_the_end_of_the_process(dev: Device) -> None:
    if dev.filter.startswith("sim"):
        pytest.skip("of this test's process alone")
    python(
        "import sys, numpy, isthmus\n"
        "data = numpy.zeros(10 << 20, 'u1')\n"
        "kept = isthmus.pin(data, device=sys.argv[1])\n"
        "there = isthmus.Buffer(data.nbytes, device=sys.argv[1])\n"
        "there.copy_from(data, blocking=False)\n",
        dev.filter,
    )


def test_write_combined(q: Queue, dev: Device) -> None:
    if "host" not in dev.kinds:
        pytest.skip("no host kind")
    with pytest.raises(ValueError, match="host"):
        ProviderResource("device", device=dev, write_combined=True)
    if "write_combine" not in dev.capabilities:
        with pytest.raises(isthmus.UnsupportedError, match="write-combined"):
            ProviderResource("host", device=dev, write_combined=True)
        return
    memory = ProviderResource("host", device=dev, write_combined=True)
    assert Buffer(NBYTES, kind="host", queue=q, resource=memory).nbytes == NBYTES


def test_freed_memory_of_a_pool(q: Queue, dev: Device, host_kind: str) -> None:
    pool = PoolResource(host_kind, dev)
    kept = pool.allocate(100_000, queue=q)
    gone = pool.allocate(100_000, queue=q)
    view = np.frombuffer((ctypes.c_ubyte * 1000).from_address(gone.ptr), np.uint8)
    gone.free()
    q.wait()
    for arguments in ((view,), (view.ctypes.data, 1000)):
        with pytest.raises(InvalidArgumentError, match="not allocated"):
            isthmus.pin(*arguments, device=dev)
    isthmus.pin(kept, device=dev).release()
