# SPDX-License-Identifier: Apache-2.0
"""DLPack export and import, legacy and versioned, for host-accessible memory."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
from support import filled, noise, until

import isthmus
from isthmus import Buffer, Queue
from isthmus.memory import live

DATA = noise(4096)
CAPSULE_NAME = ctypes.pythonapi.PyCapsule_GetName
CAPSULE_NAME.restype = ctypes.c_char_p
CAPSULE_NAME.argtypes = [ctypes.py_object]


class Capsule:
    """A producer that exports one capsule."""

    def __init__(self, capsule: object, device: tuple[int, int] = (1, 0)) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **_: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def test_to_numpy(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    array = np.from_dlpack(buffer)
    assert array.ctypes.data == buffer.ptr
    assert array.dtype == np.uint8
    assert (array == DATA).all()


def test_device(q: Queue, host_kind: str) -> None:
    assert Buffer(8, kind=host_kind, queue=q).__dlpack_device__() == (1, 0)


def test_device_kind_has_none(q: Queue) -> None:
    if q.device.backend == "cuda":
        pytest.skip("is lent as CUDA's")
    buffer = Buffer(8, kind="device", queue=q)
    for ask in (buffer.__dlpack__, buffer.__dlpack_device__, lambda: np.from_dlpack(buffer)):
        with pytest.raises(BufferError, match="device"):
            ask()


@pytest.mark.parametrize(
    ("max_version", "name"),
    [
        (None, b"dltensor"),
        ((0, 8), b"dltensor"),
        ((1, 0), b"dltensor_versioned"),
        ((2, 3), b"dltensor_versioned"),
    ],
)
def test_versions(
    q: Queue, host_kind: str, max_version: tuple[int, int] | None, name: bytes
) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    gc.collect()
    count = live()[0]
    capsule = buffer.__dlpack__(max_version=max_version)
    assert CAPSULE_NAME(capsule) == name
    array = np.from_dlpack(Capsule(capsule))
    del capsule
    buffer.free()
    assert live()[0] == count, "the array holds it"
    assert (array == DATA).all()
    del array
    gc.collect()
    assert live()[0] == count - 1


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_unconsumed_capsules(q: Queue, host_kind: str, max_version: tuple[int, int] | None) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    capsule = buffer.__dlpack__(max_version=max_version)
    before = live()[0]
    buffer.free()
    assert live()[0] == before
    del capsule
    assert live()[0] == before - 1


def test_copies(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    array = np.from_dlpack(Capsule(buffer.__dlpack__(max_version=(1, 0), copy=True)))
    assert array.ctypes.data != buffer.ptr
    buffer.fill(0)
    assert (array == DATA).all()
    shared = np.from_dlpack(Capsule(buffer.__dlpack__(max_version=(1, 0), copy=False)))
    assert shared.ctypes.data == buffer.ptr


def test_read_only(q: Queue, host_kind: str) -> None:
    source = filled(DATA, kind=host_kind, queue=q)
    buffer = Buffer.adopt(source.ptr, 4096, queue=q, owner=source, read_only=True)
    assert not np.from_dlpack(buffer).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        buffer.__dlpack__()


def test_other_devices_and_streams(q: Queue, host_kind: str) -> None:
    buffer = Buffer(8, kind=host_kind, queue=q)
    assert CAPSULE_NAME(buffer.__dlpack__(dl_device=(1, 0))) == b"dltensor"
    for wrong in ({"dl_device": (2, 99)}, {"dl_device": (14, 0)}, {"stream": 1}):
        with pytest.raises(BufferError):
            buffer.__dlpack__(**wrong)


def test_no_bytes(q: Queue, host_kind: str) -> None:
    assert np.from_dlpack(Buffer(0, kind=host_kind, queue=q)).shape == (0,)


def test_waits_for_pending_work(q: Queue, host_kind: str) -> None:
    buffer = Buffer(4096, kind=host_kind, queue=q)
    buffer.copy_from(DATA, blocking=False)
    assert (np.from_dlpack(buffer) == DATA).all()


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16", "?"])
def test_from_numpy(dtype: str) -> None:
    source = (DATA & 1).view(dtype).reshape(2, -1).copy()
    gone = weakref.ref(source)
    buffer = isthmus.from_dlpack(source)
    assert (buffer.kind, buffer.nbytes, buffer.ptr) == ("host", 4096, source.ctypes.data)
    buffer[0:8].fill(1)
    assert source.view("u1")[0, :8].tolist() == [1] * 8
    del source
    gc.collect()
    assert buffer.tobytes()[8:] == (DATA & 1)[8:].tobytes()
    del buffer
    assert until(lambda: gone() is None)


def test_from_read_only_arrays() -> None:
    source = DATA.copy()
    source.flags.writeable = False
    buffer = Buffer.from_dlpack(source)
    assert buffer.read_only
    with pytest.raises(isthmus.ReadOnlyError):
        buffer.fill(1)


def test_there_and_back(q: Queue, host_kind: str) -> None:
    buffer = filled(DATA, kind=host_kind, queue=q)
    for max_version in (None, (1, 0)):
        again = Buffer.from_dlpack(buffer.__dlpack__(max_version=max_version), queue=q)
        assert again.kind == host_kind
        assert again.tobytes() == DATA.tobytes()
        assert again.ptr == buffer.ptr


def test_a_capsule_is_used_once(q: Queue, host_kind: str) -> None:
    capsule = filled(DATA, kind=host_kind, queue=q).__dlpack__()
    first = Buffer.from_dlpack(capsule, queue=q)
    assert CAPSULE_NAME(capsule) == b"used_dltensor"
    with pytest.raises(BufferError, match="unused"):
        Buffer.from_dlpack(capsule)
    assert first.nbytes == 4096


def test_arrays_with_gaps() -> None:
    for source in (DATA[::2], DATA.reshape(64, 64)[:, :3]):
        with pytest.raises(ValueError, match="contiguous"):
            Buffer.from_dlpack(source)


def test_what_is_on_no_device_that_is_known() -> None:
    with pytest.raises(BufferError, match=r"\(15, 0\) is not supported"):
        Buffer.from_dlpack(Capsule(None, (15, 0)))
    with pytest.raises(BufferError, match=r"\(14, 1000\) is not a dpctl device"):
        Buffer.from_dlpack(Capsule(None, (14, 1000)))


@pytest.mark.parametrize("wrong", [5, b"abc", object(), None])
def test_what_has_no_dlpack(wrong: object) -> None:
    with pytest.raises((AttributeError, TypeError)):
        Buffer.from_dlpack(wrong)


def test_a_later_major_version_is_refused() -> None:
    class Managed(ctypes.Structure):
        _fields_ = (
            ("major", ctypes.c_uint32),
            ("minor", ctypes.c_uint32),
            ("rest", ctypes.c_char * 72),
        )

    lent, name = Managed(2, 5), b"dltensor_versioned"
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    capsule = new(ctypes.addressof(lent), name, None)
    with pytest.raises(BufferError, match=r"2\.5"):
        Buffer.from_dlpack(Capsule(capsule))
    assert CAPSULE_NAME(capsule) == name, "it stays unused"
