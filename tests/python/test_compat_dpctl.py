# SPDX-License-Identifier: Apache-2.0
"""isthmus.compat.dpctl.memory: dpctl's behaviour case by case, without its faults."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import noise, until

import isthmus

if os.environ.get("ISTHMUS_ALLOW_NO_OPENCL") == "1":
    pytest.importorskip("dpctl")
import isthmus.compat.dpctl.memory as compat  # isort: skip  # before dpctl
import dpctl
import dpctl.memory as theirs
import dpnp.tensor as dpt

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("device", "shared", "host")
CLASSES = dict(
    zip(KINDS, (compat.MemoryUSMDevice, compat.MemoryUSMShared, compat.MemoryUSMHost), strict=True)
)
DATA = noise(4096)
MIB = 1 << 20
HERE = Path(__file__).parent


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["out_of_order", "in_order"])
def queue(request: pytest.FixtureRequest) -> Any:
    return dpctl.SyclQueue(property=["in_order"] if request.param == "in_order" else [])


class Foreign:
    def __init__(self, interface: Any) -> None:
        self.__sycl_usm_array_interface__ = interface


def filled(made: Any) -> Any:
    made.copy_from_host(DATA[: made.nbytes])
    return made


def held_bytes(kind: str) -> int:
    """The bytes of the blocks in use, plus the rest of their chunks."""
    pool = compat.pool(kind)
    assert pool is not None
    pool.trim()
    return pool.held_bytes


def all_is_free() -> bool:
    return all(held_bytes(kind) == 0 for kind in KINDS)


@pytest.fixture(autouse=True)
def pools_are_free_again(no_leak: None) -> Iterator[None]:
    """What a test leaves free in the pools is no leak; what it leaves in use is."""
    yield
    gc.collect()
    until(all_is_free)


# -- construction ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 64, np.int64(100), True, 3 * MIB])
def test_new_memory(kind: str, size: Any) -> None:
    made = CLASSES[kind](size)
    assert isinstance(made, getattr(theirs, f"MemoryUSM{kind.capitalize()}"))
    assert made.nbytes == made.size == len(made) == int(size)
    assert made.get_usm_type() == kind
    assert made.get_usm_type_enum() == 1 + KINDS.index(kind)
    assert made.reference_obj is made
    assert made.sycl_context == made.sycl_queue.sycl_context
    assert sys.getsizeof(made) >= int(size)
    assert kind in repr(made)
    assert hex(made._pointer) in repr(made)


@pytest.mark.parametrize(
    ("arguments", "named", "error"),
    [
        ((0,), {}, ValueError),
        ((-1,), {}, ValueError),
        ((1 << 63,), {}, OverflowError),
        ((1 << 62,), {}, compat.USMAllocationError),
        ((1 << 45,), {}, theirs.USMAllocationError),
        ((64,), {"alignment": 3}, compat.USMAllocationError),
        ((64,), {"alignment": 24}, ValueError),
        ((64,), {"alignment": 1.5}, TypeError),
        ((64,), {"alignment": None}, TypeError),
        ((64,), {"queue": "cpu"}, TypeError),
        ((64,), {"queue": 5}, TypeError),
        ((64,), {"kind": "host"}, TypeError),
        ((64, 64), {}, TypeError),
        ((), {}, TypeError),
        ((1.5,), {}, ValueError),
        (("64",), {}, ValueError),
        ((None,), {}, ValueError),
        ((b"64",), {}, ValueError),
        ((np.zeros(3),), {}, ValueError),
        ((Foreign(()),), {}, ValueError),
    ],
)
def test_bad_constructors(kind: str, arguments: Any, named: Any, error: type) -> None:
    with pytest.raises(error):
        CLASSES[kind](*arguments, **named)
    assert held_bytes(kind) == 0


def test_error_messages(kind: str) -> None:
    with pytest.raises(compat.USMAllocationError, match=kind):
        CLASSES[kind](1 << 45)
    with pytest.raises(ValueError, match="24"):
        CLASSES[kind](64, alignment=24)
    with pytest.raises(ValueError, match="-5"):
        CLASSES[kind](-5)
    assert issubclass(compat.USMAllocationError, (MemoryError, theirs.USMAllocationError))


@pytest.mark.parametrize("alignment", [-1, 0, 1, 8, 64, 4096, 1 << 21])
def test_alignment(kind: str, alignment: int) -> None:
    made = CLASSES[kind](100, alignment=alignment)
    assert made._pointer % max(alignment, 1) == 0


def test_the_queue_is_the_argument(kind: str, queue: Any) -> None:
    made = CLASSES[kind](64, queue=queue)
    assert made.sycl_queue is queue
    assert CLASSES[kind](64).sycl_queue is CLASSES[kind](32).sycl_queue


@pytest.mark.parametrize("given", [False, True])
def test_the_same_kind_is_the_same_memory_copy_or_not(kind: str, given: bool) -> None:
    made = filled(CLASSES[kind](64))
    view = CLASSES[kind](made, copy=given)
    assert view._pointer == made._pointer
    assert view.reference_obj is None
    del made
    gc.collect()
    assert view.tobytes() == DATA[:64].tobytes()


@pytest.mark.parametrize("to", KINDS)
def test_another_kind_wants_a_copy(kind: str, to: str) -> None:
    if to == kind:
        pytest.skip("the same kind is the same memory")
    made = filled(CLASSES[kind](64))
    with pytest.raises(ValueError, match=kind):
        CLASSES[to](made)
    copied = CLASSES[to](made, copy=True)
    assert copied._pointer != made._pointer
    assert copied.tobytes() == made.tobytes()


def test_their_memory_is_accepted_too(kind: str) -> None:
    given = getattr(theirs, f"MemoryUSM{kind.capitalize()}")(64)
    given.copy_from_host(DATA[:64])
    view = CLASSES[kind](given)
    assert view._pointer == given._pointer
    assert view.reference_obj is None
    assert view.sycl_queue == given.sycl_queue
    del given
    gc.collect()
    view.copy_from_host(DATA[64:128])
    assert view.tobytes() == DATA[64:128].tobytes()


def test_an_object_with_the_interface_is_kept(kind: str) -> None:
    array = dpt.empty(100, dtype="f4", usm_type=kind)
    view = CLASSES[kind](array)
    assert view.reference_obj is array
    assert CLASSES[kind](view).reference_obj is array
    assert view.nbytes == 400
    view.memset(0)
    assert not dpt.asnumpy(array).any()
    assert type(compat.as_usm_memory(array)) is CLASSES[kind]


def test_python_subclasses(kind: str) -> None:
    class Named(CLASSES[kind]):  # type: ignore[misc]
        name = "n"

    made = Named(64, alignment=64)
    made.label = 5
    assert (made.nbytes, made.name, made.label) == (64, "n", 5)
    filled(made)
    assert bytes(made) == DATA[:64].tobytes()


# -- copies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 1000, 3 * MIB + 5])
def test_round_trips(kind: str, queue: Any, size: int) -> None:
    data = noise(size)
    made = CLASSES[kind](size, queue=queue)
    made.copy_from_host(data)
    assert np.array_equal(made.copy_to_host(), data)
    into = np.zeros(size + 3, np.uint8)
    assert made.copy_to_host(into) is into
    assert np.array_equal(into[:size], data)
    assert not into[size:].any()
    other = CLASSES["device"](size + 1)
    other.copy_from_device(made)
    assert other.tobytes()[:size] == data.tobytes() == bytes(made)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (np.zeros(64, np.int32), ValueError),
        (np.zeros((8, 8), np.uint8), ValueError),
        (np.zeros(128, np.uint8)[::2], ValueError),
        (np.zeros(65, np.uint8), ValueError),
        (b"", IndexError),
        (None, IndexError),
        ("text", TypeError),
        ([1, 2], TypeError),
    ],
)
def test_bad_sources(kind: str, given: Any, error: type) -> None:
    made = filled(CLASSES[kind](64))
    with pytest.raises(error):
        made.copy_from_host(given)
    assert made.tobytes() == DATA[:64].tobytes()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (np.zeros(64, np.int32), ValueError),
        (np.zeros((8, 8), np.uint8), ValueError),
        (np.zeros(128, np.uint8)[::2], ValueError),
        (np.zeros(63, np.uint8), ValueError),
        (bytes(64), BufferError),
        (5, TypeError),
    ],
)
def test_bad_destinations(kind: str, given: Any, error: type) -> None:
    with pytest.raises(error):
        filled(CLASSES[kind](64)).copy_to_host(given)


def test_read_only_destinations() -> None:
    given = np.zeros(64, np.uint8)
    given.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        CLASSES["host"](64).copy_to_host(given)


def test_short_and_read_only_sources(kind: str) -> None:
    made = filled(CLASSES[kind](64))
    made.copy_from_host(b"ab")
    assert made.tobytes() == b"ab" + DATA[2:64].tobytes()


def test_bad_device_sources(kind: str) -> None:
    made = filled(CLASSES[kind](64))
    for given in (np.zeros(3), 5, None, CLASSES[kind](65)):
        with pytest.raises(ValueError):
            made.copy_from_device(given)
    with pytest.raises((TypeError, ValueError)):
        made.copy_from_device(Foreign([]))
    assert made.tobytes() == DATA[:64].tobytes()


@pytest.mark.parametrize(("value", "byte"), [(0, 0), (7, 7), (256, 0), (300, 44), (1.5, 1)])
def test_memset(kind: str, value: Any, byte: int) -> None:
    made = filled(CLASSES[kind](100))
    made.memset(val=value)
    assert made.tobytes() == bytes([byte]) * 100
    made.memset()
    assert made.tobytes() == bytes(100)


@pytest.mark.parametrize(
    ("value", "error"), [(-1, OverflowError), (65536, OverflowError), ("1", TypeError)]
)
def test_bad_memset(kind: str, value: Any, error: type) -> None:
    with pytest.raises(error):
        CLASSES[kind](16).memset(value)


def test_copies_of_objects(kind: str) -> None:
    made = filled(CLASSES[kind](64))
    for other in (
        copy.copy(made),
        copy.deepcopy(made),
        *(pickle.loads(pickle.dumps(made, protocol)) for protocol in (2, 4, 5)),
    ):
        assert type(other) is type(made)
        assert other._pointer != made._pointer
        assert other.tobytes() == made.tobytes()
    buffers: list[Any] = []
    pickled = pickle.dumps(made, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert pickle.loads(pickled, buffers=buffers).tobytes() == made.tobytes()


def test_host_views(kind: str) -> None:
    made = filled(CLASSES[kind](64))
    if kind == "device":
        with pytest.raises(TypeError):
            memoryview(made)
        return
    view = memoryview(made)
    assert (view.format, view.ndim, view.readonly) == ("B", 1, False)
    del made
    gc.collect()
    assert view.tobytes() == DATA[:64].tobytes()


# -- wherever dpctl accepts its own memory ---------------------------------------------------------


def test_dpctl_takes_it(kind: str, queue: Any) -> None:
    made, other = CLASSES[kind](4096, queue=queue), CLASSES["device"](4096, queue=queue)
    queue.memcpy(made, DATA, 4096)
    queue.memcpy_async(other, made, 4096, [queue.submit_barrier()]).wait()
    queue.prefetch(other)
    assert other.tobytes() == DATA.tobytes()
    array = dpt.usm_ndarray(1024, dtype="f4", buffer=made)
    assert array.usm_type == kind
    assert array.sycl_queue == queue
    array[:] = 2
    assert np.array_equal(made.copy_to_host().view(np.float32), np.full(1024, 2, np.float32))


def test_arrays_over_it_can_be_written(kind: str) -> None:
    made = CLASSES[kind](64)
    assert made.__sycl_usm_array_interface__["data"] == (made._pointer, False)
    dpt.asarray(made)[:] = 9
    assert made.tobytes() == bytes([9]) * 64


def capi(name: str, result: Any) -> Any:
    capsule = compat.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.PYFUNCTYPE(result, ctypes.py_object)(address)


def test_functions_of_c(kind: str) -> None:
    made = CLASSES[kind](100)
    assert capi("Memory_GetUsmPointer", ctypes.c_void_p)(made) == made._pointer
    assert capi("Memory_GetOpaquePointer", ctypes.c_void_p)(made)
    assert capi("Memory_GetNumBytes", ctypes.c_size_t)(made) == 100
    assert capi("Memory_GetQueueRef", ctypes.c_void_p)(made) == made.sycl_queue.addressof_ref()


@pytest.mark.parametrize(
    "tell",
    [
        lambda made: made._pointer,
        lambda made: made.__sycl_usm_array_interface__,
        capi("Memory_GetUsmPointer", ctypes.c_void_p),
        capi("Memory_GetOpaquePointer", ctypes.c_void_p),
        lambda made: made.sycl_queue.prefetch(made),
    ],
)
def test_exposed_memory_returns_after_the_queue(tell: Any) -> None:
    """Once its address was exposed, memory is released only after a barrier on the queue."""
    queue = dpctl.SyclQueue()
    size = 64 * MIB
    big = [CLASSES["device"](size, queue=queue) for _ in range(2)]
    for each in big:
        each.memset(1)
    addresses = [each._pointer for each in big]
    made = CLASSES["device"](4 * MIB, queue=queue)
    tell(made)
    events = [queue.memcpy_async(big[0], big[1], size) for _ in range(8)]
    address = made._pointer
    del made
    next_one = CLASSES["device"](4 * MIB, queue=queue)
    running = events[-1].execution_status != dpctl.event_status_type.complete
    if running:
        assert next_one._pointer != address
    dpctl.SyclEvent.wait_for(events)
    assert [each._pointer for each in big] == addresses


@pytest.mark.parametrize("kind", KINDS)
def test_exposed_memory_is_reused_in_a_loop(queue: Any, kind: str) -> None:
    """A library thread polls the queue for it; a loop that allocates faster waits for that."""
    times, size = 1000, 64 * MIB
    device = isthmus.Device("sycl")
    pool = isthmus.memory.PoolResource(kind, device)
    counted = isthmus.memory.StatisticsResource(isthmus.memory.PoolResource(kind, device))
    for resource in (pool, counted):
        with isthmus.using(resource):
            for _ in range(times):
                assert CLASSES[kind](size, queue=queue)._pointer
        assert resource.held_bytes <= 300 * size
    assert until(lambda: pool.snapshot().live_bytes == 0)
    provider = isthmus.memory.ProviderResource(kind, device)
    with isthmus.using(isthmus.memory.LimitResource(provider, 3 * size)):
        for _ in range(100):
            assert CLASSES[kind](size, queue=queue)._pointer


def test_unexposed_memory_is_reused_at_once() -> None:
    first = CLASSES["shared"](1024)
    first.memset(1)
    address = repr(first).split()[-1]  # which exposes the address to people only
    del first
    assert repr(CLASSES["shared"](1024)).split()[-1] == address


def test_work_submitted_to_dpctl_precedes_our_copies(queue: Any) -> None:
    size = 32 * MIB
    made = CLASSES["device"](size, queue=queue)
    made.memset(1)
    source = CLASSES["device"](size, queue=queue)
    for value in range(4):
        source.memset(value)
        event = queue.memcpy_async(made, source, size)
        copied = made.copy_to_host()
        assert event.execution_status == dpctl.event_status_type.complete
        assert (copied == value).all()


def test_their_own_tests_pass() -> None:
    """All tests that dpctl ships for its memory, its queues' copies, and kernels on it."""
    names = ("sycl_usm", "sycl_queue_memcpy", "sycl_kernel_submit", "raw_kernel_arg", "sycl_event")
    files = [f"dpctl/tests/test_{name}.py" for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "dpctl_with_compat", "-p", "no:xdist",
         "-p", "no:cacheprovider", "--override-ini=addopts=", *files],
        env={**os.environ, "PYTHONPATH": str(HERE)},
        cwd=Path(dpctl.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


# -- dpctl's faults --------------------------------------------------------------------------------


def test_no_constructor_leaks(kind: str) -> None:
    def each_way() -> None:
        made = CLASSES[kind](MIB)
        CLASSES[kind](made)
        CLASSES[kind](made, copy=True)
        other = CLASSES["host" if kind != "host" else "device"](made, copy=True)
        compat.as_usm_memory(Foreign(other.__sycl_usm_array_interface__))
        compat.as_usm_memory(dpt.usm_ndarray(MIB, dtype="u1", buffer=made))
        for bad in (0, 1 << 45):
            with pytest.raises((ValueError, MemoryError)):
                CLASSES[kind](bad)
        dpctl.SyclQueue().wait()

    for _ in range(20):
        each_way()
    isthmus.memory.as_usm_memory(CLASSES[kind](1)).to_numpy()
    gc.collect()
    assert until(all_is_free)


def test_a_range_past_the_end_is_an_error() -> None:
    made = theirs.MemoryUSMShared(64)
    told = {**made.__sycl_usm_array_interface__, "shape": (1 << 40,)}
    with pytest.raises(ValueError):
        compat.MemoryUSMShared(Foreign(told)).copy_to_host()


def test_a_foreign_context_is_an_error() -> None:
    made = theirs.MemoryUSMShared(64)
    elsewhere = dpctl.SyclContext(dpctl.SyclDevice())
    if elsewhere == made.sycl_context:
        pytest.skip("there is one context only")
    told = {**made.__sycl_usm_array_interface__, "syclobj": elsewhere}
    with pytest.raises(ValueError):
        compat.MemoryUSMShared(Foreign(told))


def test_parts_of_a_device() -> None:
    device = dpctl.SyclDevice("cpu")
    if device.max_compute_units < 2:
        pytest.skip("a device of one unit has no parts")
    parts = device.create_sub_devices(partition=1)[:2]
    queues = [dpctl.SyclQueue(part) for part in parts]
    made = [filled(CLASSES["device"](256, queue=queue)) for queue in queues]
    for part, each in zip(parts, made, strict=True):
        assert each.sycl_device == part
    made[1].memset(3)
    made[0].copy_from_device(made[1])
    assert made[0].tobytes() == bytes([3]) * 256
    del each
    made.clear()
    pools = [compat.pool(kind, queue) for queue in queues for kind in KINDS]
    for pool in pools:
        pool.trim()
    assert not any(pool.held_bytes for pool in pools)


def test_threads() -> None:
    queues = [dpctl.SyclQueue() for _ in range(3)]

    def run(number: int) -> bool:
        for turn in range(100):
            data = np.full(1 + 37 * (number + turn) % 5000, number, np.uint8)
            made = CLASSES[KINDS[turn % 3]](len(data), queue=queues[(number + turn) % 3])
            made.copy_from_host(data)
            if turn % 7 == 0:
                queues[0].prefetch(made)
            other = CLASSES["host"](made, copy=True) if turn % 2 else made
            if other.tobytes() != data.tobytes():
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(16)))


def test_exits_with_work_in_flight() -> None:
    code = """if True:
        import isthmus.compat.dpctl.memory as memory, dpctl
        queue = dpctl.SyclQueue()
        first, second = (memory.MemoryUSMDevice(128 << 20, queue=queue) for _ in range(2))
        events = [queue.memcpy_async(first, second, 128 << 20) for _ in range(4)]
        del first"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_set_resource_takes_precedence() -> None:
    limit = isthmus.memory.LimitResource(compat.pool("shared"), limit_bytes=MIB)
    with isthmus.using(limit):
        made = CLASSES["shared"](MIB // 2)
        with pytest.raises(compat.USMAllocationError):
            CLASSES["shared"](MIB)
    assert made.nbytes == MIB // 2
    del made, limit


def test_another_layout_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from isthmus.compat.dpctl import _layout

    class Moved:
        __file__ = str(tmp_path / "_memory.so")
        _Memory = theirs._memory._Memory

    text = (Path(theirs.__file__).parent / "_memory.pxd").read_text()
    (tmp_path / "_memory.pxd").write_text(text)
    _layout.check(Moved)
    (tmp_path / "_memory.pxd").write_text(text.replace("cdef object refobj", "cdef object owner"))
    with pytest.raises(ImportError, match="owner"):
        _layout.check(Moved)
    (tmp_path / "_memory.pxd").unlink()
    with pytest.raises(ImportError, match="cannot be read"):
        _layout.check(Moved)


# -- use by other libraries ------------------------------------------------------------------------


def in_a_process_of_its_own(code: str, seconds: int = 60) -> None:
    """A hang ends the process; its traceback is in the error."""
    begin = f"import faulthandler; faulthandler.dump_traceback_later({seconds}, exit=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + code], capture_output=True, text=True, timeout=4 * seconds
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_host_tasks_may_release_it() -> None:
    """A barrier submitted there would wait for a lock of SYCL that waits for the task."""
    in_a_process_of_its_own(
        """if True:
        import isthmus.compat.dpctl.memory as compat, dpctl, dpnp.tensor as dpt
        queue = dpctl.SyclQueue(property=["in_order"])
        for _ in range(100):
            made = compat.MemoryUSMDevice(8 << 20, queue=queue)
            array = dpt.usm_ndarray(1 << 20, dtype="f8", buffer=made)
            twice = dpt.add(array, array)
        queue.wait()"""
    )


@pytest.mark.parametrize("order", ["in_order", "out_of_order"])
def test_letting_go_while_another_thread_waits_and_tasks_want_the_lock(order: str) -> None:
    in_a_process_of_its_own(
        f"""if True:
        import isthmus.compat.dpctl.memory as compat, dpctl, threading, time
        queue = dpctl.SyclQueue(property=["in_order"] if {order!r} == "in_order" else [])
        big = [compat.MemoryUSMDevice(32 << 20, queue=queue) for _ in range(2)]
        told = [compat.MemoryUSMDevice(4096, queue=queue) for _ in range(100)]
        addresses = [each._pointer for each in told]
        event = None
        for _ in range(10):
            event = queue.memcpy_async(big[0], big[1], 32 << 20, [event] if event else [])
            event = queue._submit_keep_args_alive((big[0],), [event])
        waiting = threading.Thread(target=queue.wait)
        waiting.start()
        while told:
            time.sleep(0.0005)
            told.pop()
        waiting.join()"""
    )


def test_memory_of_ours_on_their_queue_may_go_in_a_host_task() -> None:
    in_a_process_of_its_own(
        """if True:
        import isthmus, isthmus.memory
        isthmus.devices("sycl")
        import dpctl
        queue = dpctl.SyclQueue(property=["in_order"])
        ours = isthmus.Queue.from_sycl(queue)
        for _ in range(100):
            made = isthmus.memory.MemoryUSMDevice(1 << 20, queue=ours)
            queue._submit_keep_args_alive((made,), [queue.submit_barrier()])
            del made
        queue.wait()"""
    )


def test_many_first_calls_at_once() -> None:
    in_a_process_of_its_own(
        """if True:
        import threading, isthmus.compat.dpctl.memory as compat
        together = threading.Barrier(8)
        made = []
        def run():
            together.wait()
            made.append(compat.MemoryUSMDevice(1 << 20))
        threads = [threading.Thread(target=run) for _ in range(8)]
        for each in threads: each.start()
        for each in threads: each.join()
        assert len({each.sycl_queue for each in made}) == 1
        assert compat.pool().held_bytes >= 8 << 20"""
    )


def test_what_the_collector_makes_meanwhile_is_on_its_own_queue() -> None:
    queues = [dpctl.SyclQueue() for _ in range(2)]
    kept = [CLASSES["device"](64, queue=queue) for queue in queues]

    class Cyclic:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            kept.append(CLASSES["device"](64, queue=queues[1]))

    before = gc.get_threshold()
    try:
        for turn in range(100):
            Cyclic()
            gc.set_threshold(1 + turn % 7)
            assert CLASSES["device"](64, queue=queues[0]).sycl_queue is queues[0]
            gc.set_threshold(*before)
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(kept) > 2


def by_numpy(made: Any) -> Any:
    return np.asarray(memoryview(made))


@pytest.mark.parametrize(
    ("kind", "view"),
    [
        ("device", theirs.MemoryUSMDevice),
        ("device", lambda made: theirs.MemoryUSMDevice(other=made)),
        ("device", theirs.as_usm_memory),
        ("shared", by_numpy),
        ("host", by_numpy),
    ],
)
def test_views_of_other_libraries_prevent_reuse(kind: str, view: Any) -> None:
    queue = dpctl.SyclQueue()
    size = 4 * MIB
    big = [CLASSES["device"](64 * MIB, queue=queue) for _ in range(2)]
    into = CLASSES["device"](size, queue=queue)
    for each in (*big, into):
        each.memset(0)
    made = CLASSES[kind](size, queue=queue)
    made.memset(5)
    busy = [queue.memcpy_async(big[0], big[1], 64 * MIB) for _ in range(8)]
    seen = view(made)
    copied = queue.memcpy_async(into, seen, size, [queue.submit_barrier(busy)])
    del made
    if view is not by_numpy:  # NumPy's memory is kept alive by the caller
        del seen
    next_one = CLASSES[kind](size, queue=queue)
    next_one.memset(9)
    copied.wait()
    assert into.tobytes() == bytes([5]) * size


@pytest.mark.parametrize("keyword", [1, (), None])
def test_keywords_that_are_no_strings(keyword: Any) -> None:
    class Named(CLASSES["shared"]):  # type: ignore[misc]
        pass

    for made_by in (Named, CLASSES["shared"]):
        with pytest.raises(TypeError, match="keywords must be strings"):
            made_by(64, **{keyword: 2})


def test_a_view_by_dpctl_keeps_the_memory(kind: str) -> None:
    made = filled(CLASSES[kind](64))
    view = getattr(theirs, f"MemoryUSM{kind.capitalize()}")(made)
    assert view._pointer == made._pointer
    address = view._pointer
    again = CLASSES[kind](view)
    del made
    gc.collect()
    assert view.copy_to_host().tobytes() == DATA[:64].tobytes()
    del view
    gc.collect()
    assert (again._pointer, again.tobytes()) == (address, DATA[:64].tobytes())


def test_the_import_changes_no_class_of_dpctl() -> None:
    in_a_process_of_its_own(
        """if True:
        import ctypes, isthmus
        isthmus.devices("sycl")
        import dpctl.memory
        names = ["MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"]
        classes = [getattr(dpctl.memory, name) for name in names]
        def slots(cls): # without flags, cached state and the list of subclasses
            return ctypes.string_at(id(cls) + 24, 144) + ctypes.string_at(id(cls) + 184, 144)
        before = [(slots(cls), dict(vars(cls))) for cls in classes]
        import isthmus.compat.dpctl.memory
        assert [(slots(cls), dict(vars(cls))) for cls in classes] == before
        assert [getattr(dpctl.memory, name) for name in names] == classes"""
    )


def test_objects_of_dpctl_cannot_become_ours() -> None:
    class Mine(theirs.MemoryUSMDevice):
        __slots__ = ()

    made = Mine(64)
    with pytest.raises(TypeError):
        made.__class__ = CLASSES["device"]
    with pytest.raises(TypeError):
        CLASSES["device"].nbytes = 5


@pytest.mark.parametrize(
    "given",
    [
        (ctypes.c_ubyte * 64)(*range(64)),
        (ctypes.c_char * 64)(*bytes(range(64))),
        memoryview(bytearray(range(64))).cast("c"),
        np.arange(64) % 2 == 1,
    ],
    ids=["ctypes", "ctypes_char", "char", "bool"],
)
def test_bytes_of_other_names(kind: str, given: Any) -> None:
    made = CLASSES[kind](64)
    made.copy_from_host(given)
    assert made.tobytes() == memoryview(given).tobytes()
    made.memset(0)
    made.copy_to_host(given)
    assert not any(memoryview(given).tobytes())
