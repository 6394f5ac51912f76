# SPDX-License-Identifier: Apache-2.0
"""memoryview, NumPy, bytearray and array.array with the shared and host kinds."""

from __future__ import annotations

import array
import io
import struct

import numpy as np
import pytest
from support import filled, noise, stops_dependents

import isthmus
import isthmus.memory
from isthmus import Buffer, Event, Queue

DATA = noise(4096)


def test_memoryview(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    view = memoryview(buffer)
    assert (view.format, view.ndim, view.shape, view.itemsize) == ("B", 1, (4096,), 1)
    assert view.contiguous
    assert not view.readonly
    assert view.obj is buffer
    view[10:14] = b"abcd"
    assert buffer[8:16].tobytes() == DATA[8:10].tobytes() + b"abcd" + DATA[14:16].tobytes()
    assert view.cast("I")[0] == struct.unpack("I", DATA[:4].tobytes())[0]


def test_numpy(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    array_ = np.asarray(buffer)
    assert array_.ctypes.data == buffer.ptr
    assert array_.dtype == np.uint8
    assert (array_ == DATA).all()
    array_[:] = 7
    assert buffer.tobytes() == bytes([7]) * 4096
    typed = np.frombuffer(buffer, np.float64)
    assert typed.shape == (512,)
    np.ndarray((64, 64), np.uint8, buffer)[:] = 8
    assert buffer.tobytes() == bytes([8]) * 4096


def test_the_standard_library(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    assert bytes(buffer) == bytearray(buffer) == DATA.tobytes()
    assert array.array("B", memoryview(buffer)).tobytes() == DATA.tobytes()
    assert io.BytesIO(buffer).getvalue() == DATA.tobytes()
    assert b"".join([buffer, b"!"]) == DATA.tobytes() + b"!"
    assert io.BytesIO(bytes(4096)).readinto(buffer) == 4096
    assert buffer.tobytes() == bytes(4096)
    struct.pack_into("<I", buffer, 4, 0x01020304)
    assert buffer[4:8].tobytes() == b"\4\3\2\1"


def test_slices(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    assert bytes(memoryview(buffer[100:200])) == DATA[100:200].tobytes()
    assert np.asarray(buffer[7:9]).ctypes.data == buffer.ptr + 7


def test_no_bytes(q: Queue, host_kind: str) -> None:
    empty = Buffer(0, kind=host_kind, queue=q)
    assert bytes(memoryview(empty)) == b""
    assert np.asarray(empty).shape == (0,)
    assert bytes(memoryview(Buffer(8, kind=host_kind, queue=q)[3:3])) == b""


def test_device_kind_has_none(q: Queue) -> None:
    buffer = Buffer(100, kind="device", queue=q)
    for take in (memoryview, lambda b: np.frombuffer(b, np.uint8), bytearray(200).__iadd__):
        with pytest.raises((BufferError, TypeError)):
            take(buffer)
    with pytest.raises(BufferError, match=r"copy_to.*submit"):
        memoryview(buffer)
    with pytest.raises(TypeError, match="to_numpy"):
        np.asarray(buffer)


def test_views_wait_for_pending_work(q: Queue, host_kind: str) -> None:
    buffer = Buffer(4096, kind=host_kind, queue=q)
    buffer.copy_from(DATA, blocking=False)
    assert bytes(memoryview(buffer)) == DATA.tobytes()
    buffer.fill(3, blocking=False)
    assert (np.asarray(buffer) == 3).all()


def test_a_view_of_failed_work(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    cause = Event()
    buffer.fill(1, after=[cause], blocking=False)
    cause.fail("no")
    expected = DATA.tobytes() if stops_dependents(q) else bytes([1]) * 4096
    assert bytes(memoryview(buffer)) == expected


def test_work_during_an_export(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    view = np.asarray(buffer)
    buffer.fill(9)
    assert (view == 9).all()


def test_array_interface(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    told = buffer.__array_interface__
    assert told["typestr"] == "|u1"
    assert told["shape"] == (4096,)
    assert told["version"] == 3
    assert told["data"] == (buffer.ptr, False)

    class Only:
        __array_interface__ = told

    assert (np.asarray(Only()) == DATA).all()


def test_array_interface_of_device_kind(q: Queue) -> None:
    buffer = Buffer(100, kind="device", queue=q)
    assert not hasattr(buffer, "__array_interface__")
    with pytest.raises(AttributeError, match="device"):
        _ = buffer.__array_interface__


def test_copies_into_its_own_view(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    half = np.asarray(buffer)[:2048]
    buffer.copy_from(half, offset=2048)
    assert buffer.tobytes() == DATA[:2048].tobytes() * 2


def test_a_kept_view_outlives_everything(q: Queue, host_kind: str) -> None:
    view = memoryview(filled(DATA, kind=host_kind, queue=q)[1:])
    assert isthmus.memory.live()[0] >= 1
    assert bytes(view) == DATA[1:].tobytes()
