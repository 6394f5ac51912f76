# SPDX-License-Identifier: Apache-2.0
"""SYCL queues and memory in Isthmus, and the reverse, together with dpctl and dpnp."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import filled, noise, opencl_library, until

import isthmus
from isthmus import Buffer, Context, Device, Event, Queue, low_level
from isthmus.low_level.endpoint import endpoint_at
from isthmus.memory import PoolResource, as_usm_memory

if os.environ.get("ISTHMUS_ALLOW_NO_OPENCL") == "1":
    pytest.importorskip("dpctl")
# Must precede the import of dpctl: see test_sycl_import_orders.
assert isthmus.devices("sycl"), isthmus.absent()

import dpctl  # noqa: E402
import dpctl.memory as dm  # noqa: E402
import dpnp  # noqa: E402
import dpnp.tensor as dpt  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = noise(4096)
MIB = 1 << 20
CLASSES = {
    "device": dm.MemoryUSMDevice,
    "shared": dm.MemoryUSMShared,
    "host": dm.MemoryUSMHost,
}


@pytest.fixture(params=["in_order", "out_of_order"])
def theirs(request: pytest.FixtureRequest) -> Any:
    return (
        dpctl.SyclQueue(property="in_order") if request.param == "in_order" else dpctl.SyclQueue()
    )


@pytest.fixture
def ours(theirs: Any) -> Queue:
    return Queue.from_sycl(theirs)


class Foreign:
    """Exposes an interface dictionary as another library would."""

    def __init__(self, interface: Any) -> None:
        self.__sycl_usm_array_interface__ = interface


# -- queues, contexts, devices


def test_a_queue_is_one_here_however_it_comes(theirs: Any) -> None:
    ours = Queue.from_sycl(theirs)
    capsule = theirs._get_capsule()
    for given in (theirs, capsule, capsule, theirs._get_capsule()):
        assert Queue.from_sycl(given) is ours
    by_address = Queue.from_handle(theirs.addressof_ref(), "sycl:cpu:0", theirs)
    assert by_address is ours
    assert ours.backend == "sycl"
    dpctl.SyclQueue(capsule)  # the capsule was not consumed


def test_queues_of_their_own_are_not_the_same(theirs: Any) -> None:
    assert Queue.from_sycl(theirs) != Queue.from_sycl(dpctl.SyclQueue())


def test_contexts_and_devices(theirs: Any, ours: Queue) -> None:
    assert Context.from_sycl(theirs.sycl_context) == ours.context
    assert Context.from_sycl(theirs.sycl_context._get_capsule()) == ours.context
    assert Device.from_sycl(theirs.sycl_device) == ours.device
    assert Device.from_handle(theirs.sycl_device.addressof_ref(), "sycl") == ours.device
    context = theirs.sycl_context
    assert Context.from_handle(context.addressof_ref(), "sycl", context) == ours.context
    assert Queue("sycl").context == Context.from_sycl(dpctl.SyclQueue().sycl_context)
    other = Context.from_sycl(dpctl.SyclContext([theirs.sycl_device]))
    assert other != ours.context
    assert Queue(context=dpctl.SyclContext([theirs.sycl_device])).device == ours.device
    assert Queue(theirs.sycl_device).device == ours.device


def test_ours_are_dpctls() -> None:
    ours = Queue("sycl")
    theirs = dpctl.SyclQueue(ours._get_capsule())
    assert theirs.is_in_order
    again = Queue.from_sycl(theirs)
    assert again == ours
    gate = Event()
    ours.fence(after=gate)
    assert not again.idle  # it is the same queue, not a second one
    gate.complete()
    context = dpctl.SyclContext(ours.context._get_capsule())
    assert Context.from_sycl(context) == ours.context
    capsule = ours._get_capsule()
    del ours
    gc.collect()
    dpctl.SyclQueue(capsule).wait()


def test_by_argument(theirs: Any, ours: Queue) -> None:
    buffer = Buffer(4096, queue=theirs)
    assert buffer.queue is ours
    assert Buffer(64, device=theirs.sycl_device).queue.device == ours.device
    buffer.copy_from(DATA, queue=theirs)
    assert buffer.tobytes() == DATA.tobytes()
    unified = isthmus.UnifiedBuffer(100, queue=theirs)
    unified.fill(3).sync_to_device(queue=theirs)
    assert (unified.to_numpy() == 3).all()


def test_threads_that_adopt_one_queue(theirs: Any) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _number: Queue.from_sycl(theirs), range(200)))
    assert all(each == found[0] for each in found)


def test_sycl_is_loaded_by_name_or_after_dpctl() -> None:
    code = """if True:
        import isthmus, sys
        assert all(each.backend != "sycl" for each in isthmus.devices())
        assert "by name" in dict(isthmus.absent())["sycl"]
        assert isthmus.devices("sycl") and "dpctl" not in sys.modules
        assert any(each.backend == "sycl" for each in isthmus.devices())
        assert "sycl" not in dict(isthmus.absent())"""
    assert run(code) == ""


# -- memory


@pytest.mark.parametrize("kind", CLASSES)
def test_memory_of_ours(ours: Queue, theirs: Any, kind: str) -> None:
    buffer = filled(DATA, kind=kind, queue=ours)
    taken = dm.as_usm_memory(buffer)
    assert type(taken) is CLASSES[kind]
    assert (taken._pointer, taken.nbytes) == (buffer.ptr, 4096)
    assert taken.sycl_queue == theirs
    assert (taken.copy_to_host() == DATA).all()
    taken.memset(7)
    assert buffer.tobytes() == bytes([7]) * 4096
    assert type(CLASSES[kind](buffer)) is CLASSES[kind]


@pytest.mark.parametrize("kind", CLASSES)
def test_memory_of_theirs(ours: Queue, theirs: Any, kind: str) -> None:
    made = CLASSES[kind](4096, queue=theirs)
    made.copy_from_host(DATA)
    adopted = as_usm_memory(made)
    assert adopted.get_usm_type() == kind
    assert adopted.sycl_queue is ours
    assert adopted.reference_obj is made
    pointer = made._pointer
    del made
    gc.collect()
    assert adopted._pointer == pointer
    assert (adopted.copy_to_host() == DATA).all()


def test_a_block_of_a_pool_comes_back(ours: Queue) -> None:
    pool = PoolResource("shared", ours.device)
    taken = dm.as_usm_memory(pool.allocate(MIB, queue=ours))
    where = taken._pointer
    assert pool.allocate(MIB, queue=ours).ptr != where
    del taken
    gc.collect()

    def is_back() -> bool:
        ours.wait()  # pending uses of an out-of-order queue are polled by calls only
        return pool.allocate(MIB, queue=ours).ptr == where

    assert until(is_back)


@pytest.mark.parametrize("form", ["queue", "context", "queue_capsule", "context_capsule", "filter"])
def test_forms_of_syclobj(theirs: Any, form: str) -> None:
    made = dm.MemoryUSMShared(4096, queue=theirs)
    made.copy_from_host(DATA)
    forms: dict[str, Callable[[], Any]] = {
        "queue": lambda: theirs,
        "context": lambda: theirs.sycl_context,
        "queue_capsule": theirs._get_capsule,
        "context_capsule": theirs.sycl_context._get_capsule,
        "filter": lambda: "opencl:cpu:0",
    }
    given = forms[form]()
    for _ in range(2):  # the capsule is not consumed
        interface = made.__sycl_usm_array_interface__ | {"syclobj": given}
        adopted = as_usm_memory(Foreign(interface))
        assert adopted.tobytes() == DATA.tobytes()
        assert adopted.sycl_context == Context.from_sycl(theirs.sycl_context)


def test_memory_of_another_context_is_refused(theirs: Any) -> None:
    made = dm.MemoryUSMShared(64, queue=theirs)
    other = dpctl.SyclContext([theirs.sycl_device])  # dpctl itself aborts here
    for syclobj in (other, dpctl.SyclQueue(other, theirs.sycl_device)):
        interface = made.__sycl_usm_array_interface__ | {"syclobj": syclobj}
        with pytest.raises(ValueError, match="context"):
            as_usm_memory(Foreign(interface))


def test_arrays_of_dpnp_in_our_memory(ours: Queue) -> None:
    buffer = Buffer(64, kind="shared", queue=ours)
    array = dpt.asarray(buffer)
    assert array.usm_type == "shared"
    array[:] = 3
    array.sycl_queue.wait()
    assert buffer.tobytes() == bytes([3]) * 64
    floats = dpnp.ndarray((16,), dtype=np.float32, buffer=dm.as_usm_memory(buffer))
    floats[:] = 2
    assert float(floats.sum()) == 32
    assert np.frombuffer(buffer.tobytes(), np.float32).tolist() == [2.0] * 16


def test_our_memory_over_arrays_of_dpnp() -> None:
    array = dpnp.arange(1000, dtype=np.float32)
    adopted = as_usm_memory(array)
    assert adopted.tobytes() == np.arange(1000, dtype=np.float32).tobytes()


def test_copies_to_an_address_known_to_the_driver_only(theirs: Any, ours: Queue) -> None:
    """The host cannot access it; an access as host memory would crash the process."""
    memory = dm.MemoryUSMDevice(DATA.nbytes, queue=theirs)
    ctx, dev = ours.context, ours.device
    assert endpoint_at(memory._pointer, "destination", 8, ours).holder.kind == "device"
    low_level.unsafe_copyto(ctx, dev, memory._pointer, DATA, DATA.nbytes).wait()
    low_level.unsafe_fill(ctx, dev, memory._pointer + 8, 7, 8).wait()
    back = np.zeros_like(DATA)
    low_level.unsafe_copyto(ctx, dev, back, memory._pointer, DATA.nbytes).wait()
    assert np.array_equal(back, [*DATA[:8], *[7] * 8, *DATA[16:]])


# -- order


def test_our_operations_are_ordered_after_theirs(ours: Queue, theirs: Any) -> None:
    source = dm.MemoryUSMDevice(64 * MIB, queue=theirs)
    into = Buffer(64 * MIB, kind="shared", queue=ours)
    for value in range(1, 6):
        source.memset(value)
        theirs.memcpy_async(dm.as_usm_memory(into), source, 64 * MIB)
        copied = Buffer(64 * MIB, kind="host", queue=ours)
        copied.copy_from(into, queue=ours)
        assert (np.asarray(copied) == value).all()


def test_events_both_ways(ours: Queue, theirs: Any) -> None:
    source, into = (Buffer(16 * MIB, kind="shared", queue=ours) for _ in range(2))
    for value in range(1, 6):
        behind = source.fill(value, blocking=False)
        after = dpctl.SyclEvent(behind._get_capsule())
        other = dpctl.SyclQueue(theirs.sycl_context, theirs.sycl_device)
        copied = other.memcpy_async(
            dm.as_usm_memory(into), dm.as_usm_memory(source), 16 * MIB, [after]
        )
        adopted = Event.from_sycl(copied)
        doubled = Buffer(16 * MIB, kind="host", queue=ours)
        doubled.copy_from(into, after=[copied, adopted])
        assert (np.asarray(doubled) == value).all()
        adopted.wait()
        assert adopted.done
        assert copied.execution_status == dpctl.event_status_type.complete


def test_an_event_of_theirs_holds_back_other_back_ends(theirs: Any) -> None:
    source = dm.MemoryUSMHost(64 * MIB, queue=theirs)
    source.memset(9)
    into = dm.MemoryUSMHost(64 * MIB, queue=theirs)
    copied = theirs.memcpy_async(into, source, 64 * MIB)
    there = Buffer(64 * MIB, queue=Queue("host"))
    there.copy_from(np.asarray(into), after=copied)
    assert (there.to_numpy() == 9).all()


def test_work_that_waits_for_the_host_is_deferred(ours: Queue, gate: Event) -> None:
    buffer = Buffer(64, kind="shared", queue=ours)
    late = buffer.fill(5, blocking=False, after=gate)
    fenced = ours.fence()
    assert not late.done
    assert not fenced.done
    gate.complete()
    fenced.wait()
    assert late.done
    assert buffer.tobytes() == bytes([5]) * 64


# -- bad input


def test_what_is_none_of_sycls() -> None:
    used = dpctl.SyclQueue()._get_capsule()
    dpctl.SyclQueue(used)
    for given in (None, 3, "cpu", np.ones(3), dpctl.SyclContext(), Queue("host")):
        with pytest.raises(TypeError):
            Queue.from_sycl(given)
    for find in (Context, Device, Event):
        with pytest.raises(TypeError, match="from_sycl"):
            find.from_sycl(dpctl.SyclQueue())
    elsewhere = Buffer(64, queue=Queue("opencl")).fill(1, blocking=False)
    for noun in (Queue("host"), Queue("host").context, Event(), elsewhere):
        with pytest.raises(TypeError, match="SYCL"):
            noun._get_capsule()
    for context in (42, dpctl.SyclQueue(), Queue("host")):
        for device in (None, "sycl"):
            with pytest.raises(TypeError, match="context"):
                Queue(device, context=context)
    interface = dm.MemoryUSMShared(64).__sycl_usm_array_interface__
    with pytest.raises(ValueError, match="nonsense"):
        as_usm_memory(Foreign(interface | {"syclobj": "nonsense:gpu"}))


@pytest.fixture
def parts() -> list[Any]:
    device = dpctl.SyclDevice("cpu")
    if device.max_compute_units < 2:
        pytest.skip("a device of one unit has no parts")
    return list(device.create_sub_devices(partition=1)[:2])


def test_queues_on_parts_of_devices(parts: list[Any]) -> None:
    queues = [Queue.from_sycl(dpctl.SyclQueue(part)) for part in parts]
    assert queues[0].device != queues[1].device != Device("sycl")
    assert {queue.device.filter for queue in queues} == {Device("sycl").filter}
    assert Queue.from_sycl(dpctl.SyclQueue(parts[0])).device == queues[0].device
    assert len(isthmus.devices("sycl")) == len({*isthmus.devices("sycl")} - {queues[0].device})
    first, second = (Buffer(4096, queue=queue) for queue in queues)
    first.copy_from(DATA)
    second.copy_from(first)
    assert second.tobytes() == DATA.tobytes()


def test_parts_are_no_devices_by_themselves(parts: list[Any]) -> None:
    with pytest.raises(ValueError, match="sub-device"):
        Device.from_sycl(parts[0])


# -- processes


def run(code: str, **environment: str) -> str:
    """The output of a new interpreter, which must succeed."""
    variables = {key: text for key, text in os.environ.items() if key not in SET_BY_ISTHMUS}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=variables | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Set in this process because the drivers were opened; child processes must not inherit it.
SET_BY_ISTHMUS = {"OCL_ICD_FILENAMES"}

USE = """
buffer = isthmus.Buffer(4096, kind="shared", queue=isthmus.Queue("sycl"))
buffer.fill(3)
assert bytes(dpctl.memory.as_usm_memory(buffer)) == bytes([3]) * 4096
"""


def test_import_orders() -> None:
    first = "import isthmus; isthmus.devices('opencl'); import dpctl, dpctl.memory\n"
    by_variable = "import dpctl, dpctl.memory, isthmus\n"
    beside = "import isthmus; isthmus.devices('sycl'); import dpnp, dpctl, dpctl.memory, pyopencl\n"
    library = opencl_library()
    assert run(first + USE) == ""
    assert run(by_variable + USE, OCL_ICD_FILENAMES=library) == ""
    assert run(beside + USE) == ""


@pytest.mark.parametrize("between", ["", "isthmus.devices()", "isthmus.devices('opencl')"])
def test_dpctl_used_too_early_is_reported(between: str) -> None:
    code = f"""if True:
        import dpctl
        if any("Intel" in each.vendor for each in dpctl.get_devices()):
            raise SystemExit  # a system that has the runtime for all
        import isthmus
        {between}
        try:
            isthmus.Device("sycl")
        except isthmus.DeviceNotFoundError as refused:
            assert "OCL_ICD_FILENAMES=" in str(refused), refused
        else:
            raise AssertionError("dpctl lists no such device")
        assert "OCL_ICD_FILENAMES=" in dict(isthmus.absent())["sycl"]"""
    run(code)


def test_dpctl_that_is_imported_first_and_used_later() -> None:
    run("import dpctl, isthmus; assert isthmus.Device('sycl').platform.vendor; dpctl.SyclQueue()")


@pytest.mark.parametrize("late", ["", "del buffer, queue", "queue = None"])
def test_exits_with_work_in_flight(late: str) -> None:
    code = f"""if True:
        import isthmus
        queue = isthmus.Queue("sycl")
        import dpctl, dpctl.memory
        buffer = isthmus.Buffer(256 << 20, queue=queue)
        shared = dpctl.memory.as_usm_memory(isthmus.Buffer(1 << 20, queue=queue))
        gate = isthmus.Event()
        for value in range(4):
            buffer.fill(value, blocking=False)
        buffer.fill(7, blocking=False, after=gate)
        {late}"""
    assert run(code) == ""


def test_what_is_held_back_ends_with_the_process() -> None:
    code = """if True:
        import ctypes, isthmus
        queue = isthmus.Queue("sycl")
        buffer = isthmus.Buffer(1 << 20, queue=queue)
        gate = isthmus.Event()
        late = [buffer.fill(1, blocking=False, after=gate) for _ in range(400)]
        gate.complete()
        ctypes.CDLL(None).exit(0)"""
    for _ in range(4):
        run(code)


def test_a_forked_child_uses_none_of_it() -> None:
    code = """if True:
        import os, isthmus
        queue = isthmus.Queue("sycl")
        buffer = isthmus.Buffer(64, kind="shared", queue=queue)
        child = os.fork()
        if child == 0:
            try:
                buffer.fill(1)
            except isthmus.ForkedError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        buffer.fill(2)"""
    assert run(code) == ""


# -- DLPack ----------------------------------------------------------------------------------------

ONEAPI = 14


@pytest.mark.parametrize("kind", CLASSES)
def test_dlpack_to_dpnp(kind: str) -> None:
    buffer = Buffer(DATA.nbytes, kind=kind, queue=Queue("sycl"))
    buffer.copy_from(DATA)
    number = dpctl.get_devices().index(dpctl.SyclQueue().sycl_device)
    if kind == "device":
        assert buffer.__dlpack_device__() == (ONEAPI, number)
    capsule = buffer.__dlpack__(dl_device=(ONEAPI, number), max_version=(1, 0))
    del capsule
    array = dpt.from_dlpack(buffer, device=(ONEAPI, number))
    assert array.usm_type == kind
    assert dpt.asnumpy(array).tobytes() == DATA.tobytes()
    array[:] = 3
    array.sycl_queue.wait()
    assert buffer.tobytes() == bytes([3]) * DATA.nbytes


@pytest.mark.parametrize("kind", CLASSES)
def test_dlpack_of_dpnp(kind: str) -> None:
    array = dpt.asarray(np.arange(1000, dtype="f4"), usm_type=kind)
    for given in (array, array.__dlpack__(), array.__dlpack__(max_version=(1, 0))):
        buffer = Buffer.from_dlpack(given)
        assert (buffer.kind, buffer.nbytes) == (kind, 4000)
        assert buffer.device.backend == "sycl"
        assert np.array_equal(buffer.to_numpy().view("f4"), np.arange(1000))
    address = buffer.ptr
    del array, given
    gc.collect()
    assert buffer.ptr == address
    assert np.array_equal(buffer.to_numpy().view("f4"), np.arange(1000))


def test_dlpack_orders(theirs: Any) -> None:
    buffer = Buffer(16 * MIB, queue=Queue("sycl"))
    for value in range(5):
        buffer.fill(value, blocking=False)
        buffer.__dlpack__(stream=theirs, dl_device=buffer.__dlpack_device__())
        out = dm.MemoryUSMHost(16 * MIB, queue=theirs)
        view = as_usm_memory(buffer)
        theirs.memcpy(out, dm.as_usm_memory(view), 16 * MIB)
        assert (np.asarray(memoryview(out)) == value).all()


@pytest.mark.parametrize(
    "where", [(ONEAPI, 1 << 20), (ONEAPI, -1), (15, 0), (2, 0)], ids=lambda where: str(where)
)
def test_dlpack_to_a_missing_device(where: Any) -> None:
    buffer = Buffer(64, queue=Queue("sycl"))
    with pytest.raises((BufferError, ValueError)):
        buffer.__dlpack__(dl_device=where)


def test_dlpack_of_another_context() -> None:
    context = Context(Device("sycl"))
    buffer = Buffer(64, queue=Queue(context))
    with pytest.raises(BufferError, match="default"):
        buffer.__dlpack_device__()
    with pytest.raises(TypeError, match="SyclQueue"):
        Buffer(64, queue=Queue("sycl")).__dlpack__(stream=5)


def test_foreign_memory_with_a_copy_in_flight_is_not_freed() -> None:
    from isthmus.compat.rmm.pylibrmm._endpoints import memory_at

    theirs, queue, gate = dm.MemoryUSMDevice(DATA.nbytes), Queue("sycl"), Event()
    theirs.copy_from_host(DATA)
    out = Buffer(DATA.nbytes, queue=queue)
    passing = Buffer.adopt(theirs._pointer, DATA.nbytes, queue=queue)
    out.copy_from(passing, blocking=False, after=gate)
    del passing
    try:
        taken = memory_at(theirs._pointer, DATA.nbytes, Device("sycl").default_queue)
    finally:
        gate.complete()
    assert isinstance(taken, Buffer)
    assert taken.tobytes() == out.tobytes() == DATA.tobytes()
