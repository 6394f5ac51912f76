# SPDX-License-Identifier: Apache-2.0
"""asarray: the inputs that it takes without a copy, copies, or rejects."""

from __future__ import annotations

import array as arrays
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support import filled, is_memory_released, sim

import isthmus
from isthmus import Array, Buffer, Device, Queue, UnifiedBuffer
from isthmus.memory import PoolResource, live

HOST = Device("host")


MODEL = np.arange(24, dtype=np.int32).reshape(4, 6)


def test_of_an_array(q: Queue, kind: str) -> None:
    made = isthmus.asarray(MODEL, kind=kind, queue=q)
    assert isthmus.asarray(made) is made
    assert isthmus.asarray(made, "i4", copy=False, kind=kind, queue=q) is made
    assert isthmus.asarray(made, device=q.device, copy=False) is made
    other = Queue(q.context)
    moved = isthmus.asarray(made, queue=other, copy=False)
    assert (moved.queue, moved.ptr) == (other, made.ptr)
    part = made[1:, ::-2]
    assert isthmus.asarray(part, copy=False) is part
    for copied in (isthmus.asarray(part, copy=True), isthmus.array(part)):
        assert copied.strides == (12, 4)
        assert (copied.kind, copied.queue) == (kind, q)
        assert (copied.to_numpy() == MODEL[1:, ::-2]).all()
        assert copied.buffer is not made.buffer


@pytest.mark.parametrize("dtype", ["f8", "i1", "?", "c8", "bfloat16", "f2"])
@pytest.mark.sim_and_host
def test_with_another_type(q: Queue, kind: str, dtype: str) -> None:
    made = isthmus.asarray(MODEL, kind=kind, queue=q)
    for source in (made, MODEL, MODEL.tolist()):
        cast = isthmus.asarray(source, dtype, kind=kind, queue=q)
        assert cast.dtype == isthmus.DType(dtype)
        if dtype == "bfloat16":
            cast = cast.astype("f4")
        assert (cast.to_numpy() == MODEL.astype("f4" if dtype == "bfloat16" else dtype)).all()
        if not isinstance(source, list):
            with pytest.raises(ValueError, match=r"copy=False.*int32, not"):
                isthmus.asarray(source, dtype, copy=False, kind=kind, queue=q)
    assert isthmus.asarray(np.array([-1.7, 300.2]), "i4", device="host").to_numpy().tolist() == [
        -1,
        300,
    ]


def test_to_another_kind_and_device(q: Queue, kind: str) -> None:
    made = isthmus.asarray(MODEL, kind=kind, queue=q)
    for other in q.device.kinds:
        there = isthmus.asarray(made, kind=other)
        assert (there.kind, there.queue) == (other, q)
        assert (there is made) == (other == kind)
        assert (there.to_numpy() == MODEL).all()
        if other != kind:
            with pytest.raises(ValueError, match=f"kind '{kind}', not '{other}'"):
                isthmus.asarray(made, kind=other, copy=False)
    far = sim()
    there = isthmus.asarray(made, device=far, kind="device")
    assert (there.device, there.kind) == (far, "device")
    assert (there.to_numpy() == MODEL).all()
    with pytest.raises(ValueError, match="copy=False"):
        isthmus.asarray(made, device=far, copy=False)
    back = isthmus.asarray(there[::2], queue=q, kind=kind)
    assert (back.to_numpy() == MODEL[::2]).all()


def test_of_a_buffer_and_a_unified_buffer(q: Queue, kind: str) -> None:
    memory = filled(MODEL, kind=kind, queue=q)
    made = isthmus.asarray(memory, copy=False)
    assert (made.shape, made.dtype, made.buffer) == ((96,), "u1", memory)
    both = UnifiedBuffer(MODEL.shape, MODEL.dtype, queue=q)
    both.host[:] = MODEL
    made = isthmus.asarray(both)
    assert made.device == q.device
    assert (made.to_numpy() == MODEL).all()


def test_plain_host_memory_is_copied_to_a_device(q: Queue, kind: str) -> None:
    source = MODEL.copy()
    made = isthmus.asarray(source, kind=kind, queue=q)
    if kind == "host" and q.device == HOST:
        assert made.ptr == source.ctypes.data
        return
    source[:] = 0
    assert (made.to_numpy() == MODEL).all()
    with pytest.raises(ValueError, match=r"copy=False.*plain host memory"):
        isthmus.asarray(source, kind=kind, queue=q, copy=False)
    with q:
        assert isthmus.asarray(source).kind == "device"


@pytest.mark.parametrize(
    "view",
    [
        np.s_[...],
        np.s_[1:3],
        np.s_[::-1, ::2],
        np.s_[:, 2],
        np.s_[2, 3],
        np.s_[4:],
        np.s_[::2, ::-3],
    ],
)
def test_plain_host_memory_is_adopted(view: Any) -> None:
    source = MODEL.copy()
    part = np.asarray(source[view])
    made = isthmus.asarray(part, kind="host", device="host", copy=False)
    assert (made.shape, made.dtype, made.kind) == (part.shape, part.dtype, "host")
    assert (made.to_numpy() == part).all()
    if part.size:
        assert made.ptr == part.__array_interface__["data"][0]
        made[...] = 7
        assert (part == 7).all()
    del source, part
    assert made.size == 0 or (made.to_numpy() == 7).all(), "its owner is kept alive"


def test_parts_of_one_array_are_of_one_memory() -> None:
    source = np.zeros(100)
    parts = [source[10:20], source, source[::-3], source.reshape(10, 10).T[2:]]
    made = [isthmus.asarray(part, kind="host", device="host", copy=False) for part in parts]
    for of, part in zip(made, parts, strict=True):
        assert of.ptr == part.__array_interface__["data"][0]
    gate = isthmus.Event()
    made[0].fill(5, after=gate, blocking=False)
    other = made[1].on_queue(Queue("host"))
    copied = np.empty(100)
    event = other.copy_to(copied, blocking=False)
    gate.complete()
    assert event is not None
    event.wait()
    assert copied.sum() == 50, "behind the fill, though on another queue"


def test_what_is_read_only_stays_so() -> None:
    source = MODEL.copy()
    source.flags.writeable = False
    for given_one in (source, b"abc", memoryview(b"abc")):
        made = isthmus.asarray(given_one, kind="host", device="host", copy=False)
        assert made.read_only
        with pytest.raises(isthmus.ReadOnlyError):
            made[...] = 1
        assert not isthmus.array(given_one, kind="host", device="host").read_only


def test_elements_that_are_not_aligned() -> None:
    raw = np.zeros(100, np.uint8)
    source = raw[1:97].view("f8")
    source[:] = np.arange(12)
    made = isthmus.asarray(source, kind="host", device="host")
    assert made.ptr != source.ctypes.data
    assert made.to_numpy().tolist() == list(range(12))
    with pytest.raises(ValueError, match="not aligned"):
        isthmus.asarray(source, kind="host", device="host", copy=False)
    records = np.zeros(4, [("a", "i1"), ("b", "f4")])
    records["b"] = 3
    assert isthmus.asarray(records["b"], device="host").to_numpy().tolist() == [3] * 4


@pytest.mark.parametrize(
    ("given_one", "dtype", "expected"),
    [
        (5, "i8", 5), (2.5, "f8", 2.5), (True, "?", True), (1j, "c16", 1j),
        ([1, 2], "i8", [1, 2]), ([[1.5], [2]], "f8", [[1.5], [2]]), ((), "f8", []),
        (range(3), "i8", [0, 1, 2]), (np.float32(2), "f4", 2), (np.int8(3), "i1", 3),
        (b"ab", "u1", [97, 98]), (bytearray(b"c"), "u1", [99]),
        (arrays.array("h", [1, 2]), "i2", [1, 2]), (memoryview(b"ab")[::-1], "u1", [98, 97]),
        ([np.float32(1), np.float32(2)], "f4", [1, 2]), ([2**63], "u8", [2**63]),
    ],
)  # fmt: skip
@pytest.mark.sim_and_host
def test_of_pythons_own(q: Queue, kind: str, given_one: Any, dtype: str, expected: Any) -> None:
    for make in (isthmus.asarray, isthmus.array):
        made = make(given_one, kind=kind, queue=q)
        assert made.dtype == dtype
        assert made.to_numpy().tolist() == expected


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ([1, "x"], "text is not a number"), ("text", "text is not a number"),
        ([object()], "references"), ({1: 2}, "array of dict"), (None, "array of NoneType"),
        ([2**70], "references"), (np.array(["2020"], "M8[D]"), "view them as int64"),
        (np.zeros(3, [("a", "f4")]), "several fields"),
        (np.zeros(3, ">f4"), "not in native byte order"),
        (np.array([b"x"]), "text is not a number"), (object(), "array of object"),
        (2**70, "references"),
    ],
)  # fmt: skip
def test_what_no_array_has(bad: Any, why: str) -> None:
    before = live()
    with pytest.raises(TypeError, match=why):
        isthmus.asarray(bad, device="host")
    assert is_memory_released(before)


def test_a_resource_determines_kind_and_queue(dev: Device, kind: str) -> None:
    """The resource determines both, whatever is current and wherever the source array resides."""
    pool = PoolResource(kind, dev)
    for source in (MODEL, MODEL.tolist(), isthmus.asarray(MODEL, device=sim())):
        made = isthmus.asarray(source, resource=pool)
        assert (made.kind, made.device, made.queue.context) == (kind, dev, pool.context)
        assert made.to_numpy().tolist() == MODEL.tolist()
        assert isthmus.asarray(made, resource=pool) is made
        assert isthmus.array(made, resource=pool).buffer is not made.buffer


@pytest.mark.parametrize(
    ("bad", "dtype"), [([300], "u1"), (-1, "u4"), ([[1], [2**40]], "i4"), (2**70, "i8")]
)
def test_integers_that_the_type_does_not_hold(bad: Any, dtype: str) -> None:
    with warnings.catch_warnings():  # NumPy 1.x warns that it will raise
        warnings.simplefilter("error", DeprecationWarning)
        with pytest.raises((OverflowError, DeprecationWarning)):
            isthmus.asarray(bad, dtype, device="host")
    assert isthmus.asarray(np.array([300]), "u1", device="host").to_numpy() == [44]


@pytest.mark.parametrize("bad", [[1, 2], 5, 2.5, (), range(3), np.float32(2)])
def test_what_has_no_memory_to_share(bad: Any) -> None:
    with pytest.raises(ValueError, match=f"copy=False.*{type(bad).__name__} has no memory"):
        isthmus.asarray(bad, kind="host", device="host", copy=False)


def test_ragged_lists_are_numpys_error() -> None:
    with pytest.raises(ValueError, match="inhomogeneous"):
        isthmus.asarray([[1], [1, 2]], device="host")
    assert isthmus.asarray([2**70], "f8", device="host").to_numpy().tolist() == [2.0**70]


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({"copy": 1}, TypeError), ({"copy": "no"}, TypeError), ({"kind": "gpu"}, ValueError),
        ({"kind": "host", "usm_type": "host"}, TypeError), ({"device": 3}, TypeError),
        ({"queue": Queue("host"), "sycl_queue": Queue("host")}, TypeError),
        ({"queue": 3}, TypeError), ({"dtype": "O"}, TypeError), ({"resource": 3}, TypeError),
    ],
)  # fmt: skip
def test_bad_arguments_of_asarray(named: dict[str, Any], error: type) -> None:
    for source in (MODEL, isthmus.zeros(3, device="host")):
        with pytest.raises(error):
            isthmus.asarray(source, **{"copy": True, **named})


def test_dpnps_names(q: Queue, kind: str) -> None:
    for make in (
        lambda **k: isthmus.empty(3, **k), lambda **k: isthmus.full(3, 1, **k),
        lambda **k: isthmus.asarray([1, 2], **k), lambda **k: isthmus.zeros_like(MODEL, **k),
    ):  # fmt: skip
        made = make(usm_type=kind, sycl_queue=q)
        assert (made.usm_type, made.sycl_queue) == (kind, q)
        assert (made.sycl_device, made.sycl_context) == (q.device, q.context)
        told = {"device": made.is_device, "shared": made.is_shared, "host": made.is_host}
        assert [name for name, is_it in told.items() if is_it] == [kind]


# -- other libraries ------------------------------------------------------------------------------


@dataclass
class Interface:
    """Memory that describes itself by one of the two interfaces."""

    told: dict[str, Any]
    name: str = "__sycl_usm_array_interface__"

    def __getattr__(self, name: str) -> Any:
        if name == self.name:
            return self.told
        raise AttributeError(name)


def test_by_sycls_interface(q: Queue, kind: str) -> None:
    source = isthmus.asarray(MODEL, kind=kind, queue=q)
    for part, model in ((source, MODEL), (source[1:, ::-2], MODEL[1:, ::-2])):
        made = isthmus.asarray(Interface(part.__sycl_usm_array_interface__), copy=False)
        assert (made.shape, made.strides, made.dtype) == (model.shape, part.strides, "i4")
        assert (made.ptr, made.kind, made.queue) == (part.ptr, kind, q)
        assert (made.to_numpy() == model).all()
    empty = isthmus.asarray(Interface(source[4:].__sycl_usm_array_interface__))
    assert (empty.shape, empty.dtype) == ((0, 6), "i4")
    del source, part
    assert made.size == 9


def test_by_dlpack(q: Queue, host_kind: str) -> None:
    class Lender:
        def __init__(self, of: Array) -> None:
            self.of = of

        def __dlpack__(self, **named: Any) -> Any:
            return self.of.__dlpack__(**named)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.of.__dlpack_device__()

    plain = MODEL.copy()
    lender = Lender(isthmus.asarray(plain, kind="host", device="host"))
    made = isthmus.asarray(lender, kind="host", device="host", copy=False)
    assert (made.shape, made.ptr) == ((4, 6), plain.ctypes.data)
    made[0, 0] = 77
    assert plain[0, 0] == 77
    assert isthmus.asarray(lender).kind == "device", "plain memory of the host's"
    source = isthmus.array(MODEL, kind=host_kind, queue=q)
    lender = Lender(source[:, ::2])
    made = isthmus.asarray(lender, kind=host_kind, queue=q, copy=False)
    assert (made.shape, made.ptr, made.kind) == ((4, 3), source.ptr, host_kind)
    with pytest.raises(ValueError, match=f"USM of kind '{host_kind}'"):
        isthmus.asarray(lender, queue=Queue(sim()), copy=False)
    assert (isthmus.asarray(lender, device=sim()).to_numpy() == MODEL[:, ::2]).all()


def test_numpys_views_of_usm(q: Queue, host_kind: str) -> None:
    source = isthmus.array(MODEL, kind=host_kind, queue=q)
    seen = np.asarray(source)[::-1]
    made = isthmus.asarray(seen, kind=host_kind, queue=q, copy=False)
    assert (made.ptr, made.kind, made.strides) == (source[3:].ptr, host_kind, (-24, 4))
    del source, seen
    assert (made.to_numpy() == MODEL[::-1]).all()


def test_numpys_error_for_an_unsupported_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy 1.x raises RuntimeError, NumPy 2 BufferError."""
    source = isthmus.ones(3, kind="host", device="host")

    class Lender:
        __dlpack__, __dlpack_device__ = source.__dlpack__, source.__dlpack_device__

    for error in (RuntimeError, BufferError):

        def refuse(_: Any, error: type[Exception] = error) -> Any:
            raise error("unsupported dtype")

        monkeypatch.setattr(np, "from_dlpack", refuse)
        made = isthmus.asarray(Lender(), kind="host", device="host", copy=False)
        assert made.ptr == source.ptr


def test_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    source = torch.arange(24, dtype=torch.int32).reshape(4, 6)
    made = isthmus.asarray(source[:, ::2], kind="host", device="host", copy=False)
    assert (made.ptr, made.strides) == (source.data_ptr(), (24, 8))
    made[...] = 3
    assert (source[:, ::2] == 3).all()
    assert (isthmus.asarray(source).to_numpy() == source.numpy()).all()
    with pytest.raises(ValueError, match="copy=False"):
        isthmus.asarray(source, copy=False)


@pytest.mark.parametrize("name", ["dpctl.tensor", "dpnp"])
def test_of_dpctl_and_dpnp(name: str) -> None:
    pytest.importorskip("dpctl")  # must precede the drivers that Isthmus opens
    tensor = pytest.importorskip(name)
    for usm_type in ("device", "shared", "host"):
        source = tensor.arange(24, dtype="i4", usm_type=usm_type)
        made = isthmus.asarray(source[::2], copy=False)
        assert (made.usm_type, made.dtype, made.shape, made.strides) == (
            usm_type,
            "i4",
            (12,),
            (8,),
        )
        assert (made.to_numpy() == np.arange(24)[::2]).all()
        made.fill(3)
        assert (isthmus.asarray(source).to_numpy()[::2] == 3).all()
        assert (isthmus.array(source, "f8", kind="host").to_numpy()[::2] == 3).all()


def test_of_cupy_or_numba(q: Queue) -> None:
    if q.device.backend != "cuda":
        pytest.skip("no CUDA device")
    source = isthmus.asarray(MODEL, queue=q)
    lent = Interface(source[:, ::2].__cuda_array_interface__, "__cuda_array_interface__")
    made = isthmus.asarray(lent, copy=False)
    assert (made.ptr, made.device) == (source.ptr, q.device)
    assert (made.to_numpy() == MODEL[:, ::2]).all()
    cupy = pytest.importorskip("cupy")
    theirs = cupy.arange(24)
    assert isthmus.asarray(theirs, copy=False).ptr == theirs.data.ptr


def test_memory_around_adopted_memory() -> None:
    whole = np.arange(24, dtype="i4")
    part = Buffer.adopt(whole.ctypes.data, 92, kind="host", device="host", owner=whole)
    assert (isthmus.asarray(whole).to_numpy() == whole).all()
    part.fill(0)
    assert whole.tolist() == [0] * 23 + [23]


def test_dpnp_takes_arrays_of_sycls() -> None:
    if not isthmus.devices("sycl"):
        pytest.skip("no SYCL device")
    dpctl = pytest.importorskip("dpctl")
    dpnp = pytest.importorskip("dpnp")
    ours = isthmus.asarray([1, 2, 3], "int32", device="sycl")
    assert isinstance(ours.sycl_queue, dpctl.SyclQueue)
    assert isthmus.empty_like(ours, sycl_queue=ours.sycl_queue).queue == ours.queue
    assert dpnp.asnumpy(dpnp.asarray(ours) + 1).tolist() == [2, 3, 4]
