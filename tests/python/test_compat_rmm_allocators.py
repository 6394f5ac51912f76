"""RMM's allocators of others without these: what they are given, by stand-ins for CuPy and Numba.

``test_compat_rmm_cuda.py`` has them with the real ones, where there is a card.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from compat_rmm_support import on
from support import has_cuda, python

from isthmus.compat.rmm import mr

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Device
    from isthmus.memory import MemoryResource

__all__ = ["on"]


def test_cupy_has_the_resource_of_now(on: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose bins may be others than at its first allocation."""
    made: list[MemoryResource] = []

    def allocator_of(resource: MemoryResource) -> Callable[[int], MemoryResource]:
        made.append(resource)
        return lambda nbytes: resource

    stand_in = ModuleType("isthmus.cupy")
    stand_in.allocator_of = allocator_of  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "isthmus.cupy", stand_in)
    from isthmus.compat.rmm.allocators.cupy import rmm_cupy_allocator

    bins = mr.BinningMemoryResource(mr.CudaMemoryResource())
    mr.set_current_device_resource(bins)
    for _ in range(2):
        first = bins.resource
        assert rmm_cupy_allocator(10) is first
        assert rmm_cupy_allocator(10) is first
        bins.add_bin(1024)
        assert bins.resource is not first
    assert rmm_cupy_allocator(10) is bins.resource
    assert len(made) == 3


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
def test_numba_has_memory_of_its_own_device() -> None:
    """Whatever the current one is."""
    python(NUMBA)
