# SPDX-License-Identifier: Apache-2.0
"""isthmus.low_level: pointers, counts of elements, properties."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import message_has, noise, sim, until

import isthmus
from isthmus import Array, Buffer, Device, Queue, low_level
from isthmus.memory import LimitResource, ProviderResource, live
from isthmus.testing import sim_state

if TYPE_CHECKING:
    from isthmus.low_level import UsmPointer


def allocated(dev: Device, kind: str, nbytes: int, alignment: int = 1) -> UsmPointer:
    ctx = dev.default_context
    if kind == "device":
        return low_level.device_alloc(ctx, dev, nbytes, alignment)
    if kind == "shared":
        return low_level.shared_alloc(ctx, dev, nbytes, alignment)
    if dev != ctx.devices[0]:
        pytest.skip(f"{dev.filter} is not the first of its context's devices")
    return low_level.host_alloc(ctx, nbytes, alignment)


def contents(ptr: UsmPointer) -> np.ndarray:
    return ptr.buffer.to_numpy()[ptr.offset :]


# ---- current context and queue ---------------------------------------------------------------


def test_what_is_current(dev: Device) -> None:
    with dev:
        assert low_level.device() == dev
        assert low_level.context() == dev.default_context
    own = isthmus.Context(dev)
    with Queue(dev, context=own):
        assert low_level.device() == dev
        assert low_level.context() == own != dev.default_context


def test_one_queue_for_all(dev: Device) -> None:
    assert low_level.global_queue(dev.default_context, dev) == dev.default_queue
    own = isthmus.Context(dev)
    queue = low_level.global_queue(own, dev)
    assert (queue.context, queue.device) == (own, dev)
    found: list[Queue] = []
    threads = [
        threading.Thread(target=lambda: found.append(low_level.global_queue(own, dev)))
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [queue] * 8


def test_a_device_of_another_context(dev: Device) -> None:
    with pytest.raises(isthmus.WrongContextError):
        low_level.global_queue(sim().default_context, dev)


# ---- pointers --------------------------------------------------------------------------------


@pytest.mark.parametrize("alignment", [1, 8, 64, 256])
@pytest.mark.sim_and_host
def test_memory_of_each_kind(dev: Device, kind: str, alignment: int) -> None:
    before = live()
    ptr = allocated(dev, kind, 1024, alignment)
    assert (ptr.nbytes, ptr.kind, ptr.offset, ptr.dtype) == (1024, kind, 0, None)
    assert ptr.context == dev.default_context
    assert int(ptr) % alignment == 0
    assert int(ptr) == ptr == ptr.buffer.ptr
    assert ctypes.c_void_p(int(ptr)).value == int(ptr)
    assert hex(ptr) in repr(ptr)
    assert live()[0] == before[0] + 1
    low_level.free(ptr.context, ptr)
    low_level.free(ptr.context, ptr)
    assert ptr.freed
    assert "freed" in repr(ptr)
    with pytest.raises(isthmus.ClosedError, match="freed"):
        int(ptr)
    assert until(lambda: live() == before)


def test_a_pointer_that_is_dropped_frees(dev: Device) -> None:
    before = live()
    ptr = allocated(dev, "device", 1000)
    inner = ptr + 100
    del ptr
    assert live()[0] == before[0] + 1
    del inner
    assert until(lambda: live() == before)


def test_arithmetic() -> None:
    ptr = allocated(Device("host"), "host", 1000)
    inner = ptr + 200
    assert int(inner) == int(ptr) + 200
    assert (inner.nbytes, inner.offset) == (800, 200)
    assert inner - ptr == 200
    assert inner - 200 == ptr
    assert hash(inner - 200) == hash(ptr)
    assert (ptr + 1000).nbytes == 0
    assert ptr != inner
    assert (ptr == "a") is False
    typed = ptr.cast("float32")
    assert typed.dtype == np.float32
    assert (typed + 8).dtype == np.float32
    assert typed.cast(None).dtype is None
    assert "float32" in repr(typed)
    for wrong in (-1, 1001):
        with pytest.raises(isthmus.OutOfRangeError) as caught:
            ptr + wrong
        message_has(caught, [wrong, 1000])
    with pytest.raises(TypeError):
        ptr + 1.5  # type: ignore[operator]
    assert 200 + ptr == inner
    named = low_level.UsmPointer(ptr.buffer, 200, "float32")
    assert (named.dtype, repr(named)) == (np.float32, repr(inner.cast("float32")))
    with pytest.raises(TypeError):
        low_level.UsmPointer(ptr.buffer, 0, "O")


def test_no_bytes(dev: Device) -> None:
    ptr = allocated(dev, "device", 0)
    assert ptr.nbytes == 0
    ctx = ptr.context
    low_level.unsafe_copyto(ctx, dev, ptr, b"", 0).wait()
    low_level.unsafe_fill(ctx, dev, ptr, 1, 0).wait()
    low_level.free(ctx, ptr)


def test_memory_comes_from_the_current_resource() -> None:
    dev = Device("host")
    limited = LimitResource(ProviderResource("device", dev), 1000)
    with isthmus.using(limited):
        ptr = allocated(dev, "device", 600)
        assert limited.in_use_bytes == 600
        with pytest.raises(isthmus.USMAllocationError):
            allocated(dev, "device", 600)
    low_level.free(ptr.context, ptr)


def test_shared_memory_without_a_device(dev: Device) -> None:
    ctx = dev.default_context
    if "shared" not in ctx.devices[0].kinds:
        pytest.skip("no shared kind")
    ptr = low_level.shared_alloc(ctx, None, 16)
    assert ptr.device == ctx.devices[0]


# ---- copies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "complex128"])
@pytest.mark.sim_and_host
def test_copies_count_elements(dev: Device, kind: str, dtype: str) -> None:
    ctx = dev.default_context
    data = noise(100 * np.dtype(dtype).itemsize).view(dtype)
    ptr = allocated(dev, kind, data.nbytes, 16)
    low_level.unsafe_copyto(ctx, dev, ptr, data, 100).wait()
    assert np.array_equal(contents(ptr), data.view(np.uint8))
    back = np.zeros(60, dtype)
    inner = ptr + 40 * data.itemsize
    low_level.unsafe_copyto(ctx, dev, back, inner, 60).wait()
    assert back.tobytes() == data[40:].tobytes()
    low_level.free(ctx, ptr)


def test_between_all_that_has_bytes(dev: Device, host_kind: str) -> None:
    ctx = dev.default_context
    data = np.arange(64, dtype=np.int32)
    source = allocated(dev, host_kind, 256, 8)
    low_level.unsafe_copyto(ctx, dev, source.cast("int32"), data, 64).wait()
    buffer = Buffer(256, kind=host_kind, device=dev)
    low_level.unsafe_copyto(ctx, dev, buffer, source, 256).wait()
    array = Array(Buffer(256, device=dev), (8, 8), "int32")
    low_level.unsafe_copyto(ctx, dev, array, source, 64).wait()
    assert np.array_equal(array.to_numpy().ravel(), data)
    raw = bytearray(256)
    low_level.unsafe_copyto(ctx, dev, raw, array, 64).wait()
    assert raw == data.tobytes()
    assert buffer.tobytes() == data.tobytes()


def test_addresses(dev: Device, kind: str) -> None:
    """Addresses of USM and of pageable host memory, as in the document."""
    ctx = dev.default_context
    data, back = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    ptr = allocated(dev, kind, 200, 8)
    low_level.unsafe_copyto(ctx, dev, int(ptr), data.ctypes.data, 200).wait()
    low_level.unsafe_copyto(ctx, dev, np.uint64(back.ctypes.data), ptr.cast("float32"), 50).wait()
    assert np.array_equal(back, data)
    low_level.unsafe_fill(ctx, dev, int(ptr) + 100, np.float32(3), 25).wait()
    assert np.array_equal(contents(ptr).view(np.float32)[25:], np.full(25, 3, np.float32))
    low_level.free(ctx, ptr)


def test_addresses_of_another_context(dev: Device) -> None:
    """They are rejected, except for host memory, even if another context has a record of it."""
    ctx, there = dev.default_context, allocated(sim(), "device", 64)
    ptr = allocated(dev, "device", 64, 8)
    low_level.unsafe_fill(ctx, dev, ptr, 9, 64).wait()
    for call in (
        lambda: low_level.unsafe_copyto(ctx, dev, int(there), ptr, 8),
        lambda: low_level.unsafe_copyto(ctx, dev, ptr, int(there), 8),
        lambda: low_level.unsafe_fill(ctx, dev, int(there), 1, 8),
    ):
        with pytest.raises(isthmus.WrongContextError):
            call()
    assert (contents(ptr) == 9).all()
    source = np.arange(8, dtype=np.uint8)
    adopted = isthmus.asarray(source, kind="host", device="host", copy=False)
    low_level.unsafe_copyto(ctx, dev, ptr, adopted.ptr, 8).wait()
    assert contents(ptr)[:8].tolist() == source.tolist()


def test_nothing_waits_and_the_source_lives(dev: Device, gate: isthmus.Event) -> None:
    if "wait_for_host" not in dev.capabilities:
        pytest.skip("its queues cannot wait for the host")
    own = isthmus.Context(dev)
    queue = low_level.global_queue(own, dev)
    ptr = low_level.device_alloc(own, dev, 4000, 8)
    queue.fence(gate)
    event = low_level.unsafe_copyto(own, dev, ptr, np.arange(1000, dtype=np.int32), 1000)
    assert not event.done
    gate.complete()
    event.wait()
    assert np.array_equal(contents(ptr).view(np.int32), np.arange(1000))


def test_fills_count_elements(dev: Device, kind: str) -> None:
    ctx = dev.default_context
    ptr = allocated(dev, kind, 64, 16)
    low_level.unsafe_fill(ctx, dev, ptr, 0, 64).wait()
    low_level.unsafe_fill(ctx, dev, ptr.cast("float32") + 8, 1.5, 4).wait()
    low_level.unsafe_fill(ctx, dev, ptr + 32, b"\x01\x02", 3).wait()
    low_level.unsafe_fill(ctx, dev, ptr + 48, np.int32(-1), 2).wait()
    expected = np.zeros(64, np.uint8)
    expected[8:24].view(np.float32)[:] = 1.5
    expected[32:38] = [1, 2] * 3
    expected[48:56] = 255
    assert np.array_equal(contents(ptr), expected)
    array = Array(ptr.buffer, (2, 8), "int32")
    low_level.unsafe_fill(ctx, dev, array, 7, 16).wait()
    assert (array.to_numpy() == 7).all()


def read_only(buffer: Buffer, dtype: str) -> Array:
    whole = Array(buffer, buffer.nbytes // np.dtype(dtype).itemsize, dtype)
    return isthmus.broadcast_to(whole, whole.shape)


BAD_COPIES: list[tuple[Any, Any, Any, type[Exception], list[object]]] = [
    ("ptr", b"12345", 6, isthmus.OutOfRangeError, [6, 5, "source"]),
    ("ptr", bytes(2000), 1001, isthmus.OutOfRangeError, [1001, 1000, "destination"]),
    ("inner", bytes(2000), 901, isthmus.OutOfRangeError, [901, 900]),
    ("floats", np.zeros(10, np.int32), 5, TypeError, ["float32", "int32", "cast"]),
    ("ptr", np.zeros((10, 10))[:, 0], 5, ValueError, ["gaps"]),
    ("ptr", bytes(10), -1, ValueError, [-1]),
    ("ptr", bytes(10), 1.5, TypeError, ["float"]),
    ("ptr", 0, 5, isthmus.InvalidArgumentError, ["is 0, which is not an address"]),
    ("ptr", -4, 5, isthmus.InvalidArgumentError, ["-4"]),
    ("ptr", "text", 2, TypeError, ["source", "str"]),
    (b"constant", "ptr", 2, isthmus.ReadOnlyError, ["destination", "bytes"]),
    ("read", "ptr", 2, isthmus.ReadOnlyError, ["destination", "Array"]),
    (None, "ptr", 2, TypeError, ["destination", "NoneType"]),
    ("freed", bytes(10), 2, isthmus.ClosedError, []),
]


@pytest.mark.parametrize(("dst", "src", "n", "error", "parts"), BAD_COPIES)
@pytest.mark.host_only
def test_bad_copies(
    dev: Device, dst: Any, src: Any, n: Any, error: type[Exception], parts: list[object]
) -> None:
    ctx = dev.default_context
    ptr = allocated(dev, "device", 1000, 8)
    dead = allocated(dev, "device", 1000)
    low_level.free(ctx, dead)
    low_level.unsafe_fill(ctx, dev, ptr, 9, 1000).wait()
    named: dict[str, Any] = {"ptr": ptr, "inner": ptr + 100, "floats": ptr.cast("float32")}
    named |= {"freed": dead, "read": read_only(ptr.buffer, "float32")}
    given = [named.get(each, each) if isinstance(each, str) else each for each in (dst, src)]
    with pytest.raises(error) as caught:
        low_level.unsafe_copyto(ctx, dev, *given, n)
    message_has(caught, parts)
    assert (contents(ptr) == 9).all()


BAD_FILLS: list[tuple[Any, Any, int, type[Exception]]] = [
    (None, 256, 3, OverflowError),
    (None, -1, 3, OverflowError),
    (None, 1.5, 3, TypeError),
    (None, True, 3, TypeError),
    (None, "a", 3, TypeError),
    (None, b"123", 3, ValueError),
    (None, b"", 3, ValueError),
    (None, 5, 65, isthmus.OutOfRangeError),
    ("int32", 5, 17, isthmus.OutOfRangeError),
    ("int16", 1 << 15, 3, OverflowError),
    ("int16", 1.5, 3, TypeError),
    ("int16", 1, -3, ValueError),
    ("read", 1, 3, isthmus.ReadOnlyError),
]


@pytest.mark.parametrize(("dtype", "pattern", "n", "error"), BAD_FILLS)
@pytest.mark.host_only
def test_bad_fills(dev: Device, dtype: Any, pattern: Any, n: int, error: type[Exception]) -> None:
    ptr = allocated(dev, "device", 64, 8)
    low_level.unsafe_fill(ptr.context, dev, ptr, 9, 64).wait()
    to = read_only(ptr.buffer, "int16") if dtype == "read" else ptr.cast(dtype)
    with pytest.raises(error):
        low_level.unsafe_fill(ptr.context, dev, to, pattern, n).wait()
    assert (contents(ptr) == 9).all()


def test_fills_are_of_memory_that_a_device_has(dev: Device) -> None:
    with pytest.raises(TypeError, match="ndarray"):
        low_level.unsafe_fill(dev.default_context, dev, np.zeros(5), 1, 5)


def test_bad_frees(dev: Device) -> None:
    ptr = allocated(dev, "device", 100)
    with pytest.raises(isthmus.InvalidArgumentError, match="10 bytes past"):
        low_level.free(ptr.context, ptr + 10)
    with pytest.raises(isthmus.WrongContextError):
        low_level.free(isthmus.Context(dev), ptr)
    for wrong in (int(ptr), ptr.buffer, None):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            low_level.free(ptr.context, wrong)  # type: ignore[arg-type]
    assert not ptr.freed


@pytest.mark.parametrize(
    ("nbytes", "alignment", "error"),
    [(-1, 1, ValueError), (10, 3, ValueError), (1 << 63, 1, MemoryError), (1.5, 1, TypeError)],
)
@pytest.mark.host_only
def test_bad_sizes(dev: Device, nbytes: Any, alignment: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        allocated(dev, "device", nbytes, alignment)


def test_bad_places(dev: Device) -> None:
    ctx = dev.default_context
    for call in (low_level.device_alloc, low_level.shared_alloc):
        with pytest.raises(TypeError, match="ctx must be"):
            call(dev, dev, 5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="dev must be"):
            call(ctx, "host", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ctx must be"):
        low_level.host_alloc(dev, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="into an isthmus"):
        low_level.UsmPointer(b"abc")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dev must be"):
        low_level.memory_properties("host")  # type: ignore[arg-type]


def test_no_memory() -> None:
    dev = sim(capacity="1MiB")
    with pytest.raises(isthmus.USMAllocationError):
        allocated(dev, "device", 2 << 20)
    assert sim_state(dev).device_bytes == 0


# ---- properties ------------------------------------------------------------------------------


def test_memory_properties(dev: Device) -> None:
    (told,) = low_level.memory_properties(dev)
    assert told.total_size == dev.total_memory > 0
    assert told.max_allocation == dev.max_allocation
    if "query_free_memory" in dev.capabilities:
        assert told.free_size is not None
        assert told.free_size >= 0
    else:
        assert told.free_size is None


def test_access_properties(dev: Device) -> None:
    told = low_level.memory_access_properties(dev)
    assert bool(told.device) == ("device" in dev.kinds)
    assert bool(told.host) == ("host" in dev.kinds)
    assert bool(told.shared_single_device) == ("shared" in dev.kinds)
    for each in (told.device, told.host):
        assert not each or low_level.Access.RW in each


def test_pointer_queries(dev: Device, kind: str) -> None:
    ptr = allocated(dev, kind, 1000)
    for given in (ptr + 10, int(ptr) + 10, ptr.buffer, Array(ptr.buffer, 250)):
        for told in (
            low_level.properties(given),
            low_level.lookup_alloc(dev.default_context, given),
        ):
            assert (told.kind, told.base, told.nbytes) == (kind, int(ptr), 1000)
    ordinary = np.zeros(5)
    assert low_level.properties(ordinary.ctypes.data).kind == "unknown"
    with pytest.raises(TypeError, match="str"):
        low_level.properties("a")


def test_public_names() -> None:
    for name in low_level.__all__:
        made = getattr(low_level, name)
        assert made.__doc__
        if isinstance(made, type):
            assert made.__module__ == "isthmus.low_level"
