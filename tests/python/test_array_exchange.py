# SPDX-License-Identifier: Apache-2.0
"""Array exported to other libraries: the interfaces, DLPack, the buffer protocol, NumPy."""

from __future__ import annotations

import ctypes
import gc
import io
import threading
from typing import Any

import numpy as np
import pytest
from dlpack_support import Tensor
from support import filled

import isthmus
from isthmus import Array, Buffer, Event, Queue
from isthmus.memory import as_usm_memory, live

MODEL = np.arange(120, dtype=np.float32).reshape(6, 5, 4)
VIEWS: dict[str, Any] = {"all": ..., "dense": slice(2, 4), "gaps": (slice(1, 6, 2), ..., 1)}
view = pytest.mark.parametrize("key", VIEWS.values(), ids=VIEWS)


def array_of(model: np.ndarray, queue: Queue, kind: str, **adopt: Any) -> Array:
    buffer = filled(model, kind=kind, queue=queue)
    if adopt:
        buffer = Buffer.adopt(buffer.ptr, buffer.nbytes, queue=queue, owner=buffer, **adopt)
    return Array(buffer, model.shape, model.dtype)


class Foreign:
    """An object of another library that exposes only an interface dictionary."""

    def __init__(self, name: str, dictionary: dict[str, Any]) -> None:
        setattr(self, name, dictionary)


def tensor_in(capsule: object) -> Tensor:
    """The structure that the consumer of an unversioned capsule reads."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return Tensor.from_address(pointer(capsule, b"dltensor"))


def extent(of: np.ndarray) -> int:
    """Bytes from the start of the first element to the end of the last one."""
    steps = zip(of.shape, of.strides, strict=True)
    return of.itemsize + sum((count - 1) * stride for count, stride in steps)


@view
def test_sycls_interface(q: Queue, kind: str, key: Any) -> None:
    made, model = array_of(MODEL, q, kind), MODEL[key]
    told = made[key].__sycl_usm_array_interface__
    first = made.ptr + model.ctypes.data - MODEL.ctypes.data
    assert told["data"] == (first, False)
    assert (told["shape"], told["typestr"], told["version"]) == (model.shape, "<f4", 1)
    assert told["syclobj"] is q
    dense = model.flags.c_contiguous
    assert told["strides"] == (None if dense else tuple(s // 4 for s in model.strides))
    # Foreign arrays with such an interface are accepted as described.
    taken = array_of(np.zeros_like(model), q, kind)
    taken.copy_from(Foreign("__sycl_usm_array_interface__", told))
    assert (taken.to_numpy() == model).all()
    box = as_usm_memory(made[key])
    assert box._pointer == first
    assert box.nbytes == extent(model)


@view
def test_numpys_interface(q: Queue, host_kind: str, key: Any) -> None:
    made = array_of(MODEL, q, host_kind)
    part = made[key]
    told = Foreign("__array_interface__", part.__array_interface__)
    for got in (np.asarray(told), np.asarray(part), np.array(part), np.from_dlpack(part)):
        assert got.dtype == np.float32
        assert got.shape == MODEL[key].shape
        assert (got == MODEL[key]).all()
    assert np.asarray(part).ctypes.data == np.from_dlpack(part).ctypes.data == part.ptr
    np.asarray(part)[...] = 7
    model = MODEL.copy()
    model[key] = 7
    assert (made.to_numpy() == model).all()
    assert np.asarray(part, dtype=np.int16).dtype == np.int16
    assert part.__array__(copy=True).ctypes.data != part.ptr
    assert (np.asarray(part) + np.asarray(part)).max() == 14


@view
def test_the_buffer_protocol(q: Queue, host_kind: str, key: Any) -> None:
    made, model = array_of(MODEL, q, host_kind), MODEL[key]
    seen = memoryview(made[key])
    assert (seen.format, seen.itemsize, seen.ndim) == ("f", 4, model.ndim)
    assert (seen.shape, seen.strides) == (model.shape, model.strides)
    assert seen.nbytes == model.nbytes
    assert seen.tolist() == model.tolist()
    assert bytes(seen) == model.tobytes()
    if model.flags.c_contiguous:
        assert bytearray(made[key]) == model.tobytes()
        assert seen.cast("B").nbytes == model.nbytes
    else:
        with pytest.raises(BufferError, match="to_numpy"):
            io.BytesIO(made[key])
    before = live()[0]
    made.buffer.free()
    assert live()[0] == before, "the view holds it"
    assert seen.tolist() == model.tolist()


def test_fortran_order(q: Queue, host_kind: str) -> None:
    model = np.asfortranarray(MODEL[0])
    buffer = filled(model.tobytes("F"), kind=host_kind, queue=q)
    made = Array(buffer, model.shape, strides=model.strides)
    assert memoryview(made).f_contiguous
    assert np.asarray(made).flags.f_contiguous
    target = Buffer(80, kind=host_kind, queue=q)
    with pytest.raises(ValueError, match="not contiguous"):
        target.copy_from(made)
    assert (made.to_numpy() == model).all()


@view
def test_dlpack_type_shape_and_strides(q: Queue, host_kind: str, key: Any) -> None:
    made, model = array_of(MODEL, q, host_kind), MODEL[key]
    capsule = made[key].__dlpack__()
    tensor = tensor_in(capsule)
    assert (tensor.data, tensor.byte_offset) == (made[key].ptr, 0)
    assert (*tensor.device,) == made.__dlpack_device__() == (1, 0)
    assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)
    assert tuple(tensor.shape[: tensor.ndim]) == model.shape
    assert tuple(tensor.strides[: tensor.ndim]) == tuple(s // 4 for s in model.strides)
    copy = made[key].__dlpack__(copy=True)
    assert tensor_in(copy).data != tensor.data
    assert tensor_in(copy).strides[model.ndim - 1] == 1


@pytest.mark.parametrize(
    ("name", "code", "bits"),
    [("?", 6, 8), ("i2", 0, 16), ("u8", 1, 64), ("f2", 2, 16), ("f8", 2, 64), ("D", 5, 128)],
)
@pytest.mark.sim_and_host
def test_dlpacks_types(q: Queue, host_kind: str, name: str, code: int, bits: int) -> None:
    made = Array(Buffer(64, kind=host_kind, queue=q), 2, name)
    made.fill(1)
    capsule = made.__dlpack__()
    assert (tensor_in(capsule).code, tensor_in(capsule).bits) == (code, bits)
    assert np.from_dlpack(made).dtype == np.dtype(name)
    assert (np.from_dlpack(made) == np.ones(2, name)).all()
    with pytest.raises(BufferError, match="256 bits"):
        Array(Buffer(64, kind=host_kind, queue=q), 2, np.clongdouble).__dlpack__()


class Copied:
    """Exports a host copy, which NumPy requests with copy=True from version 2.1 on."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **_: object) -> object:
        return self.array.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=True)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@view
def test_dlpack_copies(q: Queue, kind: str, key: Any) -> None:
    """Host copies of arrays of any kind are contiguous."""
    made = array_of(MODEL, q, kind)
    got = np.from_dlpack(Copied(made[key]))
    made.fill(0)
    assert got.flags.c_contiguous
    assert got.dtype == np.float32
    assert (got == MODEL[key]).all()


def test_dlpacks_loan_outlives_the_array(q: Queue, host_kind: str) -> None:
    gc.collect()
    before = live()[0]
    got = np.from_dlpack(array_of(MODEL, q, host_kind)[1:, ::2])
    gc.collect()
    assert live()[0] == before + 1
    assert (got == MODEL[1:, ::2]).all()
    del got
    gc.collect()
    assert live()[0] == before


def test_device_kind_is_not_the_hosts(q: Queue) -> None:
    made = array_of(MODEL, q, "device")
    with pytest.raises(BufferError, match=r"copy_to.*submit"):
        memoryview(made)
    for take in (np.asarray, np.array):
        with pytest.raises(TypeError, match="to_numpy"):
            take(made)
    with pytest.raises(AttributeError, match="device"):
        _ = made.__array_interface__
    with pytest.raises(BufferError, match="without a copy"):
        made.__dlpack__(dl_device=(1, 0), copy=False)
    if q.device.backend not in ("cuda", "sycl"):
        with pytest.raises(BufferError, match="device"):
            made.__dlpack_device__()
    if q.device.backend != "cuda":
        with pytest.raises(AttributeError, match="not a CUDA device"):
            _ = made.__cuda_array_interface__


def test_read_only(q: Queue, host_kind: str) -> None:
    made = array_of(MODEL, q, host_kind, read_only=True)
    assert made.read_only
    assert made[0].read_only
    assert "read-only" in repr(made)
    assert not np.asarray(made[:, ::2]).flags.writeable
    assert not np.from_dlpack(made[:, ::2]).flags.writeable
    assert made.__sycl_usm_array_interface__["data"] == (made.ptr, True)
    assert np.array(made).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        made.__dlpack__()
    for write in (
        made.fill,
        made[:, ::2].fill,
        lambda: made.copy_from(MODEL),
        lambda: made[:, 1:].copy_from(MODEL[:, 1:]),
        lambda: np.asarray(made).__setitem__(0, 1),
    ):
        with pytest.raises((isthmus.ReadOnlyError, ValueError), match="read-only"):
            write()
    assert (made.to_numpy() == MODEL).all()


def test_pending_work_is_waited_for(q: Queue, host_kind: str, gate: Event) -> None:
    made = array_of(MODEL, q, host_kind)
    after = gate if "wait_for_host" in q.device.capabilities else ()
    made.fill(5, after=after, blocking=False)
    opener = threading.Timer(0.02, gate.complete)
    opener.start()
    assert (np.asarray(made) == 5).all()
    opener.join()
    made[:, ::2].fill(6, blocking=False)
    assert (np.from_dlpack(made)[:, ::2] == 6).all()


def test_cudas_interface(q: Queue, kind: str) -> None:
    if q.device.backend != "cuda":
        pytest.skip("no CUDA device")
    made = array_of(MODEL, q, kind)
    told = made[1:, ::2].__cuda_array_interface__
    assert (told["shape"], told["typestr"], told["version"]) == ((5, 3, 4), "<f4", 3)
    assert told["strides"] == (80, 32, 4)
    assert told["data"] == (made.ptr + 80, False)
    assert isinstance(told["stream"], int)
    assert told["stream"] != 0
    assert made.__cuda_array_interface__["strides"] is None
    taken = array_of(np.zeros((5, 3, 4), np.float32), q, kind)
    taken.copy_from(Foreign("__cuda_array_interface__", told))
    assert (taken.to_numpy() == MODEL[1:, ::2]).all()


@view
def test_dlpack_on_cuda(q: Queue, key: Any) -> None:
    if q.device.backend != "cuda":
        pytest.skip("no CUDA device")
    made, model = array_of(MODEL, q, "device"), MODEL[key]
    assert made.__dlpack_device__() == (2, 0)
    capsule = made[key].__dlpack__(stream=1)
    tensor = tensor_in(capsule)
    assert tensor.data == made[key].ptr
    assert tuple(tensor.strides[: tensor.ndim]) == tuple(s // 4 for s in model.strides)
    copied = made[key].__dlpack__(stream=1, copy=True)
    assert tensor_in(copied).data != made[key].ptr
    again = Array(Buffer.from_dlpack(copied, queue=q), model.shape)
    assert (again.to_numpy() == model).all()
