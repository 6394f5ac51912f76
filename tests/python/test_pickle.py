# SPDX-License-Identifier: Apache-2.0
"""Pickles preserve contents, kind, alignment and device; unpickling allocates new memory."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from support import filled, is_memory_released, noise

import isthmus
from isthmus import Array, Buffer, Device, Queue, memory
from isthmus.compat import pydotcompute

DATA = noise(10_000)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("place", ["host", "opencl:cpu:0"])
@pytest.mark.parametrize("kind", ["device", "shared", "host"])
def test_round_trip(protocol: int, place: str, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=Queue(place), alignment=512)
    again = pickle.loads(pickle.dumps(source, protocol))
    assert type(again) is Buffer
    assert again.tobytes() == DATA.tobytes()
    assert (again.kind, again.alignment, again.device) == (kind, 512, Device(place))
    assert again.ptr != source.ptr
    assert again.ptr % 512 == 0


@pytest.mark.parametrize("kind", ["device", "shared", "host"])
def test_out_of_band(kind: str) -> None:
    source = filled(DATA, kind=kind, queue=Queue("opencl"))
    parts: list[pickle.PickleBuffer] = []
    head = pickle.dumps(source, 5, buffer_callback=parts.append)
    assert len(head) < 1000
    assert [part.raw().nbytes for part in parts] == [10_000]
    if kind != "device":
        assert np.frombuffer(parts[0], np.uint8).ctypes.data == source.ptr, "without a copy"
    again = pickle.loads(head, buffers=parts)
    assert again.tobytes() == DATA.tobytes()
    assert again.kind == kind
    again.fill(0)
    assert source.tobytes() == DATA.tobytes()


def test_of_other_sizes(q: Queue, kind: str) -> None:
    if q.backend == "sim":
        pytest.skip("simulated devices of tests come and go")
    for nbytes in (0, 1):
        again = pickle.loads(pickle.dumps(Buffer(nbytes, kind=kind, queue=q), 5))
        assert again.nbytes == nbytes


def test_of_slices() -> None:
    source = filled(DATA, kind="shared", queue=Queue("opencl"))
    assert pickle.loads(pickle.dumps(source[10:20])).tobytes() == DATA[10:20].tobytes()


@pytest.mark.parametrize(
    "cls", [memory.MemoryUSMDevice, memory.MemoryUSMShared, memory.MemoryUSMHost]
)
@pytest.mark.parametrize("protocol", [2, 5])
def test_of_memory_classes(cls: type[Buffer], protocol: int) -> None:
    source = cls(100, queue=Queue("opencl"))  # type: ignore[call-arg]
    source.copy_from(DATA[:100])
    again = pickle.loads(pickle.dumps(source, protocol))
    assert type(again) is cls
    assert again.tobytes() == DATA[:100].tobytes()


def test_on_a_device_that_is_not_here() -> None:
    source = filled(DATA, kind="host", queue=Queue("host"))
    load, arguments, *_ = source.__reduce_ex__(2)
    cls, contents, kind, alignment, _, nbytes = arguments
    with pytest.warns(RuntimeWarning, match=r"host:gpu:7.*not available"):
        again = load(cls, contents, kind, alignment, "host:gpu:7", nbytes)
    assert again.tobytes() == DATA.tobytes()
    assert again.device == Device()


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_copies(q: Queue, kind: str, way) -> None:  # type: ignore[no-untyped-def]
    source = filled(DATA, kind=kind, queue=q, alignment=256)
    again = way(source)
    assert type(again) is Buffer
    assert again.ptr != source.ptr
    assert (again.kind, again.alignment, again.queue) == (kind, 256, q)
    source.fill(0)
    assert again.tobytes() == DATA.tobytes()
    part = way(again[10:20])
    assert part.base is None
    assert part.tobytes() == DATA[10:20].tobytes()


def test_what_cannot_be_pickled() -> None:
    for thing in (Queue("host"), Queue("host").fence(), Queue("host").context):
        with pytest.raises((TypeError, pickle.PicklingError)):
            pickle.dumps(thing)


@pytest.mark.parametrize("kind", ["device", "shared", "host"])
@pytest.mark.parametrize("dtype", ["int16", "complex64", "bfloat16"])
def test_arrays(kind: str, dtype: str) -> None:
    whole = isthmus.asarray([[1, 2, 3], [4, 5, 6]], kind=kind, device="opencl").astype(dtype)
    for source in (whole, whole.T, whole[:, ::-1], whole[1], whole[0:0], whole[1, 1, None]):
        again = pickle.loads(pickle.dumps(source))
        assert type(again) is Array
        assert (again.kind, again.device) == (kind, whole.device)
        assert (again.dtype, again.shape) == (source.dtype, source.shape)
        assert again.tolist() == source.tolist()
        assert again.nbytes == again.buffer.nbytes, "no more than it shows"
    whole.free()
    with pytest.raises(isthmus.ClosedError):
        pickle.dumps(whole)


def test_arrays_out_of_band() -> None:
    source = isthmus.full((100, 100), 3, "float32", kind="host")
    parts: list[pickle.PickleBuffer] = []
    head = pickle.dumps(source, 5, buffer_callback=parts.append)
    assert len(head) < 1000
    assert [part.raw().nbytes for part in parts] == [40_000]
    assert (pickle.loads(head, buffers=parts).to_numpy() == 3).all()


FRAMES: dict[str, Any] = {
    "half": lambda frame: [frame[: len(frame) // 2]],
    "too long": lambda frame: [frame + b"x"],
    "one byte less": lambda frame: [frame[:-1]],
    "split": lambda frame: [frame[:50], frame[50:]],
    "empty": lambda _: [b""],
    "empty, of another type": lambda _: [np.empty(0, np.float32)],
    "without an extent": lambda _: [np.empty((5, 0))],
    "with gaps": lambda frame: [np.frombuffer(frame * 2, np.uint8)[::2]],
    "with gaps, writable": lambda frame: [np.repeat(np.frombuffer(frame, np.uint8), 2)[::2]],
    "another": lambda frame: [np.zeros(len(frame), np.float32)],
}


def pickled_things() -> dict[str, Any]:
    data = noise(400)
    queue = Queue("opencl")
    made: dict[str, Any] = {
        f"Buffer of {kind}": filled(data, kind=kind, queue=queue)
        for kind in ("device", "shared", "host")
    }
    for cls in (memory.MemoryUSMDevice, memory.MemoryUSMShared, memory.MemoryUSMHost):
        made[cls.__name__] = cls(400, queue=queue)
        made[cls.__name__].copy_from(data)
    for kind in ("device", "shared", "host"):
        made[f"Array of {kind}"] = isthmus.full((10, 10), 3, "f4", kind=kind, device="opencl")
    made["a part of an Array"] = isthmus.full((20, 10), 3, "f4", kind="host")[::2]
    made["a part of a Buffer"] = filled(noise(800), kind="host", queue=queue)[100:500]
    unified = isthmus.UnifiedBuffer((10, 10), np.float32, device="opencl")
    unified.host[...] = 3
    made["UnifiedBuffer"] = unified
    compatible = pydotcompute.UnifiedBuffer((10, 10), np.float32, device="opencl")
    compatible.host[...] = 3
    made["PyDotCompute's UnifiedBuffer"] = compatible
    return made


@pytest.mark.parametrize("change", FRAMES.values(), ids=FRAMES)
def test_frames_that_are_not_the_picklers(change: Any) -> None:
    """Out-of-band data must have the size that the pickle records."""
    for name, source in pickled_things().items():
        parts: list[pickle.PickleBuffer] = []
        head = pickle.dumps(source, 5, buffer_callback=parts.append)
        frame = parts[0].raw().tobytes()
        assert len(frame) == 400, name
        assert pickle.loads(head, buffers=[frame]) is not None
        before = isthmus.memory.live()
        with pytest.raises(ValueError, match=r"were passed for it|has gaps"):
            pickle.loads(head, buffers=change(frame))
        assert is_memory_released(before), name


class Own(isthmus.UnifiedBuffer):
    def __reduce__(self) -> Any:
        return int, (5,)


def test_a_subclass_pickles_by_its_own_reduce() -> None:
    for protocol in range(6):
        assert pickle.loads(pickle.dumps(Own(3, device="host"), protocol)) == 5


def test_frames_of_no_bytes() -> None:
    for source in (Buffer(0, kind="host"), isthmus.zeros((0, 3), kind="host")):
        parts: list[pickle.PickleBuffer] = []
        head = pickle.dumps(source, 5, buffer_callback=parts.append)
        assert pickle.loads(head, buffers=[b""]).nbytes == 0
        with pytest.raises(ValueError, match="1 bytes were passed"):
            pickle.loads(head, buffers=[b"x"])


def test_pickles_of_before() -> None:
    """Older pickles record no size, or contain an array."""
    source = filled(DATA, kind="host", queue=Queue("host"))
    load, arguments, *_ = source.__reduce_ex__(2)
    assert load(*arguments[:-1]).tobytes() == DATA.tobytes()
    unified = isthmus.UnifiedBuffer((2, 3), "f4", device="host").fill(3)
    for protocol in range(6):
        again = pickle.loads(pickle.dumps(unified, protocol))
        assert (again.to_numpy() == unified.to_numpy()).all()
        assert (again.shape, again.dtype) == ((2, 3), np.float32)


def test_an_array_of_another_size_than_its_buffer() -> None:
    from isthmus._pickle import load_array

    memory_of_more = Buffer(64, kind="host", queue=Queue("host"))
    with pytest.raises(ValueError, match="array of 32 bytes, but its buffer has 64"):
        load_array(memory_of_more, (8,), "float32")
