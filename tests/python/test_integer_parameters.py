# SPDX-License-Identifier: Apache-2.0
"""Integer parameters of all public functions: too large, negative or wrong values, by one rule.

An allocation of too many bytes raises USMAllocationError. Any other invalid number raises
ValueError with the number in its message. No function raises OverflowError for an argument that is
no element.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import isthmus
from isthmus import Array, Buffer, Device, IpcHandle, Queue, UnifiedBuffer, USMAllocationError
from isthmus import low_level as low
from isthmus import memory as mem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HUGE = [2**63, 2**64, 10**30]
NBYTES = 64


class Scene:
    """The objects that the functions are called with."""

    def __init__(self) -> None:
        self.queue = Queue("host")
        self.device = Device("host")
        self.context = self.queue.context
        self.buffer = Buffer(NBYTES, kind="host", queue=self.queue)
        self.array = Array(self.buffer, (4, 4), "f4")
        self.pool = mem.PoolResource("host", self.device)
        self.unified = UnifiedBuffer(16, "f4", device=self.device)
        self.pointer = low.host_alloc(self.context, NBYTES)
        self.on: dict[str, Any] = {"kind": "host", "queue": self.queue}
        self.data = bytearray(NBYTES)
        self.blocks = isthmus.BufferPool()


# Sizes of memory to allocate; -1 is a ValueError.
SIZES: dict[str, Any] = {
    "Buffer.__init__.nbytes": lambda s, n: Buffer(n, **s.on),
    "MemoryResource.allocate.nbytes": lambda s, n: s.pool.allocate(n),
    "PoolResource.__init__.initial_bytes": lambda s, n: mem.PoolResource(
        "host", s.device, initial_bytes=n
    ),
    "PoolResource over another": lambda s, n: mem.PoolResource(s.pool, initial_bytes=n),
    "empty.shape": lambda s, n: isthmus.empty(n, **s.on),
    "zeros.shape": lambda s, n: isthmus.zeros((2, n), **s.on),
    "ones.shape": lambda s, n: isthmus.ones(n, **s.on),
    "full.shape": lambda s, n: isthmus.full(n, 1, **s.on),
    "empty_like.shape": lambda s, n: isthmus.empty_like(s.array, shape=n),
    "zeros_like.shape": lambda s, n: isthmus.zeros_like(s.array, shape=n),
    "ones_like.shape": lambda s, n: isthmus.ones_like(s.array, shape=(n, 1)),
    "full_like.shape": lambda s, n: isthmus.full_like(s.array, 1, shape=n),
    "MemoryUSMDevice.__init__.other": lambda s, n: mem.MemoryUSMDevice(n, queue=s.queue),
    "MemoryUSMShared.__init__.other": lambda s, n: mem.MemoryUSMShared(n, queue=s.queue),
    "MemoryUSMHost.__init__.other": lambda s, n: mem.MemoryUSMHost(n, queue=s.queue),
    "UnifiedBuffer.__init__.shape": lambda s, n: UnifiedBuffer(n, "u1", device=s.device),
    "BufferPool.acquire.shape": lambda s, n: s.blocks.acquire(n, "u1", queue=s.queue),
    "BufferPool.buffer.shape": lambda s, n: s.blocks.buffer(n, "u1", queue=s.queue).__enter__(),
    "device_alloc.nbytes": lambda s, n: low.device_alloc(s.context, s.device, n),
    "shared_alloc.nbytes": lambda s, n: low.shared_alloc(s.context, s.device, n),
    "host_alloc.nbytes": lambda s, n: low.host_alloc(s.context, n),
}
# Parameters for which -1 has a meaning: an axis from the end, an inferred extent, no alignment.
SIGNED: dict[str, Any] = {
    "Array.reshape.shape": lambda s, n: s.array.reshape(n),
    "reshape.shape": lambda s, n: isthmus.reshape(s.array, n),
    "Array.swapaxes.axis1": lambda s, n: s.array.swapaxes(n, 0),
    "Array.swapaxes.axis2": lambda s, n: s.array.swapaxes(0, n),
    "Array.transpose.axes": lambda s, n: s.array.transpose(0, n),
    "Array.squeeze.axis": lambda s, n: s.array[:1, :1].squeeze(n),
    "squeeze.axis": lambda s, n: isthmus.squeeze(s.array[:1, :1], n),
    "permute_dims.axes": lambda s, n: isthmus.permute_dims(s.array, (0, n)),
    "moveaxis.source": lambda s, n: isthmus.moveaxis(s.array, n, 0),
    "moveaxis.destination": lambda s, n: isthmus.moveaxis(s.array, 0, n),
    "expand_dims.axis": lambda s, n: isthmus.expand_dims(s.array, axis=n),
    "flip.axis": lambda s, n: isthmus.flip(s.array, axis=n),
    "scatter.axis": lambda s, n: isthmus.scatter(s.array, [s.device], n, kind="host"),
    "gather.axis": lambda s, n: isthmus.gather([s.array], axis=n),
    "Buffer.__init__.alignment": lambda s, n: Buffer(8, alignment=n, **s.on),
    "empty.alignment": lambda s, n: isthmus.empty(8, alignment=n, **s.on),
    "zeros.alignment": lambda s, n: isthmus.zeros(8, alignment=n, **s.on),
    "ones.alignment": lambda s, n: isthmus.ones(8, alignment=n, **s.on),
    "full.alignment": lambda s, n: isthmus.full(8, 1, alignment=n, **s.on),
    "empty_like.alignment": lambda s, n: isthmus.empty_like(s.array, alignment=n),
    "zeros_like.alignment": lambda s, n: isthmus.zeros_like(s.array, alignment=n),
    "ones_like.alignment": lambda s, n: isthmus.ones_like(s.array, alignment=n),
    "full_like.alignment": lambda s, n: isthmus.full_like(s.array, 1, alignment=n),
    "MemoryUSMDevice.__init__.alignment": lambda s, n: mem.MemoryUSMDevice(
        8, alignment=n, queue=s.queue
    ),
    "MemoryUSMShared.__init__.alignment": lambda s, n: mem.MemoryUSMShared(
        8, alignment=n, queue=s.queue
    ),
    "MemoryUSMHost.__init__.alignment": lambda s, n: mem.MemoryUSMHost(
        8, alignment=n, queue=s.queue
    ),
    "device_alloc.alignment": lambda s, n: low.device_alloc(s.context, s.device, 8, n),
    "shared_alloc.alignment": lambda s, n: low.shared_alloc(s.context, s.device, 8, n),
    "host_alloc.alignment": lambda s, n: low.host_alloc(s.context, 8, n),
    "UsmPointer.__sub__.other": lambda s, n: s.pointer - n,
}
# Addresses and handles, for which 2**63 may be valid.
ADDRESSES: dict[str, Any] = {
    "Device.from_handle.handle": lambda s, n: Device.from_handle(n, "host"),
    "Context.from_handle.handle": lambda s, n: isthmus.Context.from_handle(n, s.device),
    "Queue.from_handle.handle": lambda s, n: Queue.from_handle(n, s.device),
    "query.pointer": lambda s, n: mem.query(n),
    "Buffer.adopt.ptr": lambda s, n: Buffer.adopt(n, 8, queue=s.queue),
    "pin of an address": lambda s, n: isthmus.pin(n, 8, device=s.device),
}
NUMBERS: dict[str, Any] = {
    "Queue.copy.nbytes": lambda s, n: s.queue.copy(s.buffer, s.data, n),
    "Queue.copy.dst_offset": lambda s, n: s.queue.copy(s.buffer, s.data, 1, dst_offset=n),
    "Queue.copy.src_offset": lambda s, n: s.queue.copy(s.buffer, s.data, 1, src_offset=n),
    "Queue.copy_2d.width": lambda s, n: s.queue.copy_2d(s.buffer, s.data, n, 1),
    "Queue.copy_2d.height": lambda s, n: s.queue.copy_2d(s.buffer, s.data, 1, n),
    "Queue.copy_2d.dst_pitch": lambda s, n: s.queue.copy_2d(s.buffer, s.data, 1, 2, dst_pitch=n),
    "Queue.copy_2d.src_pitch": lambda s, n: s.queue.copy_2d(s.buffer, s.data, 1, 2, src_pitch=n),
    "Queue.copy_2d.dst_offset": lambda s, n: s.queue.copy_2d(s.buffer, s.data, 1, 2, dst_offset=n),
    "Queue.copy_2d.src_offset": lambda s, n: s.queue.copy_2d(s.buffer, s.data, 1, 2, src_offset=n),
    "Queue.fill.offset": lambda s, n: s.queue.fill(s.buffer, 0, offset=n),
    "Queue.fill.nbytes": lambda s, n: s.queue.fill(s.buffer, 0, nbytes=n),
    "Queue.memcpy.count": lambda s, n: s.queue.memcpy(s.buffer, s.data, n),
    "Queue.memcpy_async.count": lambda s, n: s.queue.memcpy_async(s.buffer, s.data, n),
    "Queue.prefetch.count": lambda s, n: s.queue.prefetch(s.buffer, n),
    "Queue.mem_advise.count": lambda s, n: s.queue.mem_advise(s.buffer, n, 0),
    "Queue.mem_advise.advice": lambda s, n: s.queue.mem_advise(s.buffer, 8, n),
    "Budget.__init__.limit": lambda s, n: isthmus.Budget(n, s.device),
    "MemoryResource.allocate.alignment": lambda s, n: s.pool.allocate(8, n),
    "MemoryResource.trim.keep_bytes": lambda s, n: s.pool.trim(n),
    "PoolResource.__init__.growth_bytes": lambda s, n: mem.PoolResource(
        "host", s.device, growth_bytes=n
    ),
    "PoolResource.__init__.limit_bytes": lambda s, n: mem.PoolResource(
        "host", s.device, limit_bytes=n
    ),
    "PoolResource.__init__.soft_limit_bytes": lambda s, n: mem.PoolResource(
        "host", s.device, soft_limit_bytes=n
    ),
    "LimitResource.__init__.limit_bytes": lambda s, n: mem.LimitResource(s.pool, n),
    "AlignedResource.__init__.alignment": lambda s, n: mem.AlignedResource(s.pool, n),
    "AlignedResource.__init__.min_bytes": lambda s, n: mem.AlignedResource(s.pool, 64, n),
    "BinningResource.__init__.bins": lambda s, n: mem.BinningResource(s.pool, {n: s.pool}),
    "TrackingResource.__init__.frames": lambda s, n: mem.TrackingResource(s.pool, n),
    "TrackingResource.__init__.native_frames": lambda s, n: mem.TrackingResource(s.pool, 0, n),
    "MonotonicResource.__init__.first_bytes": lambda s, n: mem.MonotonicResource(s.pool, n),
    "FixedSizeResource.__init__.block_bytes": lambda s, n: mem.FixedSizeResource(s.pool, n),
    "FixedSizeResource.__init__.blocks": lambda s, n: mem.FixedSizeResource(s.pool, 64, n),
    "ArenaResource.__init__.limit_bytes": lambda s, n: mem.ArenaResource(s.pool, n),
    "DebugResource.__init__.kept_bytes": lambda s, n: mem.DebugResource(s.pool, n),
    "Buffer.adopt.nbytes": lambda s, n: Buffer.adopt(s.buffer.ptr, n, queue=s.queue),
    "Buffer.copy_from.nbytes": lambda s, n: s.buffer.copy_from(s.data, nbytes=n),
    "Buffer.copy_from.offset": lambda s, n: s.buffer.copy_from(s.data, offset=n),
    "Buffer.copy_from.src_offset": lambda s, n: s.buffer.copy_from(s.data, src_offset=n),
    "Buffer.copy_to.nbytes": lambda s, n: s.buffer.copy_to(s.data, nbytes=n),
    "Buffer.copy_to.offset": lambda s, n: s.buffer.copy_to(s.data, offset=n),
    "Buffer.copy_to.dst_offset": lambda s, n: s.buffer.copy_to(s.data, dst_offset=n),
    "Buffer.copy_from_2d.width": lambda s, n: s.buffer.copy_from_2d(s.data, n, 1),
    "Buffer.copy_from_2d.height": lambda s, n: s.buffer.copy_from_2d(s.data, 1, n),
    "Buffer.copy_from_2d.pitch": lambda s, n: s.buffer.copy_from_2d(s.data, 1, 2, pitch=n),
    "Buffer.copy_from_2d.other_pitch": lambda s, n: s.buffer.copy_from_2d(
        s.data, 1, 2, other_pitch=n
    ),
    "Buffer.copy_from_2d.offset": lambda s, n: s.buffer.copy_from_2d(s.data, 1, 2, offset=n),
    "Buffer.copy_from_2d.other_offset": lambda s, n: s.buffer.copy_from_2d(
        s.data, 1, 2, other_offset=n
    ),
    "Buffer.copy_to_2d.width": lambda s, n: s.buffer.copy_to_2d(s.data, n, 1),
    "Buffer.copy_to_2d.height": lambda s, n: s.buffer.copy_to_2d(s.data, 1, n),
    "Buffer.copy_to_2d.pitch": lambda s, n: s.buffer.copy_to_2d(s.data, 1, 2, pitch=n),
    "Buffer.copy_to_2d.other_pitch": lambda s, n: s.buffer.copy_to_2d(s.data, 1, 2, other_pitch=n),
    "Buffer.copy_to_2d.offset": lambda s, n: s.buffer.copy_to_2d(s.data, 1, 2, offset=n),
    "Buffer.copy_to_2d.other_offset": lambda s, n: s.buffer.copy_to_2d(
        s.data, 1, 2, other_offset=n
    ),
    "Buffer.fill.offset": lambda s, n: s.buffer.fill(0, offset=n),
    "Buffer.fill.nbytes": lambda s, n: s.buffer.fill(0, nbytes=n),
    "a byte": lambda s, n: s.buffer.fill(n),
    "Buffer.prefetch.offset": lambda s, n: s.buffer.prefetch(offset=n),
    "Buffer.prefetch.nbytes": lambda s, n: s.buffer.prefetch(nbytes=n),
    "Buffer.advise.advice": lambda s, n: s.buffer.advise(n),
    "Buffer.advise.offset": lambda s, n: s.buffer.advise(0, offset=n),
    "Buffer.advise.nbytes": lambda s, n: s.buffer.advise(0, nbytes=n),
    "Buffer.__dlpack__.max_version": lambda s, n: s.buffer.__dlpack__(max_version=(n, 0)),
    "Buffer.__dlpack__.dl_device": lambda s, n: s.buffer.__dlpack__(dl_device=(1, n)),
    "Array.__dlpack__.max_version": lambda s, n: s.array.__dlpack__(max_version=(n, 0)),
    "Array.__dlpack__.dl_device": lambda s, n: s.array.__dlpack__(dl_device=(n, 0)),
    "Array.__init__.shape": lambda s, n: Array(s.buffer, n),
    "Array.__init__.strides": lambda s, n: Array(s.buffer, (2,), strides=(n,)),
    "Array.__init__.offset": lambda s, n: Array(s.buffer, 1, offset=n),
    "broadcast_to.shape": lambda s, n: isthmus.broadcast_to(s.array[:1, :1], (n, 1)),
    "IpcHandle.__init__.offset": lambda s, n: IpcHandle(bytes(64), n, 1),
    "IpcHandle.__init__.nbytes": lambda s, n: IpcHandle(bytes(64), 0, n),
    "copy_ranges.ranges": lambda s, n: isthmus.copy_ranges(s.buffer, s.data, [(0, n, 1)]),
    "copy_ranges of many bytes": lambda s, n: isthmus.copy_ranges(s.buffer, s.data, [(0, 0, n)]),
    "copy_ranges.nbytes": lambda s, n: isthmus.copy_ranges(s.buffer, s.data, [(0, 0)], nbytes=n),
    "copy_nd.shape": lambda s, n: isthmus.copy_nd(s.buffer, s.data, shape=(n,)),
    "copy_nd.itemsize": lambda s, n: isthmus.copy_nd(s.buffer, s.data, shape=(1,), itemsize=n),
    "copy_nd.dst_strides": lambda s, n: isthmus.copy_nd(
        s.buffer, s.data, shape=(2,), dst_strides=(n,)
    ),
    "copy_nd.src_strides": lambda s, n: isthmus.copy_nd(
        s.buffer, s.data, shape=(2,), src_strides=(n,)
    ),
    "copy_nd.dst_offset": lambda s, n: isthmus.copy_nd(s.buffer, s.data, shape=(2,), dst_offset=n),
    "copy_nd.src_offset": lambda s, n: isthmus.copy_nd(s.buffer, s.data, shape=(2,), src_offset=n),
    "memset": lambda s, n: mem.MemoryUSMHost(8, queue=s.queue).memset(n),
    "pin.nbytes": lambda s, n: isthmus.pin(s.buffer.ptr, n, device=s.device),
    "BufferPool.__init__.max_buffers": lambda s, n: refuse_large(isthmus.BufferPool, n),
    "BufferPool.__init__.max_buffer_bytes": lambda s, n: refuse_large(isthmus.BufferPool, n, 1),
    "batches.size": lambda s, n: refuse_large(lambda size: isthmus.batches([1], size=size), n),
    "Accelerator.get_device.device_id": lambda s, n: isthmus.get_accelerator().get_device(n),
    "Accelerator.set_device.device_id": lambda s, n: isthmus.get_accelerator().set_device(n),
    "Accelerator.synchronize.device_id": lambda s, n: isthmus.get_accelerator().synchronize(n),
    "Accelerator.get_memory_info.device_id": lambda s, n: isthmus.get_accelerator().get_memory_info(
        n
    ),
    "a range of a unified buffer": lambda s, n: s.unified.mark_device_dirty((0, n)),
    "a range's begin": lambda s, n: s.unified.mark_host_dirty((n, n)),
    "sync_to_device": lambda s, n: s.unified.sync_to_device((0, n)),
    "sync_to_host": lambda s, n: s.unified.sync_to_host((0, n)),
    "resolve": lambda s, n: s.unified.resolve("host", (0, n)),
    "UsmPointer.__init__.offset": lambda s, n: low.UsmPointer(s.buffer, n),
    "UsmPointer.__add__.nbytes": lambda s, n: s.pointer + n,
    "unsafe_copyto.n": lambda s, n: low.unsafe_copyto(s.context, s.device, s.pointer, s.data, n),
    "unsafe_copyto of addresses": lambda s, n: low.unsafe_copyto(
        s.context, s.device, s.buffer.ptr, np.zeros(8).ctypes.data, n
    ),
    "unsafe_fill.n": lambda s, n: low.unsafe_fill(s.context, s.device, s.pointer, 1, n),
    "CommandList.append_copy.nbytes": lambda s, n: low.execute(
        s.queue, lambda made: made.append_copy(s.pointer, s.data, n)
    ),
    "CommandList.append_fill.nbytes": lambda s, n: low.execute(
        s.queue, lambda made: made.append_fill(s.pointer, 1, n)
    ),
}


def refuse_large(make: Callable[..., object], number: int, place: int = 0) -> None:
    """For Python's unbounded integers, on which the library imposes no limit."""
    make(*[1] * place, number)
    raise ValueError(f"{number} is taken")


ALL = SIZES | SIGNED | ADDRESSES | NUMBERS


class Refusal:
    """The exception of a call, without its frames, which would keep the scene alive."""

    def __init__(self, name: str, number: Any) -> None:
        self.type: type[BaseException] | None = None
        try:
            ALL[name](Scene(), number)
        except BaseException as raised:
            self.type, self.text, self.cause = type(raised), str(raised), raised.__cause__
            for each in (raised, raised.__cause__, raised.__context__):
                if each is not None:
                    each.__traceback__ = None
        assert self.type is not None, f"{name} takes {number!r}"

    def is_a(self, error: type[BaseException]) -> bool:
        return self.type is not None and issubclass(self.type, error)


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("name", SIZES)
def test_memory_of_too_many_bytes(name: str, number: int) -> None:
    refused = Refusal(name, number)
    assert refused.is_a(USMAllocationError), refused.type
    assert str(number) in refused.text


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("name", [*SIGNED, *NUMBERS])
def test_numbers_that_are_too_large(name: str, number: int) -> None:
    refused = Refusal(name, number)
    assert refused.is_a(ValueError), refused.type
    assert str(number) in refused.text


@pytest.mark.parametrize("number", [2**64, 10**30, -1])
@pytest.mark.parametrize("name", ADDRESSES)
def test_numbers_that_are_no_addresses(name: str, number: int) -> None:
    refused = Refusal(name, number)
    assert refused.is_a(ValueError), refused.type
    assert str(number) in refused.text


@pytest.mark.parametrize("number", [-1, -(2**100)])
@pytest.mark.parametrize("name", [*SIZES, *NUMBERS])
def test_negative_numbers(name: str, number: int) -> None:
    refused = Refusal(name, number)
    assert refused.is_a(ValueError), refused.type
    assert str(number) in refused.text


class Raises:
    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __index__(self) -> int:
        raise self.error("theirs")


@pytest.mark.parametrize("error", [IndexError, TypeError, ZeroDivisionError])
@pytest.mark.parametrize("name", ALL)
def test_what_an_index_raises_is_the_cause(name: str, error: type[Exception]) -> None:
    """For objects that are integers only by `__index__`, such as arrays of other libraries."""
    refused = Refusal(name, Raises(error))
    if name in WITHOUT_CAUSE:
        assert refused.is_a(TypeError) or refused.is_a(ValueError)
    else:
        assert refused.type is TypeError
        assert type(refused.cause) is error


# Parameters for which an object that fails to convert to an integer may be no number at all.
WITHOUT_CAUSE = {
    "MemoryUSMDevice.__init__.other",
    "MemoryUSMShared.__init__.other",
    "MemoryUSMHost.__init__.other",
}


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("name", [name for name in ALL if name not in WITHOUT_CAUSE])
def test_what_is_raised_as_it_is(name: str, error: type[BaseException]) -> None:
    refused = Refusal(name, Raises(error))
    assert (refused.type, refused.text) == (error, "theirs")


@pytest.mark.parametrize("seconds", [10**400, float("inf")], ids=["integer", "float"])
def test_seconds_without_an_end(seconds: float) -> None:
    """An integer that exceeds the range of float is treated as infinity."""
    made = Queue("host").fence()
    made.wait(seconds)
    with pytest.raises(ValueError, match="0 seconds or more"):
        made.wait(-seconds)


def integers_of(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """Each integer parameter of a public function, as class.function.parameter."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from integers_of(node, f"{node.name}.")
        is_public = isinstance(node, ast.FunctionDef) and (
            not node.name.startswith("_") or node.name in ("__init__", "__dlpack__")
        )
        if isinstance(node, ast.FunctionDef) and is_public:
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            for each in given:
                names = ast.walk(each.annotation) if each.annotation is not None else ()
                if any(isinstance(name, ast.Name) and name.id == "int" for name in names):
                    yield f"{prefix}{node.name}.{each.arg}"


# Callbacks of the caller, which take an integer.
CALLBACKS = {"FailureCallbackResource.__init__.function", "OomCallback.__init__.function"}


def test_no_integer_is_left_out() -> None:
    tree = ast.parse(Path(isthmus.__file__).with_name("_core.pyi").read_text())
    assert set(integers_of(tree)) - CALLBACKS <= set(ALL)
