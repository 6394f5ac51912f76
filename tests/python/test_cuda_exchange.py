# SPDX-License-Identifier: Apache-2.0
"""Exchange of CUDA streams and memory: DLPack, __cuda_array_interface__, __cuda_stream__.

The tests do not request the handle of the default queue, because later tests would then find it
exported.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import filled, has_cuda, noise, until

import isthmus
from isthmus import Buffer, Device, Event, Queue, low_level
from isthmus.low_level.endpoint import endpoint_at
from isthmus.memory import live

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not has_cuda(), reason="no CUDA driver")
DATA = noise(4096)


@pytest.fixture
def queue() -> Queue:
    return Queue("cuda:0")


class Stranger:
    """Another library in the process, with a stream and work that Isthmus does not know."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL(os.environ.get("ISTHMUS_CUDA_LIBRARY") or "libcuda.so.1")
        current, stream = ctypes.c_void_p(), ctypes.c_void_p()
        Queue("cuda:0")
        assert self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(current), 0) == 0
        assert self.cuda.cuCtxSetCurrent(current) == 0
        assert self.cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
        self.stream = stream.value or 0
        self.last = ctypes.c_void_p()
        assert self.cuda.cuEventCreate(ctypes.byref(self.last), 0) == 0

    def write(self, buffer: Buffer, last: int, stream: int | None = None) -> None:
        """Submits long work to its stream, or another, that leaves `last` in all bytes."""
        on = ctypes.c_void_p(self.stream if stream is None else stream)
        to, nbytes = ctypes.c_uint64(buffer.ptr), ctypes.c_size_t(buffer.nbytes)
        for value in [*range(100, 150), last]:
            assert self.cuda.cuMemsetD8Async(to, ctypes.c_ubyte(value), nbytes, on) == 0
        assert self.cuda.cuEventRecord(self.last, on) == 0

    def read(self, buffer: Buffer) -> set[int]:
        """The values that its stream reads there."""
        got = np.zeros(buffer.nbytes, np.uint8)
        source, to = ctypes.c_uint64(buffer.ptr), ctypes.c_uint64(got.ctypes.data)
        on, nbytes = ctypes.c_void_p(self.stream), ctypes.c_size_t(buffer.nbytes)
        assert self.cuda.cuMemcpyAsync(to, source, nbytes, on) == 0
        self.wait()
        return set(np.unique(got).tolist())

    def wait(self) -> None:
        assert self.cuda.cuStreamSynchronize(ctypes.c_void_p(self.stream)) == 0

    def is_at_it(self) -> bool:
        return bool(self.cuda.cuEventQuery(self.last))

    def leave(self) -> None:
        self.wait()
        assert self.cuda.cuEventDestroy_v2(self.last) == 0
        assert self.cuda.cuStreamDestroy_v2(ctypes.c_void_p(self.stream)) == 0


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    made, before = Stranger(), live_count()
    yield made
    # A stream without an owner must outlive the memory that was used on it.
    assert until(lambda: live_count() <= before)
    made.leave()


def live_count() -> int:
    gc.collect()
    return live()[0]


@pytest.fixture
def foreign(stranger: Stranger) -> int:
    return stranger.stream


@pytest.fixture
def large() -> int:
    """The size in bytes of a buffer that takes the device a while to write."""
    return 1 << 20 if "stand-in" in Device("cuda:0").name else 64 << 20


class Producer:
    """Exports memory as another library would, and records the arguments of the requests."""

    def __init__(self, of: Buffer, **forced: object) -> None:
        self.of, self.forced, self.asked = of, forced, {}

    def __dlpack__(self, **asked: object) -> object:
        self.asked = asked
        return self.of.__dlpack__(**{**asked, **self.forced})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.forced.get("dl_device", self.of.__dlpack_device__())


class Stream:
    """A stream as cuda.core defines it."""

    def __init__(self, told: object, **more: int) -> None:
        self.told = told
        self.__dict__.update(more)

    def __cuda_stream__(self) -> object:
        return self.told


def test_copies_to_an_address_known_to_the_driver_only(queue: Queue, stranger: Stranger) -> None:
    """The host cannot access it; an access as host memory would crash the process."""
    at, ctx, dev = ctypes.c_uint64(), queue.context, queue.device
    assert stranger.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(DATA.nbytes)) == 0
    back = np.zeros_like(DATA)
    assert endpoint_at(at.value, "destination", 8, queue).holder.kind == "device"
    low_level.unsafe_copyto(ctx, dev, at.value, DATA, DATA.nbytes).wait()
    low_level.unsafe_fill(ctx, dev, at.value + 8, 7, 8).wait()
    low_level.unsafe_copyto(ctx, dev, back, at.value, DATA.nbytes).wait()
    assert stranger.cuda.cuMemFree_v2(at) == 0
    assert np.array_equal(back, [*DATA[:8], *[7] * 8, *DATA[16:]])


def test_fills_at_an_address_known_to_the_driver_only(queue: Queue, stranger: Stranger) -> None:
    """The device fills it, even if the caller waits; a fill past the end is an error."""
    at, back = ctypes.c_uint64(), np.zeros(64, np.uint8)
    assert stranger.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(64)) == 0

    def memory(nbytes: int) -> object:
        return (ctypes.c_ubyte * nbytes).from_address(at.value)

    queue.fill(memory(64), 5)
    event = queue.fill(memory(32), 7, blocking=False)
    assert event is not None
    event.wait()
    with pytest.raises(isthmus.OutOfRangeError):
        queue.fill(memory(1 << 20), 1)
    low_level.unsafe_copyto(queue.context, queue.device, back, at.value, 64).wait()
    assert stranger.cuda.cuMemFree_v2(at) == 0
    assert back.tolist() == [7] * 32 + [5] * 32


def test_kinds_and_devices(queue: Queue) -> None:
    assert Buffer(8, kind="device", queue=queue).__dlpack_device__() == (2, 0)
    assert Buffer(8, kind="host", queue=queue).__dlpack_device__() == (1, 0)
    assert Buffer(8, kind="shared", queue=queue).__dlpack_device__() == (1, 0)


@pytest.mark.parametrize(
    ("kind", "device"),
    [("device", (2, 0)), ("shared", (2, 0)), ("shared", (13, 0)), ("host", (3, 0))],
)
@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_there_and_back(
    queue: Queue, kind: str, device: tuple[int, int], max_version: tuple[int, int] | None
) -> None:
    lent = filled(DATA, kind=kind, queue=queue)
    capsule = lent.__dlpack__(dl_device=device, max_version=max_version)
    other = Queue("cuda:0")
    back = Buffer.from_dlpack(capsule, queue=other)
    assert (back.ptr, back.nbytes, back.kind, back.queue) == (lent.ptr, 4096, kind, other)
    back.fill(7, blocking=False)
    assert lent.tobytes() == bytes([7]) * 4096
    before = live()[0]
    lent.free()
    assert back.tobytes() == bytes([7]) * 4096, "through free()"
    del back, capsule
    assert until(lambda: gc.collect() >= 0 and live()[0] < before)


def test_the_producer_receives_the_stream(queue: Queue) -> None:
    lent = filled(DATA, kind="device", queue=queue)
    producer = Producer(lent)
    other = Queue("cuda:0")
    assert Buffer.from_dlpack(producer, queue=other).queue == other
    assert producer.asked == {"stream": other.native_handle, "max_version": (1, 0)}
    assert Buffer.from_dlpack(producer).queue == Device("cuda:0").default_queue
    assert producer.asked["stream"] == 1
    with other:
        assert Buffer.from_dlpack(producer).queue == other


def test_a_consumers_stream_is_ordered_after_pending_work(
    queue: Queue, stranger: Stranger, large: int
) -> None:
    lent = Buffer(large, kind="device", queue=queue)
    for value in range(30):
        lent.fill(value, blocking=False)
    capsule = lent.__dlpack__(stream=stranger.stream)
    assert stranger.read(lent) == {29}
    del capsule


def test_a_consumers_stream_is_ordered_after_host_waits(queue: Queue, stranger: Stranger) -> None:
    gate = Event()
    lent = filled(DATA, kind="device", queue=queue)
    lent.fill(5, after=[gate], blocking=False)
    threading.Timer(0.05, gate.complete).start()
    capsule = lent.__dlpack__(stream=stranger.stream)
    assert stranger.read(lent) == {5}
    del capsule


@pytest.mark.parametrize(
    ("kind", "device"), [("device", (2, 0)), ("shared", (13, 0)), ("host", (3, 0))]
)
@pytest.mark.parametrize("way", ["tobytes", "copy", "fill", "wait", "dlpack"])
def test_operations_wait_for_the_consumers_work(
    queue: Queue, stranger: Stranger, large: int, kind: str, device: tuple[int, int], way: str
) -> None:
    lent = Buffer(large, kind=kind, queue=queue)
    lent.fill(1)
    capsule = lent.__dlpack__(stream=stranger.stream, dl_device=device)
    stranger.write(lent, 8)
    got = Buffer(large, kind="host", queue=Queue("cuda:0"))
    if way == "tobytes":
        got.copy_from(lent.tobytes())
    elif way == "copy":
        got.queue.copy(got, lent, blocking=False)
    elif way == "fill":
        lent.fill(8, blocking=False)
        got.copy_from(lent)
    elif way == "wait":
        lent.wait()
        assert not stranger.is_at_it()
        got.copy_from(lent)
    else:
        got.copy_from(np.from_dlpack(Producer(lent, dl_device=(1, 0), stream=None)))
    assert set(np.unique(np.asarray(got)).tolist()) == {8}
    del capsule


@pytest.mark.parametrize("given_back", [False, True])
def test_an_exported_buffer_lives_until_the_consumers_work_ended(
    queue: Queue, stranger: Stranger, large: int, given_back: bool
) -> None:
    before = live()[0]
    lent = Buffer(large, kind="device", queue=queue)
    capsule = lent.__dlpack__(stream=stranger.stream)
    stranger.write(lent, 8)
    if given_back:
        del capsule
        lent.free()
    else:
        lent.free()
        del capsule
    seen = live()[0]
    assert seen == before + 1 or not stranger.is_at_it()
    stranger.wait()
    assert until(lambda: gc.collect() >= 0 and live()[0] == before)


@pytest.mark.parametrize("kind", ["device", "shared", "host"])
@pytest.mark.parametrize("of", ["default", "own"])
def test_what_the_producer_was_at_comes_first(
    queue: Queue, stranger: Stranger, large: int, kind: str, of: str
) -> None:
    lent = Buffer(large, kind=kind, queue=queue)
    lent.fill(1)
    device = {"device": (2, 0), "shared": (13, 0), "host": (3, 0)}[kind]
    other = Queue.from_handle(stranger.stream, "cuda:0")
    view = isthmus.Buffer.adopt(lent.ptr, large, queue=other, owner=lent)
    stranger.write(lent, 8)
    producer = Producer(view, dl_device=device)
    to = Device("cuda:0").default_queue if of == "default" else Queue("cuda:0")
    taken = Buffer.from_dlpack(producer, queue=to)
    got = Buffer(large, kind="host", queue=Queue("cuda:0"))
    got.queue.copy(got, taken)
    assert set(np.unique(np.asarray(got)).tolist()) == {8}
    if kind != "device":
        assert set(np.unique(np.asarray(taken)).tolist()) == {8}


def test_the_stream_of_the_array_interface_is_ordered_after_pending_work(
    queue: Queue, stranger: Stranger, large: int
) -> None:
    lent = Buffer(large, kind="device", queue=queue)
    other = Queue("cuda:0")
    for value in range(30):
        other.fill(lent, value, blocking=False)
    on = lent.__cuda_array_interface__["stream"]
    assert stranger.cuda.cuStreamSynchronize(ctypes.c_void_p(on)) == 0
    assert stranger.read(lent) == {29}


@pytest.mark.parametrize("stream", [None, 1])
def test_the_default_stream(queue: Queue, stranger: Stranger, large: int, stream: int) -> None:
    lent = Buffer(large, kind="device", queue=queue)
    lent.fill(1, blocking=False)
    capsule = lent.__dlpack__(stream=stream)
    stranger.write(lent, 8, stream=1)
    assert set(np.unique(lent.to_numpy()).tolist()) == {8}
    del capsule


def test_no_order(queue: Queue) -> None:
    gate = Event()
    lent = filled(DATA, kind="device", queue=queue)
    lent.fill(5, after=[gate], blocking=False)
    capsule = lent.__dlpack__(stream=-1)  # waits for nothing
    queue.close()
    again = lent.__dlpack__(stream=-1)
    gate.complete()
    del capsule, again


@pytest.mark.parametrize(
    ("stream", "message"),
    [(0, "pass 1"), ("x", "integer"), (-2, "stream")],
)
def test_streams_that_are_none(queue: Queue, stream: object, message: str) -> None:
    lent = filled(DATA, kind="device", queue=queue)
    before = live()[0]
    with pytest.raises((BufferError, TypeError, ValueError), match=message):
        lent.__dlpack__(stream=stream)
    assert live()[0] == before


@pytest.mark.parametrize(
    ("kind", "device"),
    [
        ("device", (13, 0)),
        ("device", (2, 7)),
        ("host", (2, 0)),
        ("shared", (3, 0)),
        ("device", (14, 0)),
        ("device", (1, 1)),
    ],
)
def test_devices_that_cannot_use_it(queue: Queue, kind: str, device: tuple[int, int]) -> None:
    with pytest.raises(BufferError, match=r"cannot be exported to device"):
        Buffer(8, kind=kind, queue=queue).__dlpack__(dl_device=device)


@pytest.mark.parametrize("device", [(2,), 3, (2, 0, 1), "xy", (2, 1 << 40)])
def test_devices_that_are_none(queue: Queue, device: object) -> None:
    with pytest.raises((BufferError, TypeError)):
        Buffer(8, kind="device", queue=queue).__dlpack__(dl_device=device)


def test_copies(queue: Queue) -> None:
    lent = filled(DATA, kind="device", queue=queue)
    on_host = Producer(lent, dl_device=(1, 0), stream=None)
    assert (np.from_dlpack(on_host) == DATA).all()
    with pytest.raises(BufferError, match="without a copy"):
        lent.__dlpack__(dl_device=(1, 0), copy=False)
    copied = Buffer.from_dlpack(lent.__dlpack__(copy=True))
    assert copied.ptr != lent.ptr
    lent.fill(0)
    assert copied.tobytes() == DATA.tobytes()


def test_read_only(queue: Queue) -> None:
    source = filled(DATA, kind="device", queue=queue)
    lent = Buffer.adopt(source.ptr, 4096, queue=queue, owner=source, read_only=True)
    assert Buffer.from_dlpack(lent.__dlpack__(max_version=(1, 0))).read_only
    with pytest.raises(BufferError, match="read-only"):
        lent.__dlpack__()


def test_empty(queue: Queue) -> None:
    assert Buffer.from_dlpack(Buffer(0, kind="device", queue=queue).__dlpack__()).nbytes == 0


def test_a_queue_of_another_device(queue: Queue) -> None:
    lent = Buffer(8, kind="device", queue=queue)
    with pytest.raises(BufferError, match=r"device \(2, 0\) does not belong to"):
        Buffer.from_dlpack(lent, queue=Queue("host"))


def test_a_producer_with_memory_of_another_device(queue: Queue) -> None:
    lent = Buffer(8, kind="shared", queue=queue)

    class Liar(Producer):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    with pytest.raises(BufferError, match="which is not the device of"):
        Buffer.from_dlpack(Liar(lent, dl_device=(1, 0), stream=None))


def test_array_interface(queue: Queue) -> None:
    lent = filled(DATA, kind="device", queue=queue)
    told = lent.__cuda_array_interface__
    assert told == {
        "data": (lent.ptr, False),
        "shape": (4096,),
        "strides": None,
        "typestr": "|u1",
        "version": 3,
        "stream": queue.native_handle,
    }
    assert not hasattr(Buffer(8, kind="host", device="host"), "__cuda_array_interface__")
    lent.free()
    with pytest.raises(isthmus.ClosedError):
        _ = lent.__cuda_array_interface__


class Array:
    """An array as Numba defines it."""

    def __init__(self, of: Buffer, **changes: object) -> None:
        told = {**of.__cuda_array_interface__, "shape": (1024,), "typestr": "<f4", "stream": None}
        self.of, self.__cuda_array_interface__ = of, told | changes


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("stream", [None, 1, "foreign"])
def test_arrays_of_other_libraries(
    queue: Queue, foreign: int, version: int, stream: object
) -> None:
    source = filled(DATA, kind="device", queue=queue)
    queue.wait()
    on = foreign if stream == "foreign" else stream
    array = Array(source, version=version, stream=on)
    target = Buffer(4096, kind="device", queue=queue)
    target.copy_from(array)
    assert target.tobytes() == DATA.tobytes()
    target.fill(3)
    target.copy_to(array)
    assert source.tobytes() == bytes([3]) * 4096
    memory = isthmus.memory.as_usm_memory(array)
    assert (memory.ptr, memory.nbytes, memory.kind) == (source.ptr, 4096, "device")
    default = Device("cuda:0").default_queue
    assert memory.queue == (Queue.from_handle(foreign, "cuda:0") if on == foreign else default)


def test_arrays_without_elements(queue: Queue) -> None:
    source = filled(DATA, kind="device", queue=queue)
    target = Buffer(4096, kind="device", queue=queue)
    target.copy_from(Array(source, shape=(0,), data=(0, False)))
    with pytest.raises(isthmus.OutOfRangeError):
        target.copy_from(Array(source, shape=(0,), data=(0, False)), nbytes=1)


def test_exceptions_of_a_property_are_reported(queue: Queue) -> None:
    class Refusing:
        @property
        def __cuda_array_interface__(self) -> object:
            raise RuntimeError("call detach() first")

    with pytest.raises(RuntimeError, match="detach"):
        Buffer(8, kind="device", queue=queue).copy_from(Refusing())


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"copy": np.array([1, 2])}, ValueError),
        ({"max_version": ("1", 0)}, TypeError),
        ({"max_version": ()}, TypeError),
        ({"max_version": (1.5, 0)}, TypeError),
        ({"max_version": (None, None)}, TypeError),
    ],
)
def test_arguments_that_cannot_be(
    queue: Queue, arguments: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Buffer(8, kind="device", queue=queue).__dlpack__(**arguments)


def test_arrays_with_strides(queue: Queue) -> None:
    source = filled(DATA, kind="device", queue=queue)
    target = Buffer(4096, kind="device", queue=queue)
    for strides in ((128, 4), (4, 128)):
        target.copy_from(Array(source, shape=(32, 32), strides=strides))
        assert target.tobytes() == DATA.tobytes()
    for strides in ((256, 4), (128, 8), (128, -4), (130, 4)):
        with pytest.raises(ValueError, match="contiguous"):
            target.copy_from(Array(source, shape=(8, 8), strides=strides))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"version": 1}, ValueError, "2 or 3"),
        ({"stream": 0}, ValueError, "legacy default stream"),
        ({"stream": "x"}, TypeError, "integer"),
        ({"mask": object()}, ValueError, "mask"),
        ({"strides": (1, 2)}, ValueError, "one number for each extent"),
        ({"strides": (1 << 62,), "shape": (1 << 62,)}, ValueError, "exceeds the address space"),
        ({"shape": (1 << 60,)}, ValueError, "exceeds the address space|past the end|lie"),
        ({"typestr": "|O"}, ValueError, "typestr"),
    ],
)
def test_arrays_that_cannot_be(
    queue: Queue, changes: dict[str, object], error: type[Exception], message: str
) -> None:
    array = Array(filled(DATA, kind="device", queue=queue), **changes)
    target = Buffer(4096, kind="device", queue=queue)
    with pytest.raises(error, match=message):
        target.copy_from(array)


def test_streams_of_other_libraries(queue: Queue, foreign: int) -> None:
    version, handle = queue.__cuda_stream__()
    assert (version, handle) == (0, queue.native_handle)
    adopted = Queue.from_stream(queue)
    assert adopted == queue
    assert Queue.from_stream(Stream((0, handle))) == queue
    assert Queue.from_stream(Stream((0, handle)), "cuda:0") == queue
    default = Device("cuda:0").default_queue
    for legacy in (0, 1):
        assert Queue.from_stream(Stream((0, legacy))) == default
        assert Queue.from_stream(Stream((0, legacy), device_index=0)) == default
    torchs = type("Stream", (), {"cuda_stream": handle, "device_index": 0})()
    assert Queue.from_stream(torchs) == queue
    assert Queue.from_stream(Stream((0, foreign))).native_handle == foreign
    cupys = type("Stream", (), {"ptr": handle, "device_id": -1, "__module__": "cupy.cuda"})()
    assert Queue.from_stream(cupys) == queue


def test_a_stream_is_kept_alive(foreign: int) -> None:
    stream = Stream((0, foreign))
    gone: list[int] = []
    stream.guard = type("Guard", (), {"__del__": lambda self: gone.append(1)})()
    adopted = Queue.from_stream(stream)
    del stream
    gc.collect()
    assert not gone
    del adopted
    assert until(lambda: gc.collect() >= 0 and gone == [1])


@pytest.mark.parametrize(
    ("stream", "error", "message"),
    [
        (Stream((1, 5)), ValueError, r"\(0, handle\)"),
        (Stream(5), ValueError, r"\(0, handle\)"),
        (Stream((0, "x")), TypeError, "integer"),
        (object(), TypeError, "__cuda_stream__"),
        (None, TypeError, "__cuda_stream__"),
        (Stream((0, 1), device_index=99), isthmus.DeviceNotFoundError, "cuda:99"),
        (Stream((0, 1), device_index="0"), TypeError, "device_index"),
        (Stream((0, 1), device_index=1 << 40), isthmus.DeviceNotFoundError, "cuda:"),
    ],
)
def test_streams_that_cannot_be(stream: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Queue.from_stream(stream)


def test_the_stream_of_a_destroyed_queue() -> None:
    pool = isthmus.memory.PoolResource("device", "cuda:0")  # the pool remembers the queue
    queue = Queue("cuda:0")
    Buffer(1000, resource=pool, queue=queue).free()
    handle = queue.native_handle
    assert Queue.from_handle(handle, "cuda:0") == queue
    del queue
    gc.collect()
    with pytest.raises(isthmus.ClosedError, match="no longer exists"):
        Queue.from_handle(handle, "cuda:0")


def test_queues_that_are_no_streams() -> None:
    with pytest.raises(TypeError, match="not a CUDA stream"):
        Queue("host").__cuda_stream__()


def test_memory_of_another_device_is_exported_on_its_own_queue(queue: Queue) -> None:
    if len(isthmus.devices("cuda")) < 2:
        pytest.skip("one card")
    memory = Buffer(DATA.nbytes, queue=queue)
    memory.copy_from(DATA)
    view = memory.on_queue(Queue("cuda:1"))
    assert (view.to_numpy() == DATA).all()
    for lend in (
        lambda: view.__dlpack__(),
        lambda: view.__dlpack_device__(),
        lambda: view.__cuda_array_interface__,
        lambda: view.__sycl_usm_array_interface__,
    ):
        with pytest.raises(BufferError, match=r"cuda:gpu:0.*cuda:gpu:1.*on_queue\(queue\)"):
            lend()
    assert view.on_queue(queue).__cuda_array_interface__["data"] == (memory.ptr, False)
    with pytest.raises(isthmus.WrongContextError, match="cuda:gpu:0"):
        Buffer.adopt(memory.ptr, memory.nbytes, queue=Queue("cuda:1"))
