# SPDX-License-Identifier: Apache-2.0
"""Isthmus as the allocator of PyTorch, CuPy and Numba, each on a real GPU.

A process chooses an allocator once, so each test runs a program of its own. It is skipped if that
program lacks a module.
"""

from __future__ import annotations

import importlib.util

import pytest
from support import has_gpu, python

pytestmark = pytest.mark.skipif(not has_gpu(), reason="no CUDA device")
QUIET = {"PYTHONWARNINGS": "ignore", "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0"}

TORCH = """
import gc, threading
import torch
import isthmus.torch
def refused(call, *texts):
    try:
        call()
    except RuntimeError as told:
        missing = [text for text in texts if text not in str(told)]
        assert not missing, (missing, str(told))
    else:
        raise AssertionError("not refused")
def ones(nbytes):
    return torch.full((nbytes,), 1, dtype=torch.uint8, device="cuda")
"""
USED = TORCH + "isthmus.torch.use()\n"


def run(needs: str, program: str, **environment: str) -> str:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"no {needs}")
    return python(program, timeout=200, **QUIET, **environment).stdout


def test_torch_has_its_memory_here() -> None:
    run(
        "torch",
        USED
        + """
isthmus.torch.use()
refused(lambda: isthmus.torch.use(isthmus.memory.PoolResource("device", "cuda:0")), "once in a")
a = ones(1 << 20)
told = isthmus.torch.stats()
assert (told.live_bytes, told.live_count) == (1 << 20, 1), told
found = isthmus.memory.query(a.data_ptr())
assert found.kind == "device" and found.state == "live" and found.device.filter == "cuda:gpu:0"
assert isthmus.torch.stats(0).held_bytes == isthmus.torch.stats("cuda:0").held_bytes > 1 << 20
address = a.data_ptr()
del a
assert ones(1 << 20).data_ptr() == address
torch.cuda.synchronize()
assert isthmus.torch.stats().live_bytes == 0
while isthmus.torch.stats().held_bytes:  # what ended is seen on a thread of the library's
    torch.cuda.empty_cache()
""",
    )


def test_torch_trains_to_the_same_losses() -> None:
    program = """
import sys, torch
if sys.argv[1:] == ["isthmus"]:
    import isthmus.torch
    isthmus.torch.use()
torch.use_deterministic_algorithms(True)
torch.manual_seed(0)
sizes = (64, 256, 256, 1)
layers = [torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
net = torch.nn.Sequential(*(x for each in layers for x in (each, torch.nn.Tanh()))).cuda()
optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(100):
    x = torch.randn(32 + 7 * (step % 13), 64).cuda()
    loss = ((net(x) - x.mean(1, keepdim=True)) ** 2).mean()
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    print(loss.item().hex())
"""
    environment = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", **QUIET}
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch")
    own = python(program, timeout=200, **environment).stdout
    ours = python(program, "isthmus", timeout=200, **environment).stdout
    assert own == ours
    assert len(own.splitlines()) == 100


def test_torch_on_a_second_stream() -> None:
    run(
        "torch",
        USED
        + """
side = torch.cuda.Stream()
for nbytes in (1000, 1 << 20, 64 << 20):
    a = ones(nbytes)
    address = a.data_ptr()
    side.wait_stream(torch.cuda.current_stream())
    a.record_stream(side)
    with torch.cuda.stream(side):
        torch.cuda._sleep(2_000_000_000)
        b = a.clone()  # ordered after the recorded use
    del a
    others = [torch.full((nbytes,), 2, dtype=torch.uint8, device="cuda") for _ in range(8)]
    assert not side.query(), "too little work for this test"
    assert address not in [each.data_ptr() for each in others]
    side.synchronize()
    assert int(b.min()) == 1 == int(b.max())
    del others, b
torch.cuda.synchronize()
while isthmus.torch.stats().held_bytes:  # all of it comes back
    torch.cuda.empty_cache()
""",
    )


def test_torch_on_eight_threads() -> None:
    run(
        "torch",
        USED
        + """
wrong = []
def work(name):
    with torch.cuda.stream(torch.cuda.Stream()):
        kept = []
        for turn in range(600):
            kept.append((name + turn, torch.full((1 + turn * 9973 % 400_000,), name + turn,
                                                 dtype=torch.int32, device="cuda")))
            if len(kept) > 12:
                wanted, tensor = kept.pop(turn % 12)
                if not bool((tensor == wanted).all()):
                    wrong.append((name, turn))
threads = [threading.Thread(target=work, args=(1000 * name,)) for name in range(8)]
for each in threads: each.start()
for each in threads: each.join()
assert not wrong, wrong
torch.cuda.synchronize()
assert isthmus.torch.stats().live_bytes == 0
""",
    )


def test_torch_reports_out_of_memory() -> None:
    run(
        "torch",
        USED
        + """
torch.cuda.set_per_process_memory_fraction(0.1)  # others use the card too
total = torch.cuda.mem_get_info()[1]
refused(lambda: ones(1 << 40), "CUDA out of memory. ")
kept = []
def fill():
    while True:
        kept.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
refused(fill, "CUDA out of memory. ", "256 MiB", "tried", "To do: free buffers")
assert total // 10 - len(kept) * (256 << 20) < 512 << 20
kept.clear()
assert int(ones(1 << 28).sum()) == 1 << 28
""",
    )


def test_torch_and_graphs() -> None:
    run(
        "torch",
        USED
        + """
a = torch.ones(1000, device="cuda")
b = torch.empty_like(a)
torch.cuda.synchronize()
def capture():
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        return a * 2
refused(capture, "being captured into a graph")
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    torch.mul(a, 2, out=b)
graph.replay()
assert float(b.sum()) == 2000
""",
    )


def test_torch_rejects_unrouted_calls_by_name() -> None:
    run(
        "torch",
        USED
        + """
a = torch.ones(1000, device="cuda")
for call in (torch.cuda.memory_stats, torch.cuda.memory_allocated, torch.cuda.memory_snapshot,
             torch.cuda.reset_peak_memory_stats, a.untyped_storage()._share_cuda_):
    refused(call, "does not yet support")
refused(lambda: torch.cuda.set_per_process_memory_fraction(0.5), "before the first allocation")
assert torch.cuda.get_allocator_backend() == "pluggable"
""",
    )


def test_torch_within_a_fraction() -> None:
    run(
        "torch",
        USED
        + """
torch.cuda.set_per_process_memory_fraction(0.25)
total = torch.cuda.mem_get_info()[1]
kept = ones(total // 8)
refused(lambda: ones(total // 4), "CUDA out of memory. ", "budget")
""",
    )


def test_torch_has_its_own_allocator_already() -> None:
    run(
        "torch",
        TORCH
        + """
a = ones(1000)
refused(isthmus.torch.use, "in use already: call isthmus.torch.use() before")
assert int(a.sum()) == 1000
""",
    )


def test_torch_has_one_pool_here() -> None:
    run(
        "torch",
        TORCH
        + """
if not hasattr(torch.cuda, "MemPool"):
    raise SystemExit
mine = isthmus.memory.PoolResource("device", "cuda:0")
pool = torch.cuda.MemPool(isthmus.torch.allocator(mine))
with torch.cuda.use_mem_pool(pool):
    a = ones(1 << 20)
assert isthmus.memory.query(a.data_ptr()).state == "live"
assert isthmus.torch.stats(resource=mine).live_bytes >= 1 << 20
b = ones(1 << 20)
assert isthmus.memory.query(b.data_ptr()).state == "unknown"
del a
""",
    )


def test_torch_ends_well() -> None:
    run(
        "torch",
        USED
        + """
import atexit
kept = ones(1 << 20)
class Late:
    def __init__(self): self.has, self.me = ones(1 << 20), self
late = Late()
atexit.register(lambda: ones(1000))
torch.nn.Linear(10, 10).cuda()(torch.ones(3, 10, device="cuda")).sum().backward()
torch.cuda._sleep(100_000_000)
threading.Thread(target=lambda: ones(1000)).start()
""",
    )


CUPY = """
import cupy, isthmus.cupy
from isthmus.memory import PoolResource, query
"""


def test_cupy_has_its_memory_here() -> None:
    run(
        "cupy",
        CUPY
        + """
with isthmus.cupy.use():
    a = cupy.arange(1 << 20, dtype=cupy.uint8)
    assert query(a.data.ptr).state == "live" and a.data.device.id == 0
    address = a.data.ptr
    del a
    assert cupy.empty(1 << 20, cupy.uint8).data.ptr == address
    with cupy.cuda.Stream(non_blocking=True) as stream:
        b = cupy.full(1000, 7, cupy.uint8)
        c = cupy.empty(0)
    stream.synchronize()
    assert int(b.sum()) == 7000 and c.data.ptr == 0
    try:
        cupy.empty(1 << 40, cupy.uint8)
    except MemoryError as told:
        assert "1 TiB" in str(told), told
    else:
        raise AssertionError("not refused")
assert query(cupy.empty(1000).data.ptr).state == "unknown"
mine = PoolResource("device", "cuda:0")
isthmus.cupy.use(mine)
d = cupy.random.rand(1000, 1000)
assert mine.held_bytes > 0 and query(d.data.ptr).resource == mine
assert abs(float((d @ cupy.linalg.inv(d)).trace()) - 1000) < 1
cupy.cuda.set_allocator(isthmus.cupy.allocator)
e = cupy.empty(1000)
""",
    )


def test_cupy_streams_come_and_go() -> None:
    run(
        "cupy",
        CUPY
        + """
isthmus.cupy.use()
kept = []
for turn in range(300):
    with cupy.cuda.Stream(non_blocking=True) as stream:
        a = cupy.full(100_000, turn, cupy.int32)
        kept.append((turn, a.sum(), a + 1))
    if len(kept) > 10:
        wanted, total, more = kept.pop(0)
        cupy.cuda.runtime.deviceSynchronize()
        assert int(total) == wanted * 100_000 and int(more[5]) == wanted + 1
""",
    )


NUMBA = """
import numpy as np, numba
from numba import cuda
import isthmus
from isthmus.memory import live, query
def work():
    given = np.arange(100_000, dtype=np.float32)
    stream = cuda.stream()
    array = cuda.to_device(given, stream)
    assert query(array.device_ctypes_pointer.value).state == "live"
    other = cuda.device_array_like(array)
    other.copy_to_device(array, stream)
    del array
    others = [cuda.to_device(given * 2) for _ in range(4)]
    assert (other.copy_to_host(stream=stream) == given).all()
    array = cuda.to_device(given)
    mapped = cuda.pinned_array(10)
    info = cuda.current_context().get_memory_info()
    assert 0 < info.free <= info.total
    with cuda.defer_cleanup():
        before = live()
        del array
        assert live() == before
    try:
        cuda.device_array(1000).get_ipc_handle()
    except isthmus.UnsupportedError as told:
        assert "other processes" in str(told)
    else:
        raise AssertionError("not refused")
    try:
        cuda.device_array(1 << 40, np.uint8)
    except MemoryError as told:
        assert "1 TiB" in str(told)
    else:
        raise AssertionError("not refused")
work()
"""


def test_numba_by_the_environment() -> None:
    run("numba", NUMBA, NUMBA_CUDA_MEMORY_MANAGER="isthmus.numba")


def test_numba_by_a_call() -> None:
    program = "from numba import cuda\nimport isthmus.numba\n"
    run("numba", program + "cuda.set_memory_manager(isthmus.numba.MemoryManager)\n" + NUMBA)


def test_one_pool_for_all() -> None:
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("no cupy")
    run(
        "torch",
        USED
        + CUPY
        + """
isthmus.cupy.use()
a, b = ones(1 << 20), cupy.ones(1 << 20, cupy.uint8)
assert query(a.data_ptr()).resource == query(b.data.ptr).resource
""",
    )
