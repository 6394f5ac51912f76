# SPDX-License-Identifier: Apache-2.0
"""The functions through which PyTorch allocates, called as PyTorch does: by their addresses.

Tests that need PyTorch itself are in test_allocators.py.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

import pytest
from support import has_cuda, python, until
from test_cuda_exchange import Stranger

import isthmus
from isthmus import Buffer, Device, Queue, _frameworks
from isthmus.memory import PoolResource

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not has_cuda(), reason="no CUDA driver")
# The host can access the stand-in's memory.
ON_HOST = has_cuda() and "stand-in" in Device("cuda").name
LARGE = 16 << 20
Handle = int | None


class Functions:
    """PyTorch's view of an allocator, on device 0."""

    def __init__(self, resource: isthmus.memory.MemoryResource | None = None) -> None:
        self.number = _frameworks.torch_number(resource)
        at = _frameworks.torch_functions(self.number)
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self._alloc = ctypes.CFUNCTYPE(pointer, size, number, pointer)(at["alloc"])
        self._free = ctypes.CFUNCTYPE(None, pointer, size, number, pointer)(at["free"])
        self.reset = ctypes.CFUNCTYPE(None)(at["set_reset_fn"])
        self._record = ctypes.CFUNCTYPE(None, pointer, pointer)(at["set_record_stream_fn"])
        self._base = ctypes.CFUNCTYPE(pointer, pointer, pointer)(at["set_base_alloc_fn"])
        self.init = ctypes.CFUNCTYPE(None, number)(at["set_init_fn"])

    def alloc(self, nbytes: int, stream: Handle = None) -> int:
        return self._alloc(nbytes, 0, stream) or 0

    def free(self, pointer: int, nbytes: int, stream: Handle = None) -> None:
        self._free(pointer, nbytes, 0, stream)

    def record(self, pointer: int, stream: Handle) -> None:
        self._record(pointer, stream)

    def base(self, pointer: int) -> tuple[int, int]:
        nbytes = ctypes.c_size_t()
        return self._base(pointer, ctypes.addressof(nbytes)) or 0, nbytes.value

    def usage(self) -> dict[str, int]:
        return _frameworks.torch_usage(self.number, 0)


@pytest.fixture(scope="module")
def pool() -> PoolResource:
    """The functions never release it."""
    return PoolResource("device", "cuda:0")


@pytest.fixture
def functions(pool: PoolResource) -> Iterator[Functions]:
    made = Functions(pool)
    yield made
    assert made.usage()["live_bytes"] == 0
    # A library thread destroys what the driver keeps for the streams.
    assert until(lambda: made.reset() or made.usage()["held_bytes"] == 0)


class Worker(Stranger):
    """Another library with a stream on which work takes a while."""

    def __init__(self) -> None:
        super().__init__()
        # A GPU fills 2 TB in a second: a tenth of that lasts long enough even on a busy host.
        nbytes, self.times = (LARGE, 4) if ON_HOST else (1 << 30, 200)
        self.lasting = Buffer(nbytes, kind="device", device="cuda:0")

    def begin(self) -> None:
        for _ in range(self.times):
            self.write(self.lasting, 1)

    def is_at_work(self) -> bool:
        return self.cuda.cuEventQuery(self.last) != 0

    def end(self) -> None:
        assert self.cuda.cuStreamSynchronize(ctypes.c_void_p(self.stream)) == 0


@pytest.mark.parametrize("nbytes", [1000, 1 << 20])
def test_a_stream_reuses_its_freed_memory_at_once(functions: Functions, nbytes: int) -> None:
    worker = Worker()
    first = functions.alloc(nbytes, worker.stream)
    worker.begin()
    functions.free(first, nbytes, worker.stream)
    elsewhere = functions.alloc(nbytes)
    again = functions.alloc(nbytes, worker.stream)
    assert worker.is_at_work()
    assert elsewhere != first
    assert again == first
    worker.end()
    functions.free(elsewhere, nbytes)
    functions.free(again, nbytes, worker.stream)


@pytest.mark.parametrize("nbytes", [1000, 1 << 20])
def test_a_recorded_stream_is_waited_for(functions: Functions, nbytes: int) -> None:
    worker = Worker()
    first = functions.alloc(nbytes)
    functions.record(first, worker.stream)
    functions.record(first, worker.stream)
    worker.begin()  # after the record and before the free
    functions.free(first, nbytes)
    others = [functions.alloc(nbytes) for _ in range(40)]
    assert worker.is_at_work()
    assert first not in others
    for each in others:
        functions.free(each, nbytes)
    functions.reset()
    assert worker.is_at_work()
    assert functions.usage()["held_bytes"] >= nbytes
    worker.end()  # afterwards all memory is released, as the fixture checks


@pytest.mark.parametrize("nbytes", [1000, 1 << 20])
def test_a_captured_stream_is_queried_later(
    functions: Functions, nbytes: int, capfd: pytest.CaptureFixture[str]
) -> None:
    worker, graph, relaxed = Worker(), ctypes.c_void_p(), 2
    first = functions.alloc(nbytes)
    functions.record(first, worker.stream)
    stream = ctypes.c_void_p(worker.stream)
    assert worker.cuda.cuStreamBeginCapture_v2(stream, relaxed) == 0
    functions.free(first, nbytes)
    others = [functions.alloc(nbytes) for _ in range(40)]
    assert first not in others
    for each in others:
        functions.free(each, nbytes)
    functions.reset()
    assert functions.usage()["live_count"] == 1
    assert worker.cuda.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
    functions.free(functions.alloc(nbytes), nbytes)
    assert functions.usage()["live_count"] == 0
    assert capfd.readouterr().err == ""


def test_records_of_unknown_memory_do_nothing(functions: Functions) -> None:
    worker = Worker()
    plain = ctypes.create_string_buffer(64)
    functions.record(ctypes.addressof(plain), worker.stream)
    functions.record(0, worker.stream)


def test_counts_and_trims(functions: Functions) -> None:
    before = functions.usage()["total_count"]
    assert functions.alloc(0) == 0
    small, large = functions.alloc(1000), functions.alloc(LARGE)
    told = functions.usage()
    assert (told["live_bytes"], told["live_count"]) == (LARGE + 1000, 2)
    assert told["peak_held_bytes"] is None  # only the pool's owner may query it
    assert told["held_bytes"] >= LARGE
    functions.free(small, 1000)
    functions.free(large, LARGE)
    functions.free(0, 0)
    told = functions.usage()
    assert (told["live_bytes"], told["live_count"], told["total_count"]) == (0, 0, before + 2)
    assert told["peak_live_bytes"] >= LARGE + 1000


def test_the_pool_that_serves_where_none_is_named() -> None:
    functions = Functions()
    pool = _frameworks.device_pool(0)
    assert isinstance(pool, PoolResource)
    assert pool.device == Device("cuda:0")
    before = functions.usage()
    block = functions.alloc(LARGE)
    told = functions.usage()
    assert told["live_bytes"] == before["live_bytes"] + LARGE
    assert told["peak_held_bytes"] >= told["held_bytes"] == pool.held_bytes
    functions.free(block, LARGE)
    assert _frameworks.device_pool(0) == pool
    assert until(lambda: pool.trim() >= LARGE)


def test_finds_the_whole_block(functions: Functions) -> None:
    block = functions.alloc(1 << 20)
    assert functions.base(block + 4096) == (block, 1 << 20)
    assert functions.base(16)[0] == 16
    functions.free(block, 1 << 20)


def test_threads_on_streams_of_their_own(functions: Functions) -> None:
    wrong: list[str] = []
    blocks = 400
    before = functions.usage()["total_count"]

    def work(name: int) -> None:
        stream = Stranger().stream
        kept: list[tuple[int, int]] = []
        for turn in range(blocks):
            nbytes = 1 + (turn * 7919 + name * 131) % 300_000
            at = functions.alloc(nbytes, stream)
            if ON_HOST:
                ctypes.memset(at, name, nbytes)
            kept.append((at, nbytes))
            if len(kept) > 16:
                at, nbytes = kept.pop(turn % 16)
                if ON_HOST and ctypes.string_at(at, nbytes) != bytes([name]) * nbytes:
                    wrong.append(f"{name}: {nbytes} bytes at {at:#x}")
                functions.free(at, nbytes, stream)
        for at, nbytes in kept:
            functions.free(at, nbytes, stream)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(1, 9)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert functions.usage()["total_count"] == before + 8 * blocks


def test_frees_of_other_threads(functions: Functions) -> None:
    blocks = [functions.alloc(10_000) for _ in range(100)]
    other = threading.Thread(target=lambda: [functions.free(at, 10_000) for at in blocks])
    other.start()
    other.join()
    assert functions.usage()["live_bytes"] == 0
    again = {functions.alloc(10_000) for _ in range(200)}
    assert again & set(blocks)
    for at in again:
        functions.free(at, 10_000)


def test_one_set_of_functions_for_a_resource(pool: PoolResource) -> None:
    assert Functions(pool).number == Functions(pool).number != 0
    assert Functions().number == 0
    with pytest.raises(TypeError, match="resource must be a resource"):
        _frameworks.torch_number("cuda:0")  # type: ignore[arg-type]
    for other in (PoolResource("device", "host"), PoolResource("host", "cuda:0")):
        with pytest.raises(ValueError, match="device memory of a CUDA device"):
            _frameworks.torch_number(other)
    with pytest.raises(RuntimeError, match="device 99"):
        _frameworks.torch_usage(0, 99)


def test_bare_blocks_return_after_their_queue() -> None:
    pool, queue = PoolResource("device", "cuda:0"), Queue("cuda:0")
    block = _frameworks.BareBlock(pool, queue, 1000)
    first = block.ptr
    del block
    assert _frameworks.BareBlock(pool, queue, 1000).ptr == first
    assert _frameworks.BareBlock(pool, queue, 0).ptr == 0
    with pytest.raises(MemoryError, match="1 TiB"):
        _frameworks.BareBlock(pool, queue, 1 << 40)
    with pytest.raises(TypeError, match="must be a Queue"):
        _frameworks.BareBlock(pool, "cuda:0", 1000)  # type: ignore[arg-type]
    assert until(lambda: pool.trim() >= 0 and pool.held_bytes == 0)


START = """
import atexit, ctypes, os, sys
def late():  # after everything that isthmus does at exit
    for at in blocks:
        free(at, 5000, 0, None)
atexit.register(late)
from isthmus import _frameworks
at = _frameworks.torch_functions(_frameworks.torch_number(None))
pointer = ctypes.c_void_p
alloc = ctypes.CFUNCTYPE(pointer, ctypes.c_size_t, ctypes.c_int, pointer)(at["alloc"])
free = ctypes.CFUNCTYPE(None, pointer, ctypes.c_size_t, ctypes.c_int, pointer)(at["free"])
blocks = [alloc(5000, 0, None) for _ in range(100)]
"""


def test_frees_at_the_very_end() -> None:
    python(START)


def test_frees_in_a_forked_child() -> None:
    python(
        START
        + """
child = os.fork()
if child == 0:
    late()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
        PYTHONWARNINGS="ignore",  # Python warns of a fork with threads, which drivers create
    )


FAKE = """
import sys, types
class Made:
    def __init__(self, alloc, free):
        self.set = {"alloc": alloc, "free": free}
    def set_record_stream_fn(self, at): self.set["record"] = at
    def set_reset_fn(self, at): self.set["reset"] = at
torch = types.ModuleType("torch")
torch.__version__ = "2.0"
torch.changes, torch.began = [], False
torch._C = types.SimpleNamespace(_cuda_customAllocator=Made)
torch.device = lambda name: types.SimpleNamespace(index=None)
torch.cuda = types.SimpleNamespace(
    is_initialized=lambda: torch.began, current_device=lambda: 0,
    memory=types.SimpleNamespace(
        _CUDAAllocator=lambda made: made, change_current_allocator=torch.changes.append))
sys.modules["torch"] = torch
import isthmus.torch
from isthmus.memory import PoolResource
def refused(call, error, text):
    try:
        call()
    except error as told:
        assert text in str(told), told
    else:
        raise AssertionError("not refused")
"""


def test_use() -> None:
    python(
        FAKE
        + """
refused(isthmus.torch.stats, RuntimeError, "call isthmus.torch.use() first")
pool = PoolResource("device", "cuda:0")
isthmus.torch.use(pool)
isthmus.torch.use(pool)
(made,) = torch.changes
assert set(made.set) == {"alloc", "free", "record", "reset"} and all(made.set.values())
refused(isthmus.torch.use, RuntimeError, "set only once in a process")
assert isthmus.torch.stats().live_bytes == 0
assert isthmus.torch.stats(device=0, resource=pool).held_bytes == pool.held_bytes
assert isthmus.torch.allocator(pool) is made
assert isthmus.torch.allocator() is not made
refused(lambda: isthmus.torch.allocator(3), TypeError, "resource must be a resource")
"""
    )


def test_use_comes_first() -> None:
    python(
        FAKE
        + """
torch.began = True
refused(isthmus.torch.use, RuntimeError, "in use already: call isthmus.torch.use() before")
assert not torch.changes
del torch._C._cuda_customAllocator
refused(isthmus.torch.use, ImportError, "built without CUDA")
"""
    )


@pytest.mark.parametrize(
    ("module", "needs", "call"),
    [("torch", "torch", ".use()"), ("cupy", "cupy", ""), ("numba", "numba", "")],
)
def test_what_is_missing_is_named(module: str, needs: str, call: str) -> None:
    python(
        f"""
import sys
sys.modules["{needs}"] = None
try:
    import isthmus.{module}
    isthmus.{module}{call}
except ImportError as told:
    assert "isthmus.{module} needs" in str(told) and "pip install" in str(told), told
    assert told.name == "{needs}"
else:
    raise AssertionError("not refused")
"""
    )


def test_the_memory_fraction_is_a_limit() -> None:
    total = Device("cuda:0").total_memory
    done = python(
        START.replace("range(100)", "range(0)")
        + f"""
ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_int)(at["set_memory_fraction_fn"])(0.5, 0)
from isthmus.memory import USMAllocationError
try:
    _frameworks.device_pool(0).allocate({total} // 2 + (4 << 20))
except USMAllocationError as told:
    print(told)
"""
    )
    assert "budget" in done.stdout
