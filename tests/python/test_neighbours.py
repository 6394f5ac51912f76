# SPDX-License-Identifier: Apache-2.0
"""Exchange of memory and streams with PyTorch, CuPy, Numba, cuda.core and JAX on a real GPU."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import filled, has_gpu, noise, until

import isthmus
from isthmus import Buffer, Queue
from isthmus.memory import live

if TYPE_CHECKING:
    from types import ModuleType

DATA = noise(4096)
SEVENS = bytes([7]) * 4096


@pytest.fixture
def queue() -> Queue:
    if not has_gpu():
        pytest.skip("no CUDA device")
    return Queue("cuda:0")


@pytest.fixture
def torch(queue: Queue) -> ModuleType:
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return found


@pytest.fixture
def cupy(queue: Queue) -> ModuleType:
    return pytest.importorskip("cupy")


@pytest.fixture
def numba_cuda(queue: Queue) -> Any:
    pytest.importorskip("numba")
    return pytest.importorskip("numba.cuda")


@pytest.fixture
def cuda_core(queue: Queue) -> Any:
    return pytest.importorskip("cuda.core")


def test_torch_takes_a_buffer(torch: ModuleType, queue: Queue) -> None:
    lent = filled(DATA, kind="device", queue=queue)
    for tensor in (torch.from_dlpack(lent), torch.as_tensor(lent, device="cuda")):
        assert tensor.data_ptr() == lent.ptr
        assert (tensor.cpu().numpy() == DATA).all()
    tensor.fill_(7)
    torch.cuda.synchronize()
    assert lent.tobytes() == SEVENS


@pytest.mark.usefixtures("unpooled")
def test_torch_on_a_second_stream(torch: ModuleType, queue: Queue) -> None:
    stream = torch.cuda.Stream()
    before = live()[0]
    lent = Buffer(64 << 20, kind="device", queue=queue)
    lent.fill(1, blocking=False)
    with torch.cuda.stream(stream):
        tensor = torch.from_dlpack(lent)  # ordered after the fill
        torch.cuda._sleep(100_000_000)
        tensor += 1
    copied = Buffer(64 << 20, kind="host", device="cuda:0")
    copied.copy_from(lent)  # on another queue, after the stream's work
    assert (np.asarray(copied) == 2).all()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        tensor += 1
    copied.free()
    lent.free()
    del tensor, lent
    assert live()[0] > before, "the stream is still at it"
    stream.synchronize()
    assert until(lambda: gc.collect() >= 0 and live()[0] == before)


def test_a_buffer_over_a_tensor(torch: ModuleType) -> None:
    for round_ in range(20):
        tensor = torch.full((1 << 22,), round_, dtype=torch.uint8, device="cuda")
        taken = isthmus.from_dlpack(tensor)
        assert (taken.ptr, taken.kind, taken.nbytes) == (tensor.data_ptr(), "device", 1 << 22)
        got = bytearray(1 << 22)
        copied = taken.copy_to(got, blocking=False)
        del tensor, taken
        others = [torch.full((1 << 22,), 255, dtype=torch.uint8, device="cuda") for _ in range(3)]
        copied.wait()
        assert got == bytes([round_]) * (1 << 22)
        del others


def test_torch_streams_are_queues(torch: ModuleType) -> None:
    stream = torch.cuda.Stream()
    queue = Queue.from_stream(stream)
    assert queue.native_handle == stream.cuda_stream
    assert queue.device.backend == "cuda"
    buffer = Buffer(4096, kind="device", queue=queue)
    torch.cuda._sleep(1000)
    buffer.fill(7, blocking=False)
    with torch.cuda.stream(stream):
        assert bytes(torch.from_dlpack(buffer).cpu().numpy()) == SEVENS
    default = Queue.from_stream(torch.cuda.default_stream())
    assert default == isthmus.Device("cuda:0").default_queue
    kept = Queue("cuda:0")
    ours = torch.cuda.ExternalStream(kept.native_handle)
    assert Queue.from_stream(ours) == kept


def test_tensors_are_sources_and_destinations(torch: ModuleType, queue: Queue) -> None:
    tensor = torch.arange(1024, dtype=torch.float32, device="cuda")
    copied = Buffer(4096, kind="host", queue=queue)
    torch.cuda.synchronize()
    copied.copy_from(tensor)
    assert np.asarray(copied).view(np.float32)[1023] == 1023
    copied.fill(0)
    copied.copy_to(tensor)
    assert float(tensor.sum()) == 0
    with pytest.raises(ValueError, match="contiguous"):
        copied.copy_from(tensor[::2])


def test_cupy(cupy: ModuleType, queue: Queue) -> None:
    lent = filled(DATA, kind="device", queue=queue)
    queue.wait()
    for array in (cupy.from_dlpack(lent), cupy.asarray(lent)):
        assert array.data.ptr == lent.ptr
        assert (cupy.asnumpy(array) == DATA).all()
    array = cupy.full(4096, 7, np.uint8)
    taken = isthmus.from_dlpack(array)
    assert taken.ptr == array.data.ptr
    assert taken.tobytes() == SEVENS
    lent.copy_from(array)
    assert lent.tobytes() == SEVENS


def test_cupy_streams_are_queues(cupy: ModuleType) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    queue = Queue.from_stream(stream)
    assert queue.native_handle == stream.ptr
    buffer = Buffer(4096, kind="device", queue=queue)
    buffer.fill(3, blocking=False)
    with stream:
        array = cupy.from_dlpack(buffer)
        array += 4
    assert buffer.tobytes() == SEVENS
    default = isthmus.Device("cuda:0").default_queue
    assert Queue.from_stream(cupy.cuda.Stream.null) == default


def test_numba(numba_cuda: Any, queue: Queue) -> None:
    lent = filled(DATA, kind="device", queue=queue)
    array = numba_cuda.as_cuda_array(lent)
    assert (array.copy_to_host() == DATA).all()
    theirs = numba_cuda.to_device(np.full(4096, 7, np.uint8))
    numba_cuda.synchronize()  # its interface names no stream, and the copy may be in flight
    lent.copy_from(theirs)
    assert lent.tobytes() == SEVENS
    assert isthmus.memory.as_usm_memory(theirs).nbytes == 4096


def test_cuda_core(cuda_core: Any, queue: Queue) -> None:
    device = cuda_core.Device(0)
    device.set_current()
    ours = device.create_stream(queue)
    assert int(ours.handle) == queue.native_handle
    stream = device.create_stream()
    theirs = Queue.from_stream(stream)
    assert theirs.native_handle == int(stream.handle)
    memory = device.memory_resource.allocate(4096, stream=stream)
    taken = isthmus.from_dlpack(memory)
    taken.fill(7)
    assert taken.tobytes() == SEVENS


def test_jax(queue: Queue) -> None:
    dlpack = pytest.importorskip("jax.dlpack")
    lent = filled(DATA, kind="device", queue=queue)
    assert (np.asarray(dlpack.from_dlpack(lent)) == DATA).all()
