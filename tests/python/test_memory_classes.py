# SPDX-License-Identifier: Apache-2.0
"""isthmus.memory as specified by documents 001 and 002: dpctl.memory's members and behaviour."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from support import filled, noise

import isthmus
from isthmus import Buffer, Queue, memory
from isthmus.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, as_usm_memory

DATA = noise(1000)
CLASSES = {"device": MemoryUSMDevice, "shared": MemoryUSMShared, "host": MemoryUSMHost}
MEMBERS = [
    "copy_from_device",
    "copy_from_host",
    "copy_to_host",
    "get_usm_type",
    "get_usm_type_enum",
    "nbytes",
    "reference_obj",
    "size",
    "tobytes",
    "memset",
    "sycl_queue",
    "sycl_device",
    "sycl_context",
    "_pointer",
    "_queue",
    "_context",
    "__sycl_usm_array_interface__",
    "__len__",
    "__bytes__",
    "__repr__",
    "__sizeof__",
    "__reduce_ex__",
]


@pytest.fixture
def cls(kind: str) -> Any:
    return CLASSES[kind]


@pytest.mark.parametrize(
    "name", [*(c.__name__ for c in CLASSES.values()), "as_usm_memory", "USMAllocationError"]
)
def test_names_of_document_001(name: str) -> None:
    assert hasattr(memory, name)
    assert name in memory.__all__


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("kind_name", CLASSES)
def test_members_of_document_002(kind_name: str, name: str) -> None:
    assert hasattr(CLASSES[kind_name], name)


def test_a_new_allocation(q: Queue, cls: Any, kind: str) -> None:
    made = cls(1000, queue=q)
    assert made.nbytes == made.size == len(made) == 1000
    assert made.sycl_queue == made._queue == q
    assert made.sycl_device == q.device
    assert made.sycl_context == made._context == q.context
    assert made._pointer == made.ptr != 0
    assert made.reference_obj is None
    assert made.get_usm_type() == kind
    assert isinstance(made, Buffer)
    assert f"MemoryUSM{kind.capitalize()}" in repr(made)
    assert sys.getsizeof(made) >= 1000


def test_without_a_queue() -> None:
    for cls in CLASSES.values():
        assert cls(64).sycl_queue == isthmus.current_queue()


def test_alignment(q: Queue, cls: Any) -> None:
    assert cls(64, alignment=4096, queue=q)._pointer % 4096 == 0
    assert cls(64, alignment=0, queue=q).nbytes == 64
    assert cls(64, alignment=-1, queue=q).nbytes == 64


@pytest.mark.parametrize("nbytes", [0, -1, -(2**40), False])
@pytest.mark.host_only
def test_sizes_must_be_positive(q: Queue, cls: Any, nbytes: int) -> None:
    with pytest.raises(ValueError):
        cls(nbytes, queue=q)


@pytest.mark.parametrize(
    ("positional", "named"),
    [((8, 64), {}), ((8,), {"size": 1}), ((8,), {"queue": "cpu"}), ((), {})],
)
def test_wrong_arguments(positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        MemoryUSMDevice(*positional, **named)


def test_of_the_same_kind_without_a_copy(q: Queue, cls: Any) -> None:
    source = cls(1000, queue=q)
    source.copy_from_host(DATA)
    view = cls(source)
    assert view._pointer == source._pointer
    assert view.tobytes() == DATA.tobytes()
    del source
    assert view.tobytes() == DATA.tobytes(), "the memory is kept alive"


def test_copy_makes_new_memory(q: Queue, cls: Any) -> None:
    source = cls(1000, queue=q)
    source.copy_from_host(DATA)
    other = cls(source, copy=True, alignment=512)
    assert other._pointer != source._pointer
    assert other._pointer % 512 == 0
    assert other.sycl_queue == q, "the source's queue, not the default"
    source.memset(0)
    assert other.tobytes() == DATA.tobytes()


def test_of_another_kind(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    for other, cls in CLASSES.items():
        if other == kind or other not in q.device.kinds:
            continue
        with pytest.raises(ValueError, match="copy=True"):
            cls(source)
        assert cls(source, copy=True).tobytes() == DATA.tobytes()
        there = Queue(q.device)
        assert cls(source, copy=True, queue=there).sycl_queue == there


def test_get_usm_type(q: Queue, cls: Any, kind: str) -> None:
    made = cls(64, queue=q)
    number = {"device": 1, "shared": 2, "host": 3}[kind]
    for where in (None, q, q.context):
        assert made.get_usm_type(where) == kind
        assert made.get_usm_type_enum(where) == number
    elsewhere = isthmus.Context(q.device)
    assert made.get_usm_type(elsewhere) == "unknown"
    assert made.get_usm_type_enum(elsewhere) == 0
    with pytest.raises(TypeError):
        made.get_usm_type("opencl")


def test_copy_to_host(q: Queue, cls: Any) -> None:
    made = cls(1000, queue=q)
    made.copy_from_host(DATA)
    fresh = made.copy_to_host()
    assert fresh.dtype == np.uint8
    assert (fresh == DATA).all()
    room = np.full(1100, 7, np.uint8)
    assert made.copy_to_host(room) is room
    assert (room[:1000] == DATA).all()
    assert (room[1000:] == 7).all()
    typed = np.zeros((25, 5), "f8")
    assert made.copy_to_host(typed) is typed
    assert typed.tobytes() == DATA.tobytes(), "any type and shape"
    assert made.copy_to_host(obj=bytearray(1000)) == DATA.tobytes()
    few = bytearray(10)
    assert made.copy_to_host(few) == DATA[:10].tobytes(), "document 000 asks for a beginning so"


@pytest.mark.parametrize(
    ("target", "error"),
    [
        (bytes(1000), BufferError),
        (np.zeros(2000, np.uint8)[::2], ValueError),
        ([0] * 1000, TypeError),
        ("a" * 1000, TypeError),
    ],
    ids=["read-only", "strided", "list", "str"],
)
@pytest.mark.host_only
def test_bad_targets(q: Queue, cls: Any, target: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        cls(1000, queue=q).copy_to_host(target)


def test_copy_from_host(q: Queue, cls: Any) -> None:
    made = cls(1000, queue=q)
    made.memset()
    made.copy_from_host(DATA[:500])
    assert made.tobytes() == DATA[:500].tobytes() + bytes(500), "shorter fills a prefix"
    for source in (DATA.tobytes(), DATA.reshape(10, 100), DATA.view("<f4"), memoryview(DATA)):
        made.memset()
        made.copy_from_host(source)
        assert made.tobytes() == DATA.tobytes()
    made.copy_from_host(b"")
    assert made.tobytes() == DATA.tobytes()


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (bytes(1001), ValueError),
        (np.zeros(1000, np.uint8)[::2], ValueError),
        ("text", TypeError),
        ([1, 2], TypeError),
        (None, TypeError),
    ],
    ids=["long", "strided", "str", "list", "None"],
)
@pytest.mark.host_only
def test_bad_sources(q: Queue, cls: Any, source: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        cls(1000, queue=q).copy_from_host(source)


def test_copy_from_device(q: Queue, cls: Any) -> None:
    made = cls(1000, queue=q)
    for name, source_cls in CLASSES.items():
        if name not in q.device.kinds:
            continue
        source = source_cls(900, queue=q)
        source.copy_from_host(DATA[:900])
        made.memset()
        made.copy_from_device(source)
        assert made.tobytes() == DATA[:900].tobytes() + bytes(100)
    with pytest.raises(ValueError, match="1001"):
        made.copy_from_device(CLASSES[q.device.kinds[0]](1001, queue=q))
    for wrong in (DATA, 5, None, "a"):
        with pytest.raises(ValueError):
            made.copy_from_device(wrong)


def test_copy_from_another_device(q: Queue, cls: Any) -> None:
    source = MemoryUSMDevice(1000, queue=Queue("host"))
    source.copy_from_host(DATA)
    made = cls(1000, queue=q)
    made.copy_from_device(source)
    assert made.tobytes() == DATA.tobytes()


def test_memset(q: Queue, cls: Any) -> None:
    made = cls(1000, queue=q)
    for value in (0, 1, 255):
        made.memset(value)
        assert made.tobytes() == bytes([value]) * 1000
    made.memset(val=3)
    made.memset()
    assert bytes(made) == bytes(1000)
    for value in (256, 300, -1, 2**40):
        with pytest.raises(ValueError, match=str(value)):
            made.memset(value)
    with pytest.raises(TypeError):
        made.memset(1.5)


def test_slices_are_memory_too(q: Queue, cls: Any) -> None:
    made = cls(1000, queue=q)
    made.copy_from_host(DATA)
    part = made[100:200]
    assert type(part) is cls
    assert part.copy_to_host().tobytes() == DATA[100:200].tobytes()
    assert part.reference_obj is None


def test_as_usm_memory(q: Queue, cls: Any, kind: str) -> None:
    made = as_usm_memory(filled(DATA, kind=kind, queue=q))
    assert type(made) is cls
    assert made.tobytes() == DATA.tobytes()
    assert type(as_usm_memory(made)) is cls


def test_buffer_protocol(q: Queue, kind: str) -> None:
    made = CLASSES[kind](1000, queue=q)
    made.copy_from_host(DATA)
    if kind == "device":
        with pytest.raises((BufferError, TypeError)):
            memoryview(made)
        return
    assert bytes(memoryview(made)) == DATA.tobytes()
    assert np.frombuffer(made, "f4").nbytes == 1000


def test_the_error_of_no_memory() -> None:
    error = memory.USMAllocationError
    assert issubclass(error, MemoryError)
    assert issubclass(error, isthmus.Error)
    assert error is isthmus.USMAllocationError
