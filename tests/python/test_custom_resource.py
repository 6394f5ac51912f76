# SPDX-License-Identifier: Apache-2.0
"""CustomResource: memory from Python objects, and the results of theirs that are rejected."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import traceback
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import python, sim, until

import isthmus
from isthmus import Buffer, CallbackError, Device, Queue
from isthmus.memory import (
    AdaptorResource,
    CustomResource,
    FallbackResource,
    LimitResource,
    MemoryResource,
    PoolResource,
    ProviderResource,
    StatisticsResource,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Passing:
    """Allocates buffers from another resource, and records the requests."""

    def __init__(self, upstream: MemoryResource) -> None:
        self.upstream = upstream
        self.live: dict[int, Buffer] = {}
        self.asked: list[tuple[int, int, Queue]] = []
        self.freed: list[tuple[int, int, Queue | None]] = []

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
        buffer = self.upstream.allocate(nbytes, alignment, queue)
        self.asked.append((nbytes, alignment, queue))
        self.live[buffer.ptr] = buffer
        return buffer.ptr

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        del self.live[pointer]
        self.freed.append((pointer, nbytes, queue))


class Saying:
    """Returns from `allocate` what the given function returns."""

    def __init__(self, says: Callable[[int], Any]) -> None:
        self.says = says
        self.freed: list[int] = []

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
        given: int = self.says(nbytes)
        return given

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        self.freed.append(pointer)


@pytest.mark.parametrize("under", [PoolResource, ProviderResource])
def test_buffers_of_an_allocator(q: Queue, kind: str, under: type[PoolResource]) -> None:
    allocator = Passing(under(kind, q.device))
    resource = CustomResource(allocator, kind, q.device)
    assert (resource.kind, resource.device, resource.allocator) == (kind, q.device, allocator)
    for nbytes in (1, 1000, 300_000):
        data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
        buffer = Buffer(nbytes, resource=resource, queue=q, alignment=64)
        assert allocator.asked[-1] == (nbytes, 64, q)
        address = buffer.ptr
        assert address in allocator.live
        buffer.copy_from(data)
        back = np.empty_like(data)
        buffer.copy_to(back)
        assert np.array_equal(back, data)
        del buffer
        assert until(lambda: not allocator.live)
        assert allocator.freed[-1][:2] == (address, nbytes)
    assert resource.allocate(0, queue=q).nbytes == 0
    assert len(allocator.asked) == 3
    assert repr(resource).startswith(f"<isthmus.memory.CustomResource of {kind} memory on")


def test_memory_of_ctypes() -> None:
    class Heap:
        def __init__(self) -> None:
            self.live: dict[int, Any] = {}

        def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
            block = (ctypes.c_char * (nbytes + alignment))()
            address = -(-ctypes.addressof(block) // alignment) * alignment
            self.live[address] = block
            return address

        def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
            del self.live[pointer]

    heap = Heap()
    buffer = Buffer(1000, resource=CustomResource(heap, "host", "host"))
    buffer.fill(7)
    assert ctypes.string_at(buffer.ptr, 1000) == b"\7" * 1000
    assert len(heap.live) == 1
    buffer.free()
    assert not heap.live


def test_what_it_raises_is_raised(q: Queue, kind: str) -> None:
    class OddError(Exception):
        pass

    raised: list[OddError] = []

    def fail(nbytes: int) -> int:
        raised.append(OddError("no memory today", 7))
        raise raised[-1]

    resource = CustomResource(Saying(fail), kind, q.device)
    limited = LimitResource(StatisticsResource(resource), 1000)
    for each in (resource, limited):
        with pytest.raises(OddError) as caught:
            Buffer(10, resource=each, queue=q)
        assert caught.value is raised[-1]
        assert "fail" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert limited.in_use_bytes == 0
    kept = weakref.ref(raised[-1])
    raised.clear()
    del caught
    gc.collect()
    assert kept() is None, "nobody holds it any more"


def test_after_a_memory_error_the_fallback_serves(q: Queue, kind: str) -> None:
    def fail(nbytes: int) -> int:
        raise MemoryError("none left")

    none_left = CustomResource(Saying(fail), kind, q.device)
    with pytest.raises(MemoryError, match="none left"):
        none_left.allocate(10, queue=q)
    buffer = FallbackResource(none_left, PoolResource(kind, q.device)).allocate(10, queue=q)
    assert buffer.nbytes == 10
    with pytest.raises(isthmus.InvalidArgumentError, match="24"):
        none_left.allocate(10, 24, queue=q)


def test_what_is_no_memory_is_refused(q: Queue, kind: str) -> None:
    whole = Buffer(8192, kind=kind, queue=q, alignment=4096)
    far = Buffer(8192, kind="device", queue=Queue(sim()))
    for given, error, says in (
        (0, CallbackError, "NULL"),
        (whole.ptr + 32, CallbackError, "not aligned to 64"),
        (whole.ptr + 4096, CallbackError, "run past the end"),
        (far.ptr, CallbackError, "not memory of its context"),
        (None, TypeError, r"result of allocate\(\)"),
        ("12", TypeError, r"result of allocate\(\)"),
        (-64, ValueError, "not an address"),
        (1 << 64, ValueError, "not an address"),
    ):
        allocator = Saying(lambda nbytes, given=given: given)
        resource = CustomResource(allocator, kind, q.device)
        with pytest.raises(error, match=says):
            resource.allocate(8000, 64, q)
        assert allocator.freed == ([given] if error is CallbackError and given else [])


def test_what_deallocate_raises_is_unraisable(
    q: Queue, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_value))

    class Forgetful(Passing):
        def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
            super().deallocate(pointer, nbytes, queue)
            raise KeyError(nbytes)

    allocator = Forgetful(PoolResource(kind, q.device))
    resource = CustomResource(allocator, kind, q.device)

    def dropped_while_raising() -> None:
        buffer = resource.allocate(77, queue=q)
        assert buffer.nbytes == 77
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        dropped_while_raising()
    gc.collect()
    assert until(lambda: len(told) == 1)
    assert repr(told[0]) == "KeyError(77)"
    assert not allocator.live


def test_memory_is_deallocated_after_the_work_on_it(
    q: Queue, kind: str, gate: isthmus.Event
) -> None:
    if "wait_for_host" not in q.device.capabilities:
        pytest.skip("nothing can be held up")
    allocator = Passing(ProviderResource(kind, q.device))
    buffer = CustomResource(allocator, kind, q.device).allocate(1000, queue=q)
    event = buffer.fill(3, after=[gate], blocking=False)
    del buffer
    gc.collect()
    assert not allocator.freed
    gate.complete()
    event.wait(20)
    assert until(lambda: len(allocator.freed) == 1), "by a thread of the library"
    q.wait()
    assert until(lambda: not allocator.live)


def test_usage_and_trim_are_its_own(q: Queue, kind: str) -> None:
    class Telling(Saying):
        def usage(self) -> tuple[int, int]:
            return 5000, 300

        def trim(self, keep_bytes: int) -> int:
            return 5000 - keep_bytes

    resource = CustomResource(Telling(int), kind, q.device)
    assert (resource.held_bytes, resource.free_bytes, resource.trim(1000)) == (5000, 300, 4000)
    plain = CustomResource(Saying(int), kind, q.device)
    assert (plain.held_bytes, plain.free_bytes, plain.trim()) == (0, 0, 0)


def test_what_usage_and_trim_raise_is_raised(q: Queue, kind: str) -> None:
    class Odd(Saying):
        def usage(self) -> tuple[int, int]:
            raise KeyboardInterrupt

        def trim(self, keep_bytes: int) -> int:
            raise LookupError(keep_bytes)

    resource = CustomResource(Odd(int), kind, q.device)
    for over in (resource, StatisticsResource(resource)):
        with pytest.raises(KeyboardInterrupt):
            _ = over.held_bytes
        with pytest.raises(LookupError, match="5"):
            over.trim(5)


def test_exceptions_are_kept_no_longer_than_they_are_raised(q: Queue, kind: str) -> None:
    class Large:
        pass

    seen: list[weakref.ref[Large]] = []

    def refuse(nbytes: int) -> int:
        local = Large()
        seen.append(weakref.ref(local))
        raise MemoryError("none here")

    custom = CustomResource(Saying(refuse), kind, q.device)
    small = LimitResource(PoolResource(kind, q.device), 1)
    with pytest.raises(isthmus.USMAllocationError, match=r"none here.*fallback") as raised:
        FallbackResource(custom, small).allocate(100, queue=q)
    assert isinstance(raised.value.__cause__, MemoryError)
    assert "refuse" in "".join(traceback.format_exception(raised.value))
    with pytest.raises(isthmus.USMAllocationError) as other:
        small.allocate(100, queue=q)
    assert other.value.__cause__ is None
    del raised, other
    FallbackResource(custom, PoolResource(kind, q.device)).allocate(100, queue=q)
    gc.collect()
    assert len(seen) >= 2  # more if a request was repeated after a garbage collection
    assert not any(each() for each in seen)


def test_bad_allocators(dev: Device) -> None:
    with pytest.raises(TypeError, match="method allocate, which int lacks"):
        CustomResource(3)  # type: ignore[arg-type]

    class Half:
        allocate = print
        deallocate = None

    with pytest.raises(TypeError, match="method deallocate"):
        CustomResource(Half())  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        CustomResource(Saying(int), "odd")
    with pytest.raises(TypeError):
        CustomResource(Saying(int), "host", 3.5)  # type: ignore[arg-type]


def test_threads_share_an_allocator(dev: Device, kind: str) -> None:
    pool = PoolResource(kind, dev)
    allocator = Passing(pool)
    resource = CustomResource(allocator, kind, dev)

    def work() -> None:
        queue = Queue(dev, context=pool.context)
        mine = []
        for i in range(100):
            mine.append(resource.allocate(1 + 37 * i, queue=queue))
            mine[-1].fill(i)
            if i % 3 == 0:
                del mine[0]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert until(lambda: not allocator.live)
    assert len(allocator.asked) == len(allocator.freed) == 400


PROGRAM = """
import ctypes, os, sys
import isthmus
from isthmus.memory import CustomResource

calls = []

class Heap:
    def allocate(self, nbytes, alignment, queue):
        block = (ctypes.c_char * (nbytes + alignment))()
        self.blocks = getattr(self, "blocks", []) + [block]
        return -(-ctypes.addressof(block) // alignment) * alignment

    def deallocate(self, pointer, nbytes, queue):
        calls.append(os.getpid())
        print("freed", nbytes, flush=True)

resource = CustomResource(Heap(), "host", "host")
kept = resource.allocate(1000)
"""


def test_nothing_is_called_while_the_interpreter_ends() -> None:
    done = python(PROGRAM + "dropped = resource.allocate(7)\ndropped.free()\n")
    assert done.stdout == "freed 7\n"
    assert done.stderr == ""


def test_nothing_is_called_in_a_forked_child() -> None:
    done = python(
        PROGRAM
        + """
child = os.fork()
if child == 0:
    kept.free()
    del kept
    try:
        resource.allocate(10)
    except isthmus.ForkedError:
        os._exit(len(calls))
    os._exit(100)
assert os.waitpid(child, 0)[1] == 0
kept.free()
assert calls == [os.getpid()]
"""
    )
    assert done.stdout == "freed 1000\n"
    assert done.stderr == ""


ONES_OWN = r"allocate\(nbytes, alignment, queue\) and .* to isthmus\.memory\.CustomResource"


def test_a_subclass_that_would_be_passed_over_is_refused() -> None:
    """What users of other libraries try first: the error explains the alternative."""

    class Mixin:
        def allocate(self, nbytes: int) -> int:
            return nbytes

    for base in (MemoryResource, PoolResource, StatisticsResource):
        for bases, names in (
            ((base,), {"allocate": lambda self, nbytes: nbytes}),
            ((base,), {"deallocate": lambda self, pointer: None}),
            ((Mixin, base), {}),
        ):
            with pytest.raises(TypeError, match=f"Mine: .*never called; .*{ONES_OWN}"):
                type("Mine", bases, names)
    for abstract in (MemoryResource, AdaptorResource):
        for made in (abstract, type("Mine", (abstract,), {})):
            with pytest.raises(TypeError, match=f"cannot be instantiated; .*{ONES_OWN}"):
                made(PoolResource("host", "host"))


def test_a_subclass_may_add_to_a_resource() -> None:
    class Named(PoolResource):
        def __init__(self, name: str) -> None:
            super().__init__("host", "host")
            self.name = name

    pool = Named("mine")
    assert pool.allocate(100).nbytes == 100
    assert Buffer(100, resource=StatisticsResource(pool)).kind == "host"
    assert pool.name == "mine"
