# SPDX-License-Identifier: Apache-2.0
"""isthmus.compat.rmm on a real GPU: allocators, streams and arrays of other libraries, CUDA's own
pools and current device.

A process chooses an allocator once, so each test runs a program of its own.
"""

from __future__ import annotations

import importlib.util

import pytest
from support import has_gpu, python

import isthmus

pytestmark = pytest.mark.skipif(not has_gpu(), reason="no CUDA device")
QUIET = {"PYTHONWARNINGS": "ignore", "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0"}
BEGIN = """
import numpy as np
from isthmus.compat import rmm
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.compat.rmm.pylibrmm.stream import *
tracked = mr.TrackingResourceAdaptor(mr.PoolMemoryResource(mr.CudaMemoryResource()))
mr.set_current_device_resource(tracked)
"""
# A kernel that takes about 0.2 s, and whether CuPy's null stream proceeded before its end.
SPIN = """
import cupy
spin = cupy.RawKernel(
    'extern "C" __global__ void spin(long long n)'
    '{ for (long long t = clock64(); clock64() - t < n;); }', "spin")
def begin(stream):
    with stream:
        spin((1,), (1,), (np.int64(400_000_000),))
def null_waits_for(stream):
    begin(cupy.cuda.ExternalStream(stream.__cuda_stream__()[1]))
    reached = cupy.cuda.Event()
    reached.record(cupy.cuda.Stream.null)
    reached.synchronize()
    is_done = cupy.cuda.ExternalStream(stream.__cuda_stream__()[1]).done
    stream.synchronize()
    return is_done
"""


def run(needs: str, program: str) -> None:
    try:
        found = importlib.util.find_spec(needs)
    except ModuleNotFoundError:
        found = None
    if found is None:
        pytest.skip(f"no {needs}")
    python(BEGIN + program, timeout=200, **QUIET)


def test_cupy_has_its_memory_here() -> None:
    run(
        "cupy",
        """
import cupy
from isthmus.compat.rmm.allocators.cupy import rmm_cupy_allocator
cupy.cuda.set_allocator(rmm_cupy_allocator)
a = cupy.arange(1000)
assert tracked.get_allocated_bytes() == 8000
assert int(a.sum()) == 499_500
other = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
mr.set_current_device_resource(other)
b = a + 1
assert other.allocation_counts.total_bytes == 8000
assert int(b[-1]) == 1000
""",
    )


def test_cupys_arrays_and_streams() -> None:
    run(
        "cupy",
        """
import cupy
theirs = cupy.cuda.Stream()
assert Stream(theirs).__cuda_stream__() == (0, theirs.ptr)
assert Stream(theirs) == Stream(theirs)
assert Stream(cupy.cuda.Stream.null) == DEFAULT_STREAM
made = DeviceBuffer.to_device(np.arange(100, dtype="u1"), Stream(theirs))
array = cupy.asarray(made)
assert array.data.ptr == made.ptr
assert int(array.sum()) == 4950
made = DeviceBuffer(size=8000)
made.copy_from_device(cupy.arange(1000))
assert (np.frombuffer(made.tobytes(), "i8") == np.arange(1000)).all()
pinned = cupy.cuda.alloc_pinned_memory(1 << 20)
host = np.frombuffer(pinned, np.uint8, 1 << 20)
host[:] = 7
back = DeviceBuffer.to_device(host, Stream(theirs))
theirs.synchronize()
assert set(back.tobytes()) == {7}
""",
    )


def test_streams_and_the_default_one() -> None:
    run(
        "cupy",
        SPIN
        + """
assert null_waits_for(Stream())
assert null_waits_for(Stream(flags=CudaStreamFlags.SYNC_DEFAULT))
assert not null_waits_for(Stream(flags=CudaStreamFlags.NON_BLOCKING))
begin(cupy.cuda.Stream.null)
DEFAULT_STREAM.synchronize()
assert cupy.cuda.Stream.null.done
made = DeviceBuffer.to_device(bytes(64 << 20))
array = cupy.ndarray(64 << 20, "u1", cupy.cuda.MemoryPointer(
    cupy.cuda.UnownedMemory(made.ptr, made.size, made), 0))
begin(cupy.cuda.Stream.null)
array[:] = 7  # ordered after the kernel
assert set(made.copy_to_host()[-100:]) == {7}
begin(cupy.cuda.Stream.null)
address = made.ptr
del made, array
others = [DeviceBuffer(size=64 << 20, stream=Stream(flags=1)) for _ in range(4)]
assert address not in [one.ptr for one in others] or cupy.cuda.Stream.null.done
""",
    )


def test_numba_has_its_memory_here() -> None:
    run(
        "numba.cuda",
        """
from numba import cuda
from isthmus.compat.rmm.allocators.numba import RMMNumbaManager
cuda.set_memory_manager(RMMNumbaManager)
a = cuda.to_device(np.arange(100))
assert tracked.get_allocated_bytes() == 800
assert a.copy_to_host().sum() == 4950
assert cuda.current_context().get_memory_info().total > 0
theirs = cuda.stream()
assert Stream(theirs) == Stream(theirs) != DEFAULT_STREAM
assert Stream(cuda.default_stream()) == DEFAULT_STREAM
made = DeviceBuffer(size=800)
made.copy_from_device(a)
assert (np.frombuffer(made.tobytes(), "i8") == np.arange(100)).all()
""",
    )


def test_torch_has_its_memory_here() -> None:
    run(
        "torch",
        """
import torch
from isthmus.compat.rmm.allocators.torch import rmm_torch_allocator
torch.cuda.memory.change_current_allocator(rmm_torch_allocator)
a = torch.ones(1000, device="cuda")
assert tracked.get_allocated_bytes() == 4000
assert float(a.sum()) == 1000
assert Stream(torch.cuda.default_stream()) == DEFAULT_STREAM
assert Stream(torch.cuda.Stream()) != DEFAULT_STREAM
""",
    )


def test_a_pool_of_cudas() -> None:
    run(
        "cuda.bindings",
        """
from cuda.bindings import driver, runtime
driver.cuInit(0)
_, device = driver.cuDeviceGet(0)
_, pool = driver.cuDeviceGetDefaultMemPool(device)
for handle in (pool, runtime.cudaMemPool_t(int(pool))):
    view = mr.CudaAsyncViewMemoryResource(handle)
    assert view.pool_handle() == int(pool)
    for stream in (DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream()):
        made = DeviceBuffer(size=1 << 20, mr=view, stream=stream)
        made.copy_from_host(np.full(1 << 20, 7, "u1"), stream)
        assert set(made.tobytes(stream)) == {7}
        made.free()
    address = view.allocate(1000)
    view.deallocate(address, 1000)
above = mr.PoolMemoryResource(view, maximum_pool_size="64MiB")
assert DeviceBuffer(size=100, mr=above).size == 100
try:
    DeviceBuffer(size=60 << 40, mr=view)
except MemoryError:
    pass
else:
    raise AssertionError("60 TiB")
""",
    )


def test_the_current_device_of_cuda() -> None:
    if len(isthmus.devices("cuda")) < 2:
        pytest.skip("one CUDA device")
    run(
        "cupy",
        """
import cupy
from isthmus import Device
first, second = Device("cuda:0"), Device("cuda:1")
assert DeviceBuffer(size=1).buffer.device == first
with cupy.cuda.Device(1):
    cupy.zeros(1)
    made = DeviceBuffer.to_device(b"abc")
    assert made.buffer.device == second
    assert mr.get_current_device_resource() is mr.get_per_device_resource(1)
    assert int(cupy.asarray(made).sum()) == 294
    with second:
        assert DeviceBuffer(size=1).buffer.device == second
assert DeviceBuffer(size=1).buffer.device == first
with second:
    assert DeviceBuffer(size=1).buffer.device == second
other = DeviceBuffer(size=3)
other.copy_from_device(made)
assert other.tobytes() == b"abc"
assert DeviceBuffer(ptr=made.ptr, size=3).tobytes() == b"abc"
rmm.reinitialize(pool_allocator=True, managed_memory=True, devices=[0, 1])
made = DeviceBuffer.to_device(b"abc")
made.prefetch(1)
made.prefetch(-1)
assert made.tobytes() == b"abc"
""",
    )
