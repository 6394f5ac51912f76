# SPDX-License-Identifier: Apache-2.0
"""RMM's allocators for other libraries, tested with stand-ins for CuPy and Numba.

``test_compat_rmm_cuda.py`` tests them with the real libraries where there is a GPU.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from compat_rmm_support import on
from support import has_cuda, python

from isthmus import Queue
from isthmus.compat.rmm import DeviceBuffer, mr

if TYPE_CHECKING:
    from isthmus import Device

__all__ = ["on"]


def test_cupy_has_the_resource_of_now(on: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bins may change after its first allocation; a DeviceBuffer owns the memory."""
    own = Queue(on)
    made: list[tuple[int, int, DeviceBuffer, int]] = []
    stand_in = SimpleNamespace(
        cuda=SimpleNamespace(
            get_current_stream=lambda: own,
            device=SimpleNamespace(get_device_id=lambda: 7),
            UnownedMemory=lambda *given: made.append(given),
            MemoryPointer=lambda memory, offset: memory,
        )
    )
    from isthmus.compat.rmm.allocators import cupy as module

    monkeypatch.setattr(module, "cupy", stand_in)
    bins = mr.BinningMemoryResource(mr.CudaMemoryResource())
    mr.set_current_device_resource(bins)
    for nbytes in (42, 0, 42):
        module.rmm_cupy_allocator(nbytes)
        bins.add_bin(1024)
        address, size, owner, device = made[-1]
        assert isinstance(owner, DeviceBuffer)
        assert (address, size, owner.size) == (owner.ptr, nbytes, nbytes)
        assert (address != 0, device) == ((True, -1) if nbytes else (False, 7))
        assert owner.mr is bins
        assert owner.stream.queue == own
    monkeypatch.setattr(module, "cupy", None)
    with pytest.raises(ModuleNotFoundError, match="cupy"):
        module.rmm_cupy_allocator(10)


FOLLOWED = """
import ctypes
import isthmus.compat.rmm as rmm
from isthmus import Device, _frameworks
from isthmus.compat.rmm import mr
from isthmus.compat.rmm.pylibrmm.memory_resource._per_device import follow
number = _frameworks.torch_following()
functions = _frameworks.torch_functions(number)
allocate = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)(functions["alloc"])
free = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)(functions["free"])
device = Device("cuda:0")
def live(counted):
    return counted.allocation_counts.current_bytes
with device:
    follow(lambda of, resource: _frameworks.torch_follow(number, 0, resource), [device])
    first = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    second = mr.StatisticsResourceAdaptor(mr.PoolMemoryResource(mr.CudaMemoryResource()))
    mr.set_current_device_resource(first)
    one = allocate(1000, 0, None)
    assert live(first) == 1000
    mr.set_current_device_resource(second)
    two = allocate(2000, 0, None)
    assert (live(first), live(second)) == (1000, 2000)
    bins = mr.BinningMemoryResource(second)
    mr.set_current_device_resource(bins)
    bins.add_bin(4096, first)
    three = allocate(3000, 0, None)
    assert (live(first), live(second)) == (4000, 2000)
    rmm.reinitialize()
    four = allocate(10, 0, None)
    for block, size in ((one, 1000), (two, 2000), (three, 3000), (four, 10)):
        free(block, size, 0, None)
    assert live(first) == live(second) == 0
    assert first.allocation_counts.total_bytes == 4000
"""


@pytest.mark.skipif(not has_cuda(), reason="no CUDA device")
def test_pytorch_has_the_resource_of_now() -> None:
    """Calls the functions that PyTorch calls: blocks return to the resource they came from."""
    python(FOLLOWED)


NUMBA = """
import collections, sys, types
numba, cuda = types.ModuleType("numba"), types.ModuleType("numba.cuda")
class Manager:
    def __init__(self, context):
        self.context = context
cuda.HostOnlyCUDAMemoryManager = Manager
cuda.MemoryPointer = lambda context, pointer, size, finalizer: pointer
cuda.MemoryInfo = collections.namedtuple("MemoryInfo", "free total")
numba.cuda = cuda
sys.modules.update({"numba": numba, "numba.cuda": cuda})

from isthmus import Device
from isthmus.compat.rmm import mr
from isthmus.compat.rmm.allocators.numba import RMMNumbaManager
with Device("cuda:0"):
    counted = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    mr.set_current_device_resource(counted)
manager = RMMNumbaManager(types.SimpleNamespace(device=types.SimpleNamespace(id=0)))
manager.initialize()
with Device("host"):
    pointer = manager.memalloc(100)
assert counted.allocation_counts.total_bytes == 100
"""


@pytest.mark.skipif(not has_cuda(), reason="no CUDA device")
def test_numba_uses_memory_of_its_own_device() -> None:
    """The memory is on that device, whichever device is current."""
    python(NUMBA)
