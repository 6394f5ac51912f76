# SPDX-License-Identifier: Apache-2.0
"""Creating arrays: empty and related functions, allocation from pools, bad arguments."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from array_support import WHERE
from hypothesis import given
from hypothesis import strategies as st
from support import is_memory_released, sim, until

import isthmus
from isthmus import Array, Buffer, Device, Queue, UnifiedBuffer, _core
from isthmus.memory import PoolResource, StatisticsResource, live

if TYPE_CHECKING:
    from collections.abc import Callable

FILLED: dict[str, tuple[Callable[..., Array], int]] = {
    "zeros": (isthmus.zeros, 0),
    "ones": (isthmus.ones, 1),
}
HOST = Device("host")
SHAPES = st.lists(st.integers(0, 6), max_size=5).map(tuple)
TYPES = st.sampled_from(
    [np.dtype(each) for each in "?bhilBHILefdgFDG"],
)


# -- empty, zeros, ones, full ---------------------------------------------------------------------


def test_what_empty_makes(q: Queue, kind: str) -> None:
    made = isthmus.empty((3, 4), "int16", kind=kind, queue=q)
    assert (made.shape, made.strides, made.dtype) == ((3, 4), (8, 2), np.dtype("i2"))
    assert (made.kind, made.queue, made.device, made.offset) == (kind, q, q.device, 0)
    assert not made.read_only
    assert made.buffer.nbytes == 24
    assert isthmus.empty(5, kind=kind, queue=q).shape == (5,)
    assert isthmus.empty([2, 3], kind=kind, queue=q).shape == (2, 3)
    assert isthmus.empty((), kind=kind, queue=q).nbytes == 4
    assert isthmus.empty((2, 0), kind=kind, queue=q).nbytes == 0
    assert isthmus.empty(np.int64(3), kind=kind, queue=q).shape == (3,)
    assert isthmus.empty((np.int8(3), True), kind=kind, queue=q).shape == (3, 1)
    assert isthmus.empty(shape=(1,) * 64, kind=kind, queue=q).ndim == 64


def test_defaults() -> None:
    made = isthmus.empty(3)
    assert (made.kind, made.dtype, made.queue) == ("device", "f4", isthmus.current_queue())
    for where in (HOST, HOST.default_queue):
        with where:
            assert isthmus.empty(3).device == HOST
    assert isthmus.empty(3, device="host").queue == HOST.default_queue
    assert isthmus.empty(3, device="host", queue=None, kind=None, resource=None).device == HOST


@pytest.mark.parametrize("name", FILLED)
def test_filled_ones(q: Queue, kind: str, name: str) -> None:
    make, value = FILLED[name]
    for dtype in "?bhilBHILefdgFDG":
        made = make((2, 3), dtype, kind=kind, queue=q)
        assert made.dtype == dtype
        assert (made.to_numpy() == np.full((2, 3), value, dtype)).all()
    assert make((0, 3), kind=kind, queue=q).to_numpy().shape == (0, 3)
    assert make((), kind=kind, queue=q).to_numpy() == value


def test_full(q: Queue, kind: str) -> None:
    for value, dtype in (
        (True, "?"), (3, "i8"), (2.5, "f8"), (1 + 2j, "c16"), (np.int16(4), "i2"),
        (np.float32(2.5), "f4"), (2**63, "u8"), (np.array(7, "u1"), "u1"),
    ):  # fmt: skip
        made = isthmus.full((2, 2), value, kind=kind, queue=q)
        assert made.dtype == dtype
        assert (made.to_numpy() == value).all()
    assert isthmus.full(3, 4, "f4", kind=kind, queue=q).to_numpy().tolist() == [4.0] * 3
    assert isthmus.full(shape=3, fill_value=1, kind=kind, queue=q).size == 3


def test_order(q: Queue, kind: str) -> None:
    for make in (isthmus.empty, isthmus.ones):
        assert make((2, 3, 4), "f8", order="C", kind=kind, queue=q).strides == (96, 32, 8)
        assert make((2, 3, 4), "f8", order="F", kind=kind, queue=q).strides == (8, 16, 48)
    made = isthmus.full((2, 3), 2, order="F", kind=kind, queue=q)
    assert (made.to_numpy() == 2).all()


@pytest.mark.parametrize("alignment", [1, 16, 4096, 1 << 16])
@pytest.mark.sim_and_host
def test_alignment(q: Queue, kind: str, alignment: int) -> None:
    made = isthmus.empty(3, "longdouble", kind=kind, queue=q, alignment=alignment)
    assert made.ptr % max(alignment, 16) == 0


@given(shape=SHAPES, dtype=TYPES, order=st.sampled_from("CF"), where=WHERE)
def test_as_numpys(
    shape: tuple[int, ...], dtype: np.dtype[Any], order: Any, where: tuple[Queue, str]
) -> None:
    queue, kind = where
    model = np.empty(shape, dtype, order)
    made = isthmus.empty(shape, dtype, order=order, kind=kind, queue=queue)
    assert (made.shape, made.dtype, made.nbytes) == (model.shape, model.dtype, model.nbytes)
    if model.size:
        assert made.strides == model.strides
    ones = isthmus.ones(shape, dtype, kind=kind, queue=queue)
    assert (ones.to_numpy() == np.ones(shape, dtype)).all()


# -- arguments for a prototype --------------------------------------------------------------------


def test_like_an_array(q: Queue, kind: str) -> None:
    like = isthmus.empty((2, 3), "int16", kind=kind, queue=q)
    for make, value in (
        (isthmus.empty_like, None), (isthmus.zeros_like, 0), (isthmus.ones_like, 1),
        (lambda *a, **k: isthmus.full_like(a[0], 5, *a[1:], **k), 5),
    ):  # fmt: skip
        made = make(like)
        assert (made.shape, made.dtype, made.kind, made.queue) == ((2, 3), "i2", kind, q)
        assert made.buffer is not like.buffer
        assert value is None or (made.to_numpy() == value).all()
        assert make(like, "f8").dtype == "f8"
        assert make(like, shape=(7,)).shape == (7,)
        other = make(like, kind="host", device="host")
        assert (other.kind, other.device, other.dtype) == ("host", HOST, "i2")


def test_like_arrays_of_other_libraries() -> None:
    with HOST:
        made = isthmus.zeros_like(np.ones((2, 3), np.int8))
        assert (made.shape, made.dtype, made.kind, made.device) == ((2, 3), "i1", "device", HOST)
        assert isthmus.ones_like([1.5, 2.5]).dtype == "f8"
        assert isthmus.empty_like(Buffer(5, kind="shared")).kind == "shared"
        assert isthmus.empty_like(Buffer(5)).dtype == "u1"
        assert isthmus.empty_like(UnifiedBuffer((2, 3))).shape == (2, 3)


def test_like_arrays_on_a_device(q: Queue, kind: str) -> None:
    ours = isthmus.ones((2, 3), "int16", kind=kind, queue=q).T
    try:
        told = ours.__sycl_usm_array_interface__
    except AttributeError:
        pytest.skip("no interface tells of it")
    lent = type("Lent", (), {"__sycl_usm_array_interface__": told})()
    made = isthmus.zeros_like(lent)
    assert (made.shape, made.dtype, made.kind, made.device) == ((3, 2), "i2", kind, q.device)
    assert made.strides == ours.strides
    assert (made.to_numpy() == 0).all()
    assert isthmus.empty_like(lent, kind="host", device="host", shape=4).device == HOST


def test_like_arrays_with_a_cuda_stream(q: Queue) -> None:
    """New memory does not keep the prototype alive, which owns the stream."""
    if q.device.backend != "cuda":
        pytest.skip("no CUDA device")
    source = isthmus.ones(100, queue=q)
    other = Queue(q.device)
    for number in (1, 2, other.__cuda_stream__()[1]):
        told = {**source.__cuda_array_interface__, "stream": number}
        lent = type("Lent", (), {"__cuda_array_interface__": told})()
        gone = weakref.ref(lent)
        made = isthmus.zeros_like(lent)
        del lent
        gc.collect()
        assert gone() is None, number
        assert made.device == q.device
        assert (made.to_numpy() == 0).all()


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_like_dpnps(usm_type: str) -> None:
    pytest.importorskip("dpctl")  # must precede the drivers that Isthmus opens
    dpnp = pytest.importorskip("dpnp")
    like = dpnp.ones((2, 3), dtype="f8", usm_type=usm_type)
    made = isthmus.full_like(like, 7)
    assert (made.usm_type, made.dtype, made.shape) == (usm_type, "f8", (2, 3))
    assert made.sycl_queue == like.sycl_queue
    assert dpnp.asnumpy(dpnp.asarray(made) + like).tolist() == [[8.0] * 3] * 2


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    order=st.sampled_from("CFAK"),
    data=st.data(),
)
def test_order_of_a_prototype(shape: tuple[int, ...], order: Any, data: st.DataObject) -> None:
    axes = data.draw(st.permutations(range(len(shape))))
    model = np.empty(shape, "f4").transpose(axes)
    like = isthmus.empty(shape, device="host").transpose(*axes)
    if 1 not in shape:
        assert (
            isthmus.empty_like(like, order=order).strides
            == np.empty_like(model, order=order).strides
        )
    assert isthmus.empty_like(like, order=order).shape == model.shape


# -- where the memory comes from ------------------------------------------------------------------


def test_no_driver_call_for_each(kind: str) -> None:
    device = sim()

    def calls_of_a_round() -> int:
        before = _core.sim_calls(device, "allocate") + _core.sim_calls(device, "free")
        kept = [isthmus.empty(n, kind=kind, device=device) for n in range(1, 2000, 7)]
        assert len({each.ptr for each in kept}) == len(kept)
        for n in range(1000):
            isthmus.zeros(n % 300, "f8", kind=kind, device=device)
        turned = isthmus.zeros((30, 20), kind=kind, device=device).T
        for _ in range(100):
            turned.reshape(-1)
        return _core.sim_calls(device, "allocate") + _core.sim_calls(device, "free") - before

    assert 0 < calls_of_a_round() < 10
    assert calls_of_a_round() == 0


def test_the_default_pool(q: Queue, kind: str) -> None:
    pool = isthmus.default_pool(kind, queue=q)
    assert isinstance(pool, PoolResource)
    assert pool == isthmus.default_pool(kind, q.device)
    assert (pool.kind, pool.device, pool.limit_bytes, pool.decay) == (kind, q.device, None, 10.0)
    assert "PoolResource" in repr(pool)
    made = isthmus.empty(1000, kind=kind, queue=q)
    assert isthmus.memory.query(made.ptr).resource == pool
    maps = pool.maps
    del made
    for _ in range(100):
        isthmus.empty(1000, kind=kind, queue=q)
    assert pool.maps == maps
    pool.trim()
    assert isthmus.zeros(3, kind=kind, queue=q).to_numpy().tolist() == [0, 0, 0]


def test_a_resource_that_is_named_or_current(q: Queue, kind: str) -> None:
    counted = StatisticsResource(PoolResource(kind, q.device))
    made = isthmus.ones(1000, resource=counted)
    assert (made.kind, counted.current_bytes) == (kind, 4000)
    with isthmus.using(counted):
        here = isthmus.ones(10, "f8", kind=kind, queue=q)
        assert counted.current_bytes == 4080
        isthmus.ones_like(made)
        assert (counted.total_bytes, counted.total_count) == (8080, 3)
    isthmus.ones(10, kind=kind, queue=q)
    assert counted.total_count == 3
    del made, here
    assert until(lambda: counted.current_count == 0)


def test_pools_of_a_simulated_device_go_with_it() -> None:
    before = live()
    for _ in range(3):
        device = sim(capacity="64MiB")
        made = isthmus.ones(100, device=device)
        del device
        assert made.to_numpy().sum() == 100
    del made
    assert is_memory_released(before)


# -- bad arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [isthmus.empty, isthmus.zeros, isthmus.ones])
@pytest.mark.parametrize(
    ("arguments", "named", "error", "why"),
    [
        ((), {}, TypeError, "missing its argument 'shape'"),
        ((3, "f4", "C"), {}, TypeError, "at most 2"),
        ((3,), {"shape": 3}, TypeError, "'shape' twice"),
        ((3,), {"dtipe": "f4"}, TypeError, "dtipe"),
        ((3,), {"fill_value": 3}, TypeError, "fill_value"),
        ((3,), {"prototype": 3}, TypeError, "prototype"),
        ((3,), {"kind": "host", "usm_type": "host"}, TypeError, "kind and usm_type"),
        ((3,), {"queue": None, "sycl_queue": None}, TypeError, "queue and sycl_queue"),
        ((-1,), {}, ValueError, "-1"),
        (((3, -2),), {}, ValueError, "-2"),
        (((1,) * 65,), {}, ValueError, "65"),
        ((2**63,), {}, isthmus.USMAllocationError, "63 bits"),
        (((2**40, 2**40),), {}, isthmus.USMAllocationError, "63 bits"),
        (((2**61, 0),), {}, isthmus.USMAllocationError, "63 bits"),
        ((2**62,), {"order": "F"}, isthmus.USMAllocationError, "63 bits"),
        ((2.0,), {}, TypeError, "shape"),
        (("3",), {}, TypeError, "must be an integer, not str"),
        ((None,), {}, TypeError, "shape"),
        (((3, 2.5),), {}, TypeError, "extent"),
        ((3,), {"kind": "gpu"}, ValueError, "gpu"),
        ((3,), {"usm_type": 3}, TypeError, "3"),
        ((3,), {"order": "K"}, ValueError, "'C' or 'F'"),
        ((3,), {"order": 1}, TypeError, "'C' or 'F'"),
        ((3,), {"alignment": 3}, ValueError, "3"),
        ((3,), {"alignment": "x"}, TypeError, "alignment"),
        ((3,), {"queue": "host"}, TypeError, "queue"),
        ((3,), {"device": 5}, TypeError, "device"),
        ((3,), {"device": "cpu:99"}, isthmus.DeviceNotFoundError, "cpu:99"),
        ((3,), {"resource": "pool"}, TypeError, "resource"),
    ],
)
def test_bad_arguments(
    make: Any, arguments: tuple[Any, ...], named: dict[str, Any], error: type, why: str
) -> None:
    before = live()
    with HOST, pytest.raises(error, match=why):
        make(*arguments, **named)
    assert is_memory_released(before)


@pytest.mark.sim_and_host
def test_bad_fills(q: Queue, kind: str) -> None:
    for value, dtype, error in (
        (300, "u1", OverflowError), (-1, "u4", OverflowError), (1.5, "i4", TypeError),
        (1j, "f4", TypeError), ("x", None, TypeError), (None, None, TypeError),
        ([1, 2], "f4", ValueError), (2**70, None, TypeError),
    ):  # fmt: skip
        with pytest.raises(error):
            isthmus.full(3, value, dtype, kind=kind, queue=q)
    with pytest.raises(TypeError, match="fill_value"):
        isthmus.full(3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"fill_value must be .*number, not NoneType"):
        isthmus.full(3, None, device="host")
    with pytest.raises(OverflowError, match="an integer of 401 bits does not fit in int32"):
        isthmus.full(3, 2**400, "int32", device="host")


def test_more_than_there_is(q: Queue, kind: str) -> None:
    with pytest.raises(MemoryError):
        isthmus.empty(2**58, "u1", kind=kind, queue=q)


def test_a_queue_of_another_device() -> None:
    with pytest.raises(ValueError, match="queue and device do not match"):
        isthmus.empty(3, device="host", queue=Queue(sim()))
    with pytest.raises(isthmus.Error):
        isthmus.empty(3, queue=Queue("host"), resource=PoolResource("device", sim()))


@pytest.mark.parametrize("order", "CFAK")
def test_the_order_of_numpys_arrays(order: Any) -> None:
    model = np.zeros((2, 3, 4), "f8")
    for like in (model, np.asfortranarray(model), model.transpose(1, 2, 0), model[:, ::2]):
        made = isthmus.empty_like(like, "f4", order=order, kind="host", device="host")
        assert made.strides == np.empty_like(like, "f4", order=order).strides


def test_whole_numbers_of_full() -> None:
    def full(value: int, dtype: Any = None) -> isthmus.Array:
        return isthmus.full(1, value, dtype, kind="host", device="host")

    for value in (0, -5, 2**63 - 1, -(2**63), 2**64 - 1):
        assert full(value).dtype == np.asarray(value).dtype
    for name in "gG":
        assert full(2**60 + 1, name).to_numpy()[0] == np.longdouble(2**60) + 1
