# SPDX-License-Identifier: Apache-2.0
"""__sycl_usm_array_interface__: export, and import in every form that it has."""

from __future__ import annotations

import concurrent.futures as futures
import gc
import weakref
from typing import Any

import numpy as np
import pytest
from support import filled, noise, until

import isthmus
from isthmus import Buffer, Context, Event, Queue
from isthmus.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, as_usm_memory

DATA = noise(4096)
# Backends that submit work to the driver only once the host events it waits for are complete.
HOLDING_BACK = ("cuda", "sycl")
CLASSES = {"device": MemoryUSMDevice, "shared": MemoryUSMShared, "host": MemoryUSMHost}


class Foreign:
    """Exposes an interface dictionary as another library would."""

    def __init__(self, interface: Any) -> None:
        self.__sycl_usm_array_interface__ = interface


def interface(buffer: Buffer, **changes: Any) -> dict[str, Any]:
    return buffer.__sycl_usm_array_interface__ | changes


def test_out(q: Queue, kind: str) -> None:
    buffer = Buffer(100, kind=kind, queue=q)
    assert buffer.__sycl_usm_array_interface__ == {
        "data": (buffer.ptr, False),
        "shape": (100,),
        "strides": None,
        "typestr": "|u1",
        "version": 1,
        "syclobj": q,
    }
    part = buffer[10:30].__sycl_usm_array_interface__
    assert part["data"] == (buffer.ptr + 10, False)
    assert part["shape"] == (20,)


def test_each_access_returns_a_new_dictionary(q: Queue, kind: str) -> None:
    buffer = Buffer(100, kind=kind, queue=q)
    buffer.__sycl_usm_array_interface__.clear()
    assert buffer.__sycl_usm_array_interface__["version"] == 1


@pytest.mark.parametrize("form", ["queue", "context", "filter", "device"])
def test_forms_of_syclobj(kind: str, q: Queue, form: str) -> None:
    if form == "filter" and q.backend == "sim":
        pytest.skip("a device of this test alone has no filter that finds it")
    forms = {"queue": q, "context": q.context, "filter": q.device.filter, "device": q.device}
    source = filled(DATA, kind=kind, queue=q)
    made = as_usm_memory(Foreign(interface(source, syclobj=forms[form])))
    assert type(made) is CLASSES[kind]
    assert made.tobytes() == DATA.tobytes()
    assert made.sycl_context == q.context
    assert made._pointer == source.ptr


def test_the_queue_of_a_separate_context(q: Queue, kind: str) -> None:
    own = Context(q.device)
    source = filled(DATA, kind=kind, queue=Queue(own))
    made = as_usm_memory(Foreign(interface(source, syclobj=own)))
    assert made.sycl_context == own
    assert made.tobytes() == DATA.tobytes()


def test_the_foreign_object_is_kept_alive(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    foreign = Foreign(interface(source))
    gone = weakref.ref(foreign)
    made = as_usm_memory(foreign)
    assert made.reference_obj is foreign
    again = CLASSES[kind](made)
    assert again.reference_obj is foreign, "the first owner, not the view between"
    del foreign, made
    gc.collect()
    assert gone() is not None
    assert again.tobytes() == DATA.tobytes()
    del again
    assert until(lambda: gone() is None)


LAYOUTS: dict[str, tuple[dict[str, Any], int, int]] = {
    # entries, first byte and number of bytes of the range that contains all elements
    "interior": ({"shape": (10,), "typestr": "<i4", "offset": 5}, 20, 40),
    "2-D": ({"shape": (4, 8), "typestr": "<f4"}, 0, 128),
    "strided": ({"shape": (4,), "strides": (3,), "typestr": "<f8"}, 0, 80),
    "negative": ({"shape": (4,), "strides": (-2,), "offset": 10, "typestr": "|i1"}, 4, 7),
    "mixed": ({"shape": (3, 4), "strides": (8, -1), "offset": 3, "typestr": "<u2"}, 0, 40),
    "Fortran": ({"shape": (3, 4), "strides": (1, 3), "typestr": "<f4"}, 0, 48),
    "zero strides": ({"shape": (100, 100), "strides": (0, 0), "typestr": "<c16"}, 0, 16),
    "a scalar": ({"shape": (), "typestr": "<f8", "offset": 2}, 16, 8),
    "empty": ({"shape": (0, 5), "typestr": "<f4", "offset": 1}, 4, 4),
    "a list": ({"shape": [6], "typestr": "<f4"}, 0, 24),
    "long": ({"shape": (2,), "typestr": "float64"}, 0, 16),
    "big endian": ({"shape": (2,), "typestr": ">i2"}, 0, 4),
    "times": ({"shape": (2,), "typestr": "<m8[ns]"}, 0, 16),
    "bools": ({"shape": (2,), "typestr": "|b1"}, 0, 2),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(q: Queue, kind: str, name: str) -> None:
    entries, start, nbytes = LAYOUTS[name]
    source = filled(DATA, kind=kind, queue=q)
    made = as_usm_memory(Foreign(interface(source, **entries)))
    assert (made._pointer - source.ptr, made.nbytes) == (start, nbytes)
    assert made.tobytes() == DATA[start : start + nbytes].tobytes()


@pytest.mark.parametrize("version", [1, True, np.int64(1)])
def test_good_versions(q: Queue, kind: str, version: Any) -> None:
    source = filled(DATA, kind=kind, queue=q)
    assert as_usm_memory(Foreign(interface(source, version=version))).nbytes == 4096


def test_the_flag_means_read_only(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    made = as_usm_memory(Foreign(interface(source, data=(source.ptr, True))))
    assert made.read_only
    with pytest.raises(BufferError, match="read-only"):
        made.memset(1)
    assert not as_usm_memory(Foreign(interface(source, data=[source.ptr, 0]))).read_only


def test_copies_from_and_to_foreign_objects(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    foreign = Foreign(interface(source, shape=(8, 8), typestr="<i4"))
    target = Buffer(256, kind=kind, queue=q)
    target.copy_from(foreign)
    assert target.tobytes() == DATA[:256].tobytes()
    target.fill(0)
    target.copy_to(foreign)
    assert source.tobytes()[:256] == bytes(256)
    gappy = Foreign(interface(source, shape=(8,), strides=(2,)))
    with pytest.raises(ValueError, match="contiguous"):
        target.copy_from(gappy)


def test_empty_foreign_arrays_have_no_bytes(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    empty = Foreign(interface(source, shape=(0, 8), typestr="<f4", offset=4))
    target = filled(bytes(16), kind=kind, queue=q)
    target.copy_from(empty)
    with pytest.raises(isthmus.OutOfRangeError, match="has 0 bytes"):
        target.copy_to(empty)
    assert target.tobytes() == bytes(16)
    assert source.tobytes() == DATA.tobytes()


def test_foreign_views_of_our_memory_keep_its_order(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    if "wait_for_host" not in q.device.capabilities:
        pytest.skip("its queues cannot wait for the host")
    other = Queue(q.context)
    view = as_usm_memory(Foreign(interface(source, shape=(100,), syclobj=other)))
    gate = Event()
    view.fill(1, after=gate, blocking=False)
    with pytest.raises(isthmus.WaitTimeoutError):
        source.wait(0)
    gate.complete()
    assert source.tobytes() == bytes([1]) * 100 + DATA.tobytes()[100:]


def test_the_exported_queue_continues_after_pending_work(q: Queue, kind: str) -> None:
    if "wait_for_host" not in q.device.capabilities:
        pytest.skip("its queues cannot wait for the host")
    if q.device.backend in HOLDING_BACK:
        pytest.skip("who reads it waits there")
    source = filled(DATA, kind=kind, queue=q)
    q.wait()
    gate = Event()
    source.on_queue(Queue(q.context)).fill(1, after=gate, blocking=False)
    q.fence().wait()  # which does not wait for the fill
    assert source.__sycl_usm_array_interface__["syclobj"] == q
    behind = q.fence()
    assert not behind.done
    gate.complete()
    behind.wait()
    assert source.tobytes() == bytes([1]) * len(DATA)


def test_readers_wait_for_operations_deferred_by_the_host(q: Queue, kind: str) -> None:
    if q.device.backend not in HOLDING_BACK:
        pytest.skip("its queues can wait for the host")
    source = filled(DATA, kind=kind, queue=q)
    gate = Event()
    source.on_queue(Queue(q.context)).fill(1, after=gate, blocking=False)
    with futures.ThreadPoolExecutor(1) as pool:
        told = pool.submit(lambda: source.__sycl_usm_array_interface__)
        with pytest.raises(futures.TimeoutError):
            told.result(0.05)
        gate.complete()
        assert told.result()["data"][0] == source.ptr
    assert source.tobytes() == bytes([1]) * len(DATA)


def test_a_closed_queue_is_exported_if_nothing_is_pending(q: Queue, kind: str) -> None:
    if "wait_for_host" not in q.device.capabilities:
        pytest.skip("its queues cannot wait for the host")
    own = Queue(q.context)
    source = filled(DATA, kind=kind, queue=own)
    gate = Event()
    own.wait()
    own.close()
    assert source.__sycl_usm_array_interface__["data"][0] == source.ptr
    source.on_queue(q).fill(1, after=gate, blocking=False)
    with pytest.raises(isthmus.ClosedError):
        source.__sycl_usm_array_interface__  # noqa: B018
    gate.complete()
    q.wait()


def test_read_only_foreign_destinations(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    foreign = Foreign(interface(source, data=(source.ptr, True)))
    with pytest.raises(BufferError, match="read-only"):
        filled(DATA, kind=kind, queue=q).copy_to(foreign)


def test_our_own_buffers_go_in_as_they_are(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    made = as_usm_memory(source[10:20])
    assert type(made) is CLASSES[kind]
    assert made.tobytes() == DATA[10:20].tobytes()
    assert made._pointer == source.ptr + 10
