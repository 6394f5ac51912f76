# SPDX-License-Identifier: Apache-2.0
"""Element dtypes: their names, aliases, rejected dtypes, and export by every interface."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import isthmus
from isthmus import Array, Buffer, DType, Queue

pytestmark = pytest.mark.sim_and_host
NUMPYS = {
    "bool": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "float16": np.float16, "float32": np.float32, "float64": np.float64,
    "longdouble": np.longdouble, "complex64": np.complex64, "complex128": np.complex128,
    "clongdouble": np.clongdouble,
}  # fmt: skip
NAMES = [*NUMPYS, "bfloat16"]


def ours(name: str) -> DType:
    found = getattr(isthmus, name)
    assert isinstance(found, DType)
    return found


@pytest.mark.parametrize("name", NUMPYS)
def test_properties(name: str) -> None:
    made, model = ours(name), np.dtype(NUMPYS[name])
    assert (made.name, made.itemsize, made.kind) == (name, model.itemsize, model.kind)
    assert made.alignment == model.alignment
    assert made.dtype is model or made.dtype == model
    assert np.dtype(made) == model
    assert np.zeros(3, made).dtype == model
    assert repr(made) == f"isthmus.{name}"
    assert str(made) == name


@pytest.mark.parametrize("name", NUMPYS)
def test_what_names_it(name: str) -> None:
    made, model = ours(name), np.dtype(NUMPYS[name])
    for same in (made, model, NUMPYS[name], model.str, model.char, name, model.name):
        assert DType(same) is made, same
        assert made == same
        assert not (made != same)  # noqa: SIM202
    assert hash(made) == hash(model)
    assert {model: 1}[made] == 1
    assert {made: 1}[model] == 1
    assert model == made


def test_pythons_types_name_numpys() -> None:
    for python, name in (
        (bool, "bool"),
        (int, "int64"),
        (float, "float64"),
        (complex, "complex128"),
    ):
        assert DType(python) is ours(name)
        assert isthmus.empty(3, python, device="host").dtype == np.dtype(python)


def test_none_is_the_default_of_all() -> None:
    assert DType(None) is isthmus.float32
    for make in (isthmus.empty, isthmus.zeros, isthmus.ones):
        assert make(3, device="host").dtype == "f4"
        assert make(3, None, device="host").dtype == "f4"
    assert Array(Buffer(8, device="host"), 2).dtype == "f4"
    assert Array(Buffer(8, device="host"), 2, None).dtype == "f4"


def test_each_equals_itself_only() -> None:
    made = [ours(name) for name in NAMES]
    assert len({id(each) for each in made}) == len(set(made)) == len(NAMES)
    for one in made:
        assert [other for other in made if one == other] == [one]
    for nothing in (None, 3, "no type", object(), "O", "U3", ">f4", [1]):
        assert isthmus.float32 != nothing


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_pickles_are_the_same(name: str) -> None:
    made = ours(name)
    assert copy.copy(made) is made
    assert copy.deepcopy([made])[0] is made
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(made, protocol)) is made


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("O", "references to Python objects"),
        (object, "references to Python objects"),
        ([("a", "f4"), ("b", "i4")], "several fields"),
        ("V4", "several fields"),
        ("U5", "text is not a number"),
        ("S5", "text is not a number"),
        (str, "text is not a number"),
        ("M8[s]", "view them as int64"),
        ("m8[s]", "view them as int64"),
        (np.dtype("f4").newbyteorder(), "not in native byte order"),
        (">i2", "not in native byte order"),
        ("float33", "float33"),
        ("", None),
        (3, None),
        (3.5, None),
        ([], None),
    ],
)
def test_what_is_none(bad: Any, why: str | None) -> None:
    for use in (
        lambda: DType(bad),
        lambda: isthmus.empty(3, bad, device="host"),
        lambda: isthmus.asarray([1, 2], bad, device="host"),
        lambda: Array(Buffer(8, device="host"), 1, bad),
    ):
        with pytest.raises(TypeError, match=why):
            use()


def test_it_is_no_class_to_be_derived_from_or_changed() -> None:
    with pytest.raises(TypeError):
        type("Mine", (DType,), {})
    with pytest.raises(AttributeError):
        isthmus.float32.name = "mine"  # type: ignore[misc]


def test_a_star_import_leaves_pythons_bool_alone() -> None:
    space: dict[str, Any] = {}
    exec("from isthmus import *", space)
    assert space["float32"] is isthmus.float32
    assert "bool" not in space
    assert isthmus.bool is DType("bool")


@pytest.mark.every_backend
def test_arrays_of_every_type(q: Queue, kind: str) -> None:
    for name, theirs in NUMPYS.items():
        model = (np.arange(12) % 5).astype(theirs).reshape(3, 4)
        made = isthmus.asarray(model, kind=kind, queue=q)
        assert (made.dtype, made.itemsize, made.kind) == (model.dtype, model.itemsize, kind)
        assert (made.to_numpy() == model).all(), name
        ones = isthmus.ones((2, 3), ours(name), kind=kind, queue=q)
        assert (ones.to_numpy() == 1).all(), name


# -- bfloat16, which NumPy lacks ------------------------------------------------------------------


def test_bfloat16_without_ml_dtypes(monkeypatch: pytest.MonkeyPatch, q: Queue, kind: str) -> None:
    if (
        "ml_dtypes" in sys.modules
        or isthmus.zeros(1, "bfloat16", device="host").dtype != "bfloat16"
    ):
        pytest.skip("ml_dtypes is installed")
    made = isthmus.full((2, 3), 1.5, "bfloat16", kind=kind, queue=q)
    assert made.dtype is isthmus.bfloat16
    assert (made.itemsize, made.nbytes) == (2, 12)
    assert made.view("uint16").to_numpy().tolist() == [[0x3FC0] * 3] * 2
    with pytest.raises(TypeError):
        np.zeros(3, isthmus.bfloat16)
    with pytest.raises(TypeError, match="ml_dtypes"):
        made.to_numpy()
    with pytest.raises(TypeError, match="ml_dtypes"):
        np.asarray(made)
    with pytest.raises(AttributeError, match="ml_dtypes"):
        _ = isthmus.bfloat16.dtype


def test_only_dlpack_exports_bfloat16(q: Queue, host_kind: str) -> None:
    made = isthmus.ones(4, "bfloat16", kind=host_kind, queue=q)
    for interface in ("__sycl_usm_array_interface__", "__array_interface__"):
        assert not hasattr(made, interface)
    with pytest.raises(BufferError, match="DLPack"):
        memoryview(made)
    with pytest.raises(TypeError):
        DType("<V2")
    again = isthmus.asarray(made, copy=False)
    assert again is made


def test_bfloat16_by_dlpack_with_torch(q: Queue, host_kind: str) -> None:
    torch = pytest.importorskip("torch")
    made = isthmus.full((2, 3), 2.5, "bfloat16", kind=host_kind, queue=q)
    theirs = torch.from_dlpack(made)
    assert theirs.dtype == torch.bfloat16
    assert (theirs == 2.5).all()
    # It remains CUDA's memory, although DLPack describes it as the host's
    if q.device.backend == "cuda":
        with pytest.raises(isthmus.WrongContextError):
            isthmus.asarray(theirs, kind="host", device="host")
        return
    back = isthmus.asarray(theirs, kind="host", device="host")
    assert back.dtype == isthmus.bfloat16
    assert back.ptr == theirs.data_ptr()


def test_bfloat16_of_ml_dtypes() -> None:
    """The dtype of that package, or of one with the same behaviour."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    model = np.array([1, 2.5, -3], ml_dtypes.bfloat16)
    assert DType(ml_dtypes.bfloat16) is DType(model.dtype) is isthmus.bfloat16
    made = isthmus.asarray(model, device="host")
    assert made.dtype == model.dtype
    assert (made.to_numpy() == model).all()
    assert hash(isthmus.bfloat16) == hash(model.dtype)


@pytest.mark.parametrize("text", [",", "\ud800", "no type", 5, object()])
def test_no_type_is_unequal(text: Any) -> None:
    assert isthmus.float32 != text
