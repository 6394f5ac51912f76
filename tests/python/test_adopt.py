# SPDX-License-Identifier: Apache-2.0
"""Memory of other libraries: adopted with an owner, which is released exactly once."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from support import filled, is_memory_released, message_has, noise, sim, until

import isthmus
from isthmus import Buffer, Event, Queue
from isthmus.memory import live

DATA = noise(4096)


class Owner:
    """Keeps an object alive, and supports weak references."""

    def __init__(self, what: object) -> None:
        self.what = what


def test_usm_of_the_same_context(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    count = live()[0]
    owner = Owner(source)
    gone = weakref.ref(owner)
    adopted = Buffer.adopt(source.ptr, 100, queue=q, owner=owner)
    assert adopted.kind == kind
    assert adopted.ptr == source.ptr
    assert adopted.base is owner
    assert adopted.tobytes() == DATA[:100].tobytes()
    adopted.fill(3)
    assert source.tobytes()[:100] == bytes([3]) * 100
    assert live()[0] <= count + 1
    del owner, source
    gc.collect()
    assert gone() is not None
    del adopted
    assert until(lambda: gone() is None)


def test_the_owner_waits_for_work_in_flight(q: Queue, kind: str, gate: Event) -> None:
    source = filled(DATA, kind=kind, queue=q)
    owner = Owner(source)
    gone = weakref.ref(owner)
    adopted = Buffer.adopt(source.ptr, 4096, queue=q, owner=owner)
    got = np.zeros(4096, np.uint8)
    out = adopted.copy_to(got, after=[gate], blocking=False)
    assert out is not None
    adopted.free()
    del owner, adopted, source
    gc.collect()
    assert gone() is not None
    gate.complete()
    out.wait()
    assert until(lambda: gone() is None)
    assert (got == DATA).all()


def test_the_owner_is_released_if_adoption_fails(q: Queue) -> None:
    if q.backend == "host":
        pytest.skip("the host takes any memory")
    owner = Owner(None)
    gone = weakref.ref(owner)
    array = np.zeros(64, np.uint8)
    with pytest.raises(isthmus.Error):
        Buffer.adopt(array.ctypes.data, 64, queue=q, owner=owner)
    del owner
    assert until(lambda: gone() is None)


def test_the_owner_lives_as_long_as_slices_and_exports(q: Queue, host_kind: str) -> None:
    source = filled(DATA, kind=host_kind, queue=q)
    owner = Owner(source)
    gone = weakref.ref(owner)
    view = memoryview(Buffer.adopt(source.ptr, 4096, queue=q, owner=owner)[10:20])
    del owner
    gc.collect()
    assert gone() is not None
    assert bytes(view) == DATA[10:20].tobytes()
    del view
    assert until(lambda: gone() is None)


def test_any_memory_on_the_host() -> None:
    array = noise(4096)
    gone = weakref.ref(array)
    adopted = Buffer.adopt(
        array.ctypes.data, array.nbytes, kind="host", queue=Queue("host"), owner=array
    )
    adopted[0:10].fill(1)
    assert (array[:10] == 1).all()
    assert np.asarray(adopted).ctypes.data == array.ctypes.data
    del array
    gc.collect()
    assert gone() is not None
    del adopted
    assert until(lambda: gone() is None)


def test_read_only(q: Queue, kind: str) -> None:
    source = filled(DATA, kind=kind, queue=q)
    adopted = Buffer.adopt(source.ptr, 4096, queue=q, owner=source, read_only=True)
    assert adopted.read_only
    assert adopted[1:2].read_only
    assert adopted.__sycl_usm_array_interface__["data"][1] is True
    assert "read-only" in repr(adopted)
    for write in (
        lambda: adopted.fill(1),
        lambda: adopted.copy_from(bytes(8)),
        lambda: adopted[5:9].copy_from(bytes(4)),
    ):
        with pytest.raises(isthmus.ReadOnlyError, match="read-only"):
            write()
    assert adopted.tobytes() == DATA.tobytes()


def test_read_only_exports(q: Queue, host_kind: str) -> None:
    source = filled(DATA, kind=host_kind, queue=q)
    adopted = Buffer.adopt(source.ptr, 4096, queue=q, owner=source, read_only=True)
    view = memoryview(adopted)
    assert view.readonly
    assert not np.asarray(adopted).flags.writeable
    with pytest.raises(TypeError):
        view[0] = 1


def test_an_unknown_pointer() -> None:
    array = np.zeros(64, np.uint8)
    with pytest.raises(isthmus.WrongContextError) as error:
        Buffer.adopt(array.ctypes.data, 64, queue=Queue(sim()), owner=array)
    message_has(error, [f"{array.ctypes.data:#x}"])


def test_a_wrong_kind(q: Queue) -> None:
    kinds = q.device.kinds
    source = Buffer(64, kind=kinds[0], queue=q)
    with pytest.raises(ValueError, match=kinds[0]):
        Buffer.adopt(source.ptr, 64, kind=kinds[1], queue=q, owner=source)


@pytest.mark.parametrize("pointer", [-1, 2**64, 2**70])
def test_what_is_no_address(pointer: int) -> None:
    with pytest.raises(ValueError):
        Buffer.adopt(pointer, 64, queue=Queue("host"))


@pytest.mark.parametrize(("pointer", "nbytes"), [(0, 64), (2**64 - 16, 64)])
def test_addresses_without_memory(pointer: int, nbytes: int) -> None:
    with pytest.raises(isthmus.Error):
        Buffer.adopt(pointer, nbytes, kind="host", queue=Queue("host"))


@pytest.mark.parametrize("nbytes", [1, 4096])
def test_memory_is_passed_to_a_foreign_owner(q: Queue, kind: str, nbytes: int) -> None:
    before = live()
    given = filled(DATA[:nbytes], kind=kind, queue=q)
    address, owner = given.disown()
    assert given.freed
    taken = Buffer.adopt(address, nbytes, kind=kind, queue=q, owner=owner)
    assert taken.tobytes() == DATA[:nbytes].tobytes()
    assert live()[0] == before[0] + 1
    del taken, owner
    assert is_memory_released(before)


@pytest.mark.usefixtures("unpooled")
def test_passed_memory_waits_for_work_in_flight(q: Queue, kind: str, gate: Event) -> None:
    before = live()
    given = filled(DATA, kind=kind, queue=q)
    got = np.zeros(4096, np.uint8)
    out = given.copy_to(got, after=[gate], blocking=False)
    assert out is not None
    _, owner = given.disown()
    del owner
    assert live()[1] == before[1] + 4096
    gate.complete()
    out.wait(60)
    assert (got == DATA).all()
    assert is_memory_released(before)


def test_memory_with_other_references_is_not_released(q: Queue, kind: str) -> None:
    given = filled(DATA, kind=kind, queue=q)
    part = given[10:20]
    with pytest.raises(ValueError, match="slice"):
        given.disown()
    with pytest.raises(ValueError, match="0 bytes"):
        Buffer(0, kind=kind, queue=q).disown()
    assert part.tobytes() == DATA[10:20].tobytes()
    del part
    given.free()
    with pytest.raises(isthmus.ClosedError, match="freed"):
        given.disown()
