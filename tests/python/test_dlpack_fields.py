# SPDX-License-Identifier: Apache-2.0
"""Every field of a foreign DLPack structure: valid values are used, invalid ones rejected."""

from __future__ import annotations

import ctypes
import gc
import itertools
import math
from typing import Any

import numpy as np
import pytest
from dlpack_support import Made, Producer
from hypothesis import given
from hypothesis import strategies as st
from support import python, until

import isthmus
from isthmus import Buffer, Queue, _core

BLOCK = np.arange(64, dtype=np.float32)
START, END = BLOCK.ctypes.data, BLOCK.ctypes.data + BLOCK.nbytes
REFUSALS = (BufferError, ValueError, isthmus.DeviceNotFoundError)
TYPES = {
    (0, 8): "i1", (0, 16): "i2", (0, 32): "i4", (0, 64): "i8", (1, 8): "u1", (1, 16): "u2",
    (1, 32): "u4", (1, 64): "u8", (2, 16): "f2", (2, 32): "f4", (2, 64): "f8", (2, 128): "g",
    (4, 16): "bfloat16", (5, 64): "F", (5, 128): "D", (6, 8): "?",
}  # fmt: skip
INTS = {"min": -(2**63), "max": 2**63 - 1}


def take_array(made: object) -> Any:
    return _core._array_from_dlpack(made)


def take_bytes(made: object) -> Any:
    return Buffer.from_dlpack(made)


TAKERS = pytest.mark.parametrize("take", [take_array, take_bytes])
FORMS = pytest.mark.parametrize("version", [None, (1, 0)])

WRONG: dict[str, dict[str, Any]] = {
    "no shape": {"shape": None, "ndim": 2},
    "no shape, no data": {"shape": None, "ndim": 1, "data": None},
    "an offset that wraps around": {"byte_offset": 2**64 - 8},
    "an offset to the last address": {"byte_offset": 2**64 - 1 - START},
    "an offset to half of the addresses": {"byte_offset": 2**63, "data": 2**63 + 64},
    "no address": {"data": None},
    "no address but an offset": {"data": None, "byte_offset": 64},
    "elements beyond the last address": {"data": 2**64 - 8},
    "ndim -1": {"ndim": -1},
    "the least ndim": {"ndim": -(2**31)},
    "ndim 65": {"ndim": 65},
    "the greatest ndim": {"ndim": 2**31 - 1},
    "a negative extent": {"shape": (4, -4)},
    "the least extent": {"shape": (-(2**63),)},
    "a product beyond 64 bits": {"shape": (2**32, 2**32)},
    "a product that wraps to 4": {"shape": (2**32, 2**30, 4)},
    "a product beyond 63 bits": {"shape": (2**61,)},
    "a great product without elements": {"shape": (2**62, 2**62, 0)},
    "bits 0": {"dtype": (2, 0, 1)},
    "bits 1": {"dtype": (2, 1, 1)},
    "bits 12": {"dtype": (2, 12, 1)},
    "lanes 0": {"dtype": (2, 32, 0)},
    "handles": {"dtype": (3, 64, 1)},
    "device -1": {"device": (1, -1)},
    "device -1 of CUDA": {"device": (2, -1), "shape": (0,)},
    "pinned of device -1": {"device": (3, -1), "shape": (0,)},
    "managed of device -1": {"device": (13, -1), "shape": (0,)},
    "device -1 of SYCL": {"device": (14, -1), "shape": (0,)},
    "no device": {"device": (-1, -1)},
    "type of device 0": {"device": (0, 0)},
    "another library's device": {"device": (4, 0)},
}


@TAKERS
@FORMS
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_fields(take: Any, version: Any, wrong: dict[str, Any]) -> None:
    made = Made(**{"data": START, "shape": (4,), "version": version, **wrong})
    with pytest.raises((BufferError, ValueError)):
        take(made.capsule)
    device = wrong.get("device", (1, 0))
    for ask in (take, isthmus.asarray):
        with pytest.raises((BufferError, ValueError)):
            ask(Producer(made.capsule, device))
    assert made.deleted == 0, "a capsule that was refused is its producer's"


STRIDES: dict[str, dict[str, Any]] = {
    "beyond 63 bits": {"shape": (4, 4), "strides": (2**62, 1)},
    "to bytes beyond 63 bits": {"shape": (4,), "strides": (2**61,)},
    "the least": {"shape": (2,), "strides": (-(2**63),)},
    "a sum beyond 63 bits": {"shape": (2, 2, 2), "strides": (2**60, 2**60, 2**60)},
    "below the first address": {"shape": (2,), "strides": (-(2**60),)},
    "below by extents": {"shape": (2**40,), "strides": (-(2**20),), "data": 64},
    "beyond the last address": {"shape": (2,), "strides": (2**60,), "data": 2**64 - 2**32},
}


@FORMS
@pytest.mark.parametrize("wrong", STRIDES.values(), ids=STRIDES)
def test_wrong_strides(version: Any, wrong: dict[str, Any]) -> None:
    made = Made(**{"data": START, "version": version, **wrong})
    for take in (take_array, take_bytes, isthmus.asarray):
        with pytest.raises((BufferError, ValueError)):
            take(Producer(made.capsule))
    assert made.deleted == 0


def test_messages_have_the_shape_and_the_strides() -> None:
    made = Made(data=START, shape=(4, 4), strides=(2**62, 1))
    with pytest.raises(BufferError, match=rf"shape \(4, 4\) with strides \({2**62}, 1\)"):
        take_array(made.capsule)
    made = Made(data=START, shape=(4, 4), strides=(1, 4))
    with pytest.raises(ValueError, match=r"shape \(4, 4\).*strides, in elements, are \(1, 4\)"):
        take_bytes(made.capsule)
    made = Made(data=START, shape=(4, -1))
    with pytest.raises(BufferError, match=r"shape \(4, -1\) with elements of 4 bytes"):
        take_array(made.capsule)


def test_strides_that_say_nothing() -> None:
    """The stride of an extent of 1, or of an array without elements, may be any number."""
    for shape in ((1, 4), (0, 4), (4, 1)):
        odd = tuple(2**62 if extent < 4 else 1 for extent in shape)
        made = take_array(Made(START, shape, odd).capsule)
        assert made.shape == shape
        assert made.tolist() == BLOCK[:4][: math.prod(shape)].reshape(shape).tolist()
        assert made[:, 0:1].shape == (shape[0], 1)


@pytest.mark.parametrize("major", [0, 2, 2**32 - 1])
@TAKERS
def test_versions_that_are_not_known(take: Any, major: int) -> None:
    """Nothing after the version is read, because other versions may lay it out differently."""
    made = Made(None, None, ndim=7, version=(major, 0), flags=2**64 - 1)
    with pytest.raises(BufferError, match=f"version {major}.0 is not supported"):
        take(made.capsule)


def test_flags() -> None:
    assert not take_array(Made(START, (4,)).capsule).read_only
    assert take_array(Made(START, (4,), flags=1).capsule).read_only
    assert take_bytes(Made(START, (4,), flags=3).capsule).read_only
    four_bits = {"dtype": (17, 4, 2), "shape": (4,)}
    assert take_bytes(Made(START, **four_bits).capsule).nbytes == 4  # type: ignore[arg-type]
    with pytest.raises(BufferError, match="padded"):
        take_bytes(Made(START, **four_bits, flags=4).capsule)  # type: ignore[arg-type]


@TAKERS
@FORMS
def test_without_a_deleter(take: Any, version: Any) -> None:
    made = Made(START, (4,), version=version, has_deleter=False)
    got = take(made.capsule)
    assert got.nbytes == 16
    got.free()


def test_a_capsule_is_consumed_once() -> None:
    made = Made(START, (4,))
    got = take_array(made.capsule)
    for take in (take_array, take_bytes):
        with pytest.raises(BufferError, match="not an unused capsule"):
            take(made.capsule)
    del got
    assert until(lambda: (gc.collect(), Buffer.from_dlpack(np.zeros(1)), made.deleted == 1)[-1])


def test_devices_of_the_cpu_are_one() -> None:
    """JAX numbers its CPU devices in the capsule, but not in __dlpack_device__."""
    made = Made(START, (4,), device=(1, 3))
    assert take_array(Producer(made.capsule, (1, 0))).tolist() == [0, 1, 2, 3]


NO_DEVICES = [
    (), (1,), (1, 0, 0), None, 5, "10", {1: 0}, ("a", 0), (1, None), (1.5, 0), (1.0, 0), (-1, 0),
    (1, -1), (2**40, 0), (1, 2**40),
]  # fmt: skip
OTHER_TAKERS: dict[str, Any] = {
    "asarray": lambda of: isthmus.asarray(of, device="host"),
    "copyto": lambda of: isthmus.copyto(isthmus.zeros(4, device="host"), of),
    "unified": lambda of: isthmus.UnifiedBuffer(4, "f4", device="host").copy_from(of),
    "pipeline": lambda of: list(isthmus.pipeline([of], lambda taken: taken, device="host")),
}


@pytest.mark.parametrize("told", NO_DEVICES)
def test_what_is_no_device(told: Any) -> None:
    made = Made(START, (4,))
    with pytest.raises((BufferError, TypeError, ValueError)) as refused:
        take_array(Producer(made.capsule, told))
    for take in (take_bytes, *OTHER_TAKERS.values()):
        with pytest.raises(refused.type) as error:
            take(Producer(made.capsule, told))
        assert str(error.value) == str(refused.value)


# -- random combinations --------------------------------------------------------------------------

EXTENTS = st.sampled_from([0, 1, 2, 3, 5, -1, 2**31, 2**62, 2**63 - 1, -(2**63)])
STEPS = st.sampled_from([0, 1, 2, -1, -3, 7, 2**31, 2**60, 2**62, 2**63 - 1, -(2**63)])


@st.composite
def fields(draw: Any) -> dict[str, Any]:
    """Mostly valid values, so that each check is reached."""

    def mostly(right: Any, *wrong: Any) -> Any:
        return draw(st.sampled_from([*[right] * 4, *wrong]))

    count = draw(st.integers(0, 3))
    small = draw(st.booleans())
    extents = st.sampled_from([1, 2, 3, 0]) if small else EXTENTS
    steps = st.sampled_from([1, 2, -1, 0]) if small else STEPS
    has_strides = draw(st.booleans())
    middle = START + 32 * 4
    return {
        "data": mostly(middle, None, START, START + 1, 8, 2**63, 2**64 - 8, 2**64 - 1),
        "shape": mostly([draw(extents) for _ in range(count)], None),
        "strides": [draw(steps) for _ in range(count)] if has_strides else None,
        "ndim": mostly(count, -1, -(2**31), 65, 2**31 - 1),
        "dtype": (*draw(st.sampled_from([*TYPES, (2, 32), (3, 64), (9, 8), (2, 4), (255, 255)])),
                  mostly(1, 0, 2, 65535)),
        "byte_offset": mostly(0, 4, 16, 2**63, 2**64 - 8, 2**64 - 1),
        "device": mostly((1, 0), (1, 7), (1, -1), (2, -1), (-1, 0), (99, 0), (2**31 - 1, 0)),
        "version": draw(st.sampled_from([None, (1, 0), (1, 9), (0, 0), (2, 0), (2**32 - 1, 1)])),
        "flags": mostly(0, 1, 2, 4, 7, 2**64 - 1),
        "has_deleter": draw(st.booleans()),
    }  # fmt: skip


def fits(number: int) -> bool:
    return INTS["min"] <= number <= INTS["max"]


def box_of(case: dict[str, Any], item: int) -> tuple[int, int] | None:
    """Addresses of the elements; (0, 0) if there are none, None if the layout is invalid."""
    shape, strides = case["shape"], case["strides"]
    if not 0 <= case["ndim"] <= 64 or (shape is None and case["ndim"] > 0):
        return None
    shape = shape or []
    if min(shape, default=0) < 0 or not fits(math.prod(filter(None, shape)) * item):
        return None
    if 0 in shape:
        return 0, 0
    if strides is None:
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    ways = [step * item * (n - 1) for n, step in zip(shape, strides, strict=True) if n > 1]
    first = (case["data"] or 0) + case["byte_offset"]
    low, high = (first + sum(filter(sign, ways)) for sign in ((0).__gt__, (0).__lt__))
    if not case["data"] or not all(map(fits, ways)) or not fits(high - low + item):
        return None
    return (low, high + item) if low >= 0 and high + item < 2**64 else None


def is_known(case: dict[str, Any]) -> bool:
    of_cpu = case["device"][0] == 1 and case["device"][1] >= 0
    return of_cpu and (case["version"] is None or case["version"][0] == 1)


@given(case=fields())
def test_any_fields_of_an_array(case: dict[str, Any]) -> None:
    made = Made(**case)
    name = TYPES.get(case["dtype"][:2]) if case["dtype"][2] == 1 else None
    item = case["dtype"][1] // 8
    box = box_of(case, item) if name and is_known(case) else None
    try:
        got = take_array(made.capsule)
    except REFUSALS:
        assert made.deleted == 0
        aligned = box is not None and not box[0] % min(item, 16)
        inside = box is not None and ((box[0] >= START and box[1] <= END) or box == (0, 0))
        assert not (inside and aligned), "all of it is right"
        return
    assert box is not None, "something of it is wrong"
    assert got.shape == tuple(case["shape"] or ())
    assert got.read_only == bool(case["version"] is not None and case["flags"] & 1)
    if box[0] >= START and box[1] <= END and name != "bfloat16":
        first = case["data"] + case["byte_offset"] - START
        model = np.ndarray(got.shape, name, BLOCK, first, got.strides)
        assert got.to_numpy().tobytes() == model.tobytes()


@given(case=fields())
def test_any_fields_of_bytes(case: dict[str, Any]) -> None:
    made = Made(**case)
    code, bits, lanes = case["dtype"]
    padded = case["version"] is not None and case["flags"] & 4 and bits % 8
    whole = bits * lanes > 0 and bits * lanes % 8 == 0 and code != 3 and not padded
    box = box_of(case, bits * lanes // 8) if whole and is_known(case) else None
    try:
        got = take_bytes(made.capsule)
    except REFUSALS:
        assert made.deleted == 0
        return
    assert box is not None, "something of it is wrong"
    assert got.nbytes == box[1] - box[0]
    if box[0] >= START and box[1] <= END:
        assert got.tobytes() == BLOCK.tobytes()[box[0] - START : box[1] - START]


# -- the other interfaces -------------------------------------------------------------------------


class Told:
    def __init__(self, name: str, entries: Any) -> None:
        setattr(self, name, entries)


@st.composite
def entries(draw: Any) -> dict[str, Any]:
    count = draw(st.integers(0, 3))
    small = draw(st.booleans())
    extents = st.sampled_from([1, 2, 3, 0]) if small else EXTENTS
    steps = st.sampled_from([1, 2, -1, 0]) if small else STEPS

    def mostly(right: Any, *wrong: Any) -> Any:
        return draw(st.sampled_from([*[right] * 4, *wrong]))

    shape = tuple(draw(extents) for _ in range(count))
    strides = tuple(draw(steps) for _ in range(count))
    middle = START + 32 * 4
    return {
        "data": (mostly(middle, 0, START + 1, 2**63, 2**64 - 8, 2**64, -8), draw(st.booleans())),
        "shape": mostly(shape, None, (*shape, 2.5), "12", 7),
        "strides": mostly(strides, None, (*strides, 1), ("1",) * count),
        "offset": mostly(0, 1, -1, 2**62, -(2**63), 2**63, None),
        "typestr": mostly("<f4", "|u1", "<c16", ">f4", "|O8", "<f3", 5, ""),
        "version": mostly(1, 0, 2, None, 2**70),
        "syclobj": mostly(Queue("host"), None, "no such device", 5),
    }


@given(told=entries())
def test_any_entries_of_sycls_interface(told: dict[str, Any]) -> None:
    try:
        got = isthmus.asarray(Told("__sycl_usm_array_interface__", told), copy=False)
    except (*REFUSALS, TypeError, isthmus.Error):
        return
    steps = [s for s, n in zip(got.strides, got.shape, strict=True) if n > 1]
    assert got.shape == tuple(told["shape"])
    if 0 in got.shape or not steps:
        return
    low = got.ptr + sum((n - 1) * s for n, s in zip(got.shape, got.strides, strict=True) if s < 0)
    high = got.ptr + sum((n - 1) * s for n, s in zip(got.shape, got.strides, strict=True) if s > 0)
    assert low >= 0
    assert high + got.itemsize < 2**64
    if low >= START and high + got.itemsize <= END:
        model = np.ndarray(got.shape, got.dtype, BLOCK, got.ptr - START, got.strides)
        assert got.to_numpy().tobytes() == model.tobytes()


def test_a_shape_without_an_end() -> None:
    told = Buffer(64, kind="host", queue=Queue("host")).__sycl_usm_array_interface__
    for key in ("shape", "strides"):
        endless = told | {"shape": (1,), "strides": (1,), key: itertools.count(1)}
        with pytest.raises(ValueError, match=key):
            isthmus.asarray(Told("__sycl_usm_array_interface__", endless))


def test_numpys_interface_without_an_address() -> None:
    """NumPy makes an array of it, and reading its elements would crash."""
    python("""
import isthmus, pytest
class Told:
    __array_interface__ = {"data": (0, False), "shape": (4,), "typestr": "<f4", "version": 3}
for wanted in ({"kind": "host"}, {"kind": "device"}, {}):
    with pytest.raises((BufferError, ValueError)):
        isthmus.asarray(Told(), device="host", **wanted)
    with pytest.raises((BufferError, ValueError)):
        isthmus.copyto(isthmus.zeros(4, device="host", **wanted), Told())
""")


# -- the buffer protocol --------------------------------------------------------------------------


class View(ctypes.Structure):
    """The structure Py_buffer."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


_views: list[View] = []  # the last one is the view that an Exporter returns


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(View), ctypes.c_int)
def _get_view(self: Any, view: Any, _flags: int) -> int:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
    ctypes.memmove(view, ctypes.addressof(_views[-1]), ctypes.sizeof(View))
    view.contents.obj = id(self)
    return 0


_slots = (_Slot * 2)(_Slot(1, ctypes.cast(_get_view, ctypes.c_void_p).value), _Slot(0, None))
_spec = _Spec(b"foreign.Exporter", 16, 0, 1 << 18, _slots)
_from_spec = ctypes.pythonapi.PyType_FromSpec
_from_spec.restype = ctypes.py_object
_from_spec.argtypes = [ctypes.POINTER(_Spec)]
Exporter = _from_spec(ctypes.byref(_spec))
_kept: list[Any] = []


def view_of(**wrong: Any) -> View:
    told = {
        "buf": START, "len": 16, "itemsize": 4, "ndim": 1, "format": b"f", "shape": (4,),
        "strides": (4,), **wrong,
    }  # fmt: skip
    for key in ("shape", "strides"):
        if told[key] is not None:
            _kept.append((ctypes.c_ssize_t * 4)(*told[key]))
            told[key] = ctypes.cast(_kept[-1], ctypes.POINTER(ctypes.c_ssize_t))
    return View(**{key: value for key, value in told.items() if value is not None})


VIEWS: dict[str, dict[str, Any]] = {
    "no shape": {"shape": None},
    "no strides": {"strides": None},
    "no address": {"buf": None},
    "ndim -1": {"ndim": -1},
    "ndim 65": {"ndim": 65},
    "items of a negative size": {"itemsize": -4},
    "a negative length": {"len": -16},
    "a length of less": {"len": 12},
    "a negative extent": {"shape": (-4,)},
    "a product beyond 63 bits": {"shape": (2**62, 2**62), "strides": (0, 0), "ndim": 2},
    "strides beyond any address": {"strides": (2**62,)},
    "strides below the first address": {"strides": (-(2**60),)},
}


@pytest.mark.parametrize("wrong", VIEWS.values(), ids=VIEWS)
def test_wrong_views(wrong: dict[str, Any]) -> None:
    made = isthmus.zeros(4, "f4", kind="host", device="host")
    _views.append(view_of(**wrong))
    for use in (
        made.copy_from,
        made.copy_to,
        lambda of: isthmus.copyto(made, of),
        lambda of: made.__setitem__(..., of),
    ):
        with pytest.raises(BufferError):
            use(Exporter())
    assert made.tolist() == [0] * 4


def test_a_right_view() -> None:
    made = isthmus.zeros(4, "f4", kind="host", device="host")
    _views.append(view_of())
    made.copy_from(Exporter())
    assert made.tolist() == [0, 1, 2, 3]
