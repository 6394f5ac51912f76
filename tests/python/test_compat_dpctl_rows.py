# SPDX-License-Identifier: Apache-2.0
"""dpctl's rules case by case, checked on dpctl and on isthmus.compat.dpctl.memory."""

from __future__ import annotations

import gc
import itertools
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from compat_dpctl_support import Foreign
from support import KINDS, noise, raised, until

import isthmus
from isthmus import Buffer, Queue

if os.environ.get("ISTHMUS_ALLOW_NO_OPENCL") == "1":
    pytest.importorskip("dpctl")
import isthmus.compat.dpctl.memory as compat  # isort: skip  # before dpctl
import dpctl
import dpctl.memory as theirs
import dpnp.tensor as dpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

DATA = noise(4096)
ONEAPI, HOST = 14, (1, 0)


def all_is_free() -> bool:
    """Whether the pools of every context seen are empty once trimmed."""
    pools = [each for _, *pools in compat._cache.values() for each in pools if each is not None]
    for each in pools:
        each.trim()
    return not any(each.held_bytes for each in pools)


@pytest.fixture(autouse=True)
def pools_are_free_again(no_leak: None) -> Iterator[None]:
    yield
    gc.collect()
    until(all_is_free)


@pytest.fixture(params=[theirs, compat], ids=["dpctl", "compat"])
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def part() -> Any:
    """A queue on a sub-device, which has a context of its own."""
    device = dpctl.SyclDevice("cpu")
    if device.max_compute_units < 2:
        pytest.skip("a device of one unit has no parts")
    return dpctl.SyclQueue(device.create_sub_devices(partition=1)[0])


def elsewhere() -> Any:
    """A queue in a context other than the default one."""
    device = dpctl.SyclDevice("cpu")
    return dpctl.SyclQueue(dpctl.SyclContext([device]), device)


def class_of(module: ModuleType, kind: str) -> Any:
    return getattr(module, f"MemoryUSM{kind.capitalize()}")


def made(module: ModuleType, kind: str, nbytes: int = 64, **named: Any) -> Any:
    memory = class_of(module, kind)(nbytes, **named)
    memory.copy_from_host(DATA[:nbytes])
    return memory


class Lending:
    """A SYCL object of another library."""

    def __init__(self, lent: Any) -> None:
        self._get_capsule = lent._get_capsule


class OwnQueue(dpctl.SyclQueue):
    """A Python subclass, which dpctl accepts through its capsule."""


# -- constructors ----------------------------------------------------------------------------------


def test_a_queue_is_of_no_use_to_the_same_kind(module: Any, kind: str) -> None:
    memory = made(module, kind)
    home = memory.sycl_queue
    for queue in (dpctl.SyclQueue(), elsewhere()):
        view = class_of(module, kind)(memory, queue=queue)
        assert view.sycl_queue is home
        assert view._pointer == memory._pointer
        copied = class_of(module, kind)(memory, queue=queue, copy=True)
        assert (copied.sycl_queue, copied._pointer) == (home, memory._pointer)
    with pytest.raises(TypeError):
        class_of(module, kind)(memory, queue="cpu")


def test_an_alignment_is_of_no_use_to_memory_that_is_there(module: Any, kind: str) -> None:
    memory = made(module, kind)
    assert class_of(module, kind)(memory, alignment=3)._pointer == memory._pointer
    other = class_of(module, "host" if kind != "host" else "shared")
    assert other(memory, copy=True, alignment=3).tobytes() == memory.tobytes()
    with pytest.raises(TypeError):
        class_of(module, kind)(memory, alignment=1.5)


@pytest.mark.parametrize(("kind", "to"), list(itertools.permutations(KINDS, 2)))
def test_where_a_copy_of_another_kind_is(module: Any, kind: str, to: str) -> None:
    """On the given queue, or else on the default one, but not on the source's."""
    usual = class_of(module, to)(1).sycl_queue
    source = made(module, kind, queue=elsewhere())
    copied = class_of(module, to)(source, copy=True)
    assert copied.sycl_queue is usual
    assert copied.sycl_context != source.sycl_context
    assert copied.tobytes() == source.tobytes()
    assert copied.reference_obj is (copied if module is compat else None)
    for queue in (dpctl.SyclQueue(), elsewhere()):
        there = class_of(module, to)(source, copy=True, queue=queue)
        assert there.sycl_queue is queue
        assert there.tobytes() == source.tobytes()


def test_the_reported_pool_is_the_one_that_allocates(kind: str) -> None:
    """This holds for any number of contexts seen, whose empty pools are dropped."""
    for _ in range(20):
        class_of(compat, kind)(1, queue=elsewhere())
        memory = class_of(compat, kind)(1)
        assert isthmus.memory.query(memory._pointer).resource == compat.pool(kind)


@pytest.mark.parametrize("nbytes", [64, True, np.int64(100)])
def test_a_number_has_nothing_to_copy(module: Any, kind: str, nbytes: Any) -> None:
    queue = dpctl.SyclQueue()
    memory = class_of(module, kind)(nbytes, copy=True, queue=queue)
    assert (memory.nbytes, memory.sycl_queue) == (int(nbytes), queue)
    assert memory.reference_obj is (memory if module is compat else None)


LONG = 1 << 20_000  # Python does not format an integer of so many digits
NUMBERS = [0, 1.5, -1, 2**40, np.bool_(True), np.float32(1), np.array(1), np.array([1, 2])]
NO_NUMBERS = ["x", b"1", None, [], 1j, float("nan"), Ellipsis]


def short(number: object) -> str:
    return "LONG" if number is LONG else repr(number)


def agree(use: Callable[[Any], object]) -> bool:
    """Whether both accept it, or this package rejects it with dpctl's error or a subclass of it."""
    wanted, found = raised(lambda: use(theirs)), raised(lambda: use(compat))
    return found is wanted or (None not in (found, wanted) and issubclass(found, wanted))


@pytest.mark.parametrize("number", [*NUMBERS, *NO_NUMBERS, LONG], ids=short)
def test_what_c_makes_an_integer_of(kind: str, number: Any) -> None:
    assert agree(lambda module: class_of(module, kind)(64, copy=number))
    assert agree(lambda module: made(module, kind).memset(number))


@pytest.mark.parametrize(
    "size", [0, -1, -(2**63), 2**63, -(2**70), 2**70, 1.0, "64", np.int8(-1), LONG], ids=short
)
def test_what_is_no_size(kind: str, size: Any) -> None:
    assert raised(lambda: class_of(theirs, kind)(size)) is not None
    assert agree(lambda module: class_of(module, kind)(size))


def test_a_long_number_is_reported_by_its_bits(kind: str) -> None:
    with pytest.raises(OverflowError, match="nbytes of an integer of 20001 bits"):
        class_of(compat, kind)(LONG)
    with pytest.raises(OverflowError, match=r"0\.\.65535, not an integer of 20001 bits"):
        made(compat, kind).memset(LONG)


# -- what names the context ------------------------------------------------------------------------


def test_a_device_names_no_context(module: Any, kind: str) -> None:
    memory = made(module, kind)
    for syclobj in (memory.sycl_device, None, 5, b"cpu"):
        for take in (module.as_usm_memory, class_of(module, kind)):
            with pytest.raises(ValueError):
                take(Foreign(memory, syclobj=syclobj))


def test_a_queue_of_a_part_is_of_another_context(module: Any, kind: str, part: Any) -> None:
    memory = made(module, kind)
    for syclobj in (part, part._get_capsule(), part.sycl_device, Lending(part)):
        with pytest.raises(ValueError):
            module.as_usm_memory(Foreign(memory, syclobj=syclobj))
    there = made(module, kind, queue=part)
    with pytest.raises(ValueError):
        module.as_usm_memory(Foreign(there, syclobj=memory.sycl_queue))
    assert module.as_usm_memory(Foreign(there)).tobytes() == there.tobytes()


def test_a_subclass_of_queues_is_identified_by_its_capsule(module: Any, kind: str) -> None:
    memory = made(module, kind)
    queue = OwnQueue(memory.sycl_queue._get_capsule())
    taken = module.as_usm_memory(Foreign(memory, syclobj=queue))
    assert taken.sycl_queue is not queue
    assert type(taken.sycl_queue) is dpctl.SyclQueue
    assert taken.sycl_queue == queue == memory.sycl_queue
    assert taken.tobytes() == memory.tobytes()


def test_any_object_with_a_capsule(module: Any, kind: str) -> None:
    memory = made(module, kind)
    by_queue = module.as_usm_memory(Foreign(memory, syclobj=Lending(memory.sycl_queue)))
    assert by_queue.sycl_queue == memory.sycl_queue
    by_context = module.as_usm_memory(Foreign(memory, syclobj=Lending(memory.sycl_context)))
    assert by_context.sycl_context == memory.sycl_context
    for taken in (by_queue, by_context):
        assert (taken._pointer, taken.tobytes()) == (memory._pointer, memory.tobytes())


def test_a_capsule_that_cannot_be_obtained(module: Any) -> None:
    class Failing:
        def _get_capsule(self) -> object:
            raise KeyError("nothing to lend")

    class Lying:
        def _get_capsule(self) -> object:
            return 5

    memory = made(module, "shared")
    with pytest.raises(KeyError, match="nothing to lend"):
        module.as_usm_memory(Foreign(memory, syclobj=Failing()))
    with pytest.raises(ValueError):
        module.as_usm_memory(Foreign(memory, syclobj=Lying()))


@pytest.mark.parametrize("name", ["cpu", "opencl:cpu", "opencl:cpu:0"])
def test_a_filter_is_its_platforms_default_context(module: Any, kind: str, name: str) -> None:
    memory = made(module, kind, queue=dpctl.SyclQueue(name))
    taken = module.as_usm_memory(Foreign(memory, syclobj=name))
    assert taken.sycl_context == memory.sycl_context
    assert taken.tobytes() == memory.tobytes()
    other = made(module, kind, queue=elsewhere())
    with pytest.raises(ValueError):
        module.as_usm_memory(Foreign(other, syclobj=name))


def test_a_filter_is_the_same_queue_each_time() -> None:
    """Memory records every queue that it was exported on."""
    memory = made(compat, "shared")
    lent = Foreign(memory, syclobj="cpu")
    first, second = compat.as_usm_memory(lent), compat.as_usm_memory(lent)
    assert first.sycl_queue == second.sycl_queue


@pytest.mark.parametrize("of", ["sycl_queue", "sycl_context"])
def test_a_capsule_that_was_used_up(module: Any, kind: str, of: str) -> None:
    memory = made(module, kind)
    noun = getattr(memory, of)
    capsule = noun._get_capsule()
    type(noun)(capsule)  # consumes the capsule and renames it
    for take in (module.as_usm_memory, class_of(module, kind)):
        with pytest.raises(ValueError):
            take(Foreign(memory, syclobj=capsule))


def test_a_capsule_is_used_up_by_dpctl_and_not_here() -> None:
    memory = made(compat, "shared")
    capsule = memory.sycl_queue._get_capsule()
    for _ in range(3):
        assert compat.as_usm_memory(Foreign(memory, syclobj=capsule)).tobytes() == memory.tobytes()
    theirs.as_usm_memory(Foreign(memory, syclobj=capsule))
    for module in (theirs, compat):
        with pytest.raises(ValueError):
            module.as_usm_memory(Foreign(memory, syclobj=capsule))


# -- advice ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("advice", [0, 1, -1, 100])
def test_any_advice_is_accepted(module: Any, kind: str, advice: int) -> None:
    """A count of zero means all bytes, and so does one that is too large."""
    memory = made(module, kind)
    for count in (0, 1, 64, 65, 1 << 40):
        assert memory.sycl_queue.mem_advise(memory, count, advice) is None
    assert memory.tobytes() == DATA[:64].tobytes()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1, 0), OverflowError),
        ((1 << 70, 0), OverflowError),
        ((64, 1 << 40), OverflowError),
        (("64", 0), TypeError),
        ((64, "0"), TypeError),
        ((64,), TypeError),
    ],
)
def test_bad_advice(module: Any, kind: str, arguments: Any, error: type) -> None:
    memory = made(module, kind)
    with pytest.raises(error):
        memory.sycl_queue.mem_advise(memory, *arguments)
    with pytest.raises(TypeError, match="_Memory"):
        memory.sycl_queue.mem_advise(DATA, 64, 0)
    assert memory.tobytes() == DATA[:64].tobytes()


# -- DLPack ----------------------------------------------------------------------------------------


def test_arrays_on_subdevices_are_exported_to_the_host_only(
    module: Any, kind: str, part: Any
) -> None:
    array = dpt.usm_ndarray(64, dtype="u1", buffer=made(module, kind, queue=part))
    for lend in (array.__dlpack__, lambda: Buffer.from_dlpack(array)):
        # dpnp's own exception, which it does not export
        with pytest.raises(Exception, match="default platform SYCL context"):
            lend()
    assert np.from_dlpack(array, device="cpu").tobytes() == DATA[:64].tobytes()


def test_buffers_on_subdevices_are_exported_to_the_host_only(kind: str, part: Any) -> None:
    buffer = Buffer(64, kind=kind, queue=part)
    buffer.copy_from(DATA[:64])
    number = dpctl.get_devices().index(part.sycl_device.parent_device)
    with pytest.raises(BufferError):
        buffer.__dlpack__(dl_device=(ONEAPI, number))
    if kind == "device":
        with pytest.raises(BufferError, match="cannot be exported"):
            buffer.__dlpack__()
    else:
        assert buffer.__dlpack_device__() == HOST
    assert np.from_dlpack(buffer, device="cpu").tobytes() == DATA[:64].tobytes()


def host_copy(lender: Any, **asked: Any) -> np.ndarray:
    """NumPy's array of it, requested on the host by `dl_device=(1, 0)`."""

    class Asking:
        def __dlpack__(self, **named: Any) -> Any:
            return lender.__dlpack__(**(named | {"dl_device": HOST, **asked}))

        def __dlpack_device__(self) -> tuple[int, int]:
            return HOST

    return np.from_dlpack(Asking())


def test_on_the_host_by_dl_device(module: Any, kind: str) -> None:
    """Memory that the host cannot access is copied, from a buffer as from an array of dpnp."""
    queue = dpctl.SyclQueue()
    buffer = Buffer(4096, kind=kind, queue=Queue.from_sycl(queue))
    buffer.copy_from(DATA)
    array = dpt.usm_ndarray(4096, dtype="u1", buffer=made(module, kind, 4096, queue=queue))
    for lender, address in ((buffer, buffer.ptr), (array, array._pointer)):
        copied = host_copy(lender, copy=True)
        assert copied.ctypes.data != address
        assert copied.tobytes() == host_copy(lender).tobytes() == DATA.tobytes()
    if kind == "device":
        for lender in (buffer, array):
            with pytest.raises(BufferError, match="without a copy"):
                host_copy(lender, copy=False)
    else:  # dpnp cannot export host-accessible memory without a copy
        assert host_copy(buffer, copy=False).ctypes.data == buffer.ptr


def test_a_host_copy_is_its_own(kind: str) -> None:
    buffer = Buffer(4096, kind=kind, queue=Queue("sycl"))
    buffer.copy_from(DATA)
    copied = host_copy(buffer, copy=True)
    copied[:] = 0
    assert buffer.tobytes() == DATA.tobytes()
    buffer.free()
    del buffer
    gc.collect()
    assert not copied.any()
