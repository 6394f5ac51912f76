# SPDX-License-Identifier: Apache-2.0
"""No driver call that may wait is made with the GIL held.

A relay in front of the driver records whether such a caller holds the GIL. CUDA's relay forwards
to the stand-in, whose frees wait for all work on the device like the driver's, or to the driver
itself. Those of SYCL and OpenCL forward to the drivers.
"""

from __future__ import annotations

import json
from functools import cache

import pytest
from support import python, relay

BACKENDS = ("cuda", "sycl", "opencl")

# The first argument is the backend whose relay is queried.
COUNTS = """
import ctypes, os, sys
BACKEND = sys.argv[1]
LIBRARY = os.environ[f"ISTHMUS_{BACKEND.upper()}_LIBRARY"]
relay = ctypes.CDLL(LIBRARY)
prefix = "" if BACKEND == "cuda" else f"{BACKEND}_"

def of_relay(name, result):
    function = getattr(relay, prefix + "relay_" + name)
    function.argtypes, function.restype = [ctypes.c_size_t], result
    return function

name_of, may_wait = of_relay("name", ctypes.c_char_p), of_relay("may_wait", ctypes.c_int)
held_by_caller = of_relay("under_interpreter", ctypes.c_long)
came_back = of_relay("succeeded" if BACKEND == "cuda" else "made", ctypes.c_long)

def calls(count):
    told, number = {}, 0
    while name := name_of(number):
        if may_wait(number) and count(number):
            told[name.decode()] = count(number)
        number += 1
    return told

def under_lock():
    return calls(held_by_caller)

def made():
    return calls(came_back)

def more(before, now):
    return {name: n - before.get(name, 0) for name, n in now.items() if n != before.get(name, 0)}
"""

WAYS = (
    COUNTS
    + """
import gc, json, pickle, sys, warnings
import numpy as np
import isthmus
from isthmus import Buffer, Device, Event, Queue, UnifiedBuffer
from isthmus import memory
from isthmus.memory import PoolResource, ProviderResource

KINDS = ("device", "shared", "host")
HOST_KINDS = ("shared", "host")
SIZES = (1, 1024, 1 << 20, 8 << 20)
ways = {}

def way(function):
    ways[function.__name__] = function
    return function

def driver(kind="device"):
    return ProviderResource(kind, BACKEND)

def buffers(kinds=KINDS, sizes=SIZES):
    for kind in kinds:
        for size in sizes:
            yield Buffer(size, resource=driver(kind), device=BACKEND)

@way
def the_first_use():
    Buffer(1024, device=BACKEND).fill(1)

@way
def dropped():
    for each in buffers():
        del each

@way
def dropped_by_default():
    for kind in KINDS:
        for size in SIZES:
            Buffer(size, kind=kind, device=BACKEND)

@way
def freed():
    for each in buffers():
        each.free()

@way
def left():
    for each in buffers():
        with each:
            pass

@way
def freed_while_exported():
    for each in buffers(HOST_KINDS):
        view = memoryview(each)
        each.free()
        view.release()

@way
def freed_while_an_array():
    for each in buffers(HOST_KINDS):
        view = np.asarray(each)
        each.free()
        del view

@way
def freed_while_in_dlpack():
    # Only on CUDA can memory of all kinds be exported.
    for each in buffers(KINDS if BACKEND == "cuda" else HOST_KINDS):
        capsule = each.__dlpack__()
        each.free()
        del capsule

@way
def array_freed_while_exported():
    for kind in HOST_KINDS:
        array = isthmus.empty(1 << 20, "uint8", resource=driver(kind), device=BACKEND)
        buffer = array.buffer if hasattr(array, "buffer") else array.base
        view = memoryview(array)
        buffer.free()
        view.release()

@way
def a_slice_last():
    for each in buffers():
        part = each[:1]
        del each
        del part

@way
def a_freed_slice():
    for each in buffers():
        part = each[:1].on_queue(Queue(BACKEND))
        each.free()
        part.free()

@way
def disowned():
    for each in buffers():
        address, owner = each.disown()
        del owner

@way
def adopted():
    for each in buffers():
        address, owner = each.disown()
        again = Buffer.adopt(address, each.nbytes, device=BACKEND, owner=owner)
        del owner, again

@way
def collected():
    for each in buffers():
        class Knot:
            pass
        knot = Knot()
        knot.knot, knot.buffer = knot, each
        del knot, each
        gc.collect()

@way
def memory_classes():
    for name in ("MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"):
        kept = getattr(memory, name)(1 << 20, queue=Queue(BACKEND))
        copied = getattr(memory, name)(kept, copy=True)
        del kept, copied

@way
def a_pool_with_its_last_buffer():
    for kind in KINDS:
        for size in SIZES:
            pool = PoolResource(kind, BACKEND)
            each = Buffer(size, resource=pool)
            del pool
            del each

@way
def a_pool_last():
    for kind in KINDS:
        pool = PoolResource(kind, BACKEND)
        Buffer(1 << 20, resource=pool)
        del pool

@way
def a_pool_over_others():
    for kind in KINDS:
        pool = PoolResource(driver(kind))
        Buffer(1 << 20, resource=pool)
        pool.trim()
        Buffer(1 << 20, resource=pool)
        del pool

@way
def trimmed():
    for kind in KINDS:
        pool = PoolResource(kind, BACKEND)
        for size in SIZES:
            Buffer(size, resource=pool)
        pool.trim()

@way
def a_pool_at_its_limit():
    pool = PoolResource("device", BACKEND, limit_bytes="16MiB", soft_limit_bytes="8MiB", wait=0)
    for size in (4 << 20, 6 << 20, 8 << 20, 12 << 20):
        Buffer(size, resource=pool)
    try:
        kept = [Buffer(6 << 20, resource=pool) for _ in range(4)]
    except isthmus.Error:
        pass

@way
def resources():
    for make in (memory.StatisticsResource, memory.TrackingResource,
                 memory.ArenaResource, memory.MonotonicResource):
        stacked = make(driver())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept = Buffer(1 << 20, resource=stacked)
            del kept
            Buffer(1024, resource=stacked).free()
            del stacked

@way
def a_resource_of_ones_own():
    class Mine:
        def __init__(self):
            self.blocks = {}
        def allocate(self, nbytes, alignment, queue):
            block = Buffer(nbytes, resource=driver(), queue=queue)
            self.blocks[block.ptr] = block
            return block.ptr
        def deallocate(self, pointer, nbytes, queue):
            del self.blocks[pointer]
    stacked = memory.CustomResource(Mine(), device=BACKEND)
    for size in SIZES:
        Buffer(size, resource=stacked)

@way
def arrays():
    for kind in KINDS:
        for resource in (None, driver(kind)):
            made = isthmus.zeros((512, 512), kind=kind, device=BACKEND, resource=resource)
            other = made[::2]
            made.free()
            del made, other
            isthmus.asarray(np.arange(9), kind=kind, device=BACKEND, resource=resource)

@way
def unified():
    for nbytes in (1024, 1 << 20):
        for options in ({}, {"pinned": True}, {"resource": driver()}):
            buf = UnifiedBuffer(nbytes, np.uint8, device=BACKEND, separate=True, **options)
            buf.host[:] = 1
            device = buf.device
            device.fill(2)
            buf.mark_device_dirty()
            assert buf[3] == 2 and (buf.to_numpy() == 2).all()
            with buf.host_write((0, 2)) as part:
                part[:] = 3
            with buf.device_write((0, 2)) as part:
                part.fill(4)
            isthmus.synchronize([buf])
            buf.synchronize()
            pickle.loads(pickle.dumps(buf))
            del device, part, buf

@way
def unified_freed():
    for nbytes in (1024, 1 << 20):
        for options in ({}, {"pinned": True}, {"resource": driver()}):
            buf = UnifiedBuffer(nbytes, np.uint8, device=BACKEND, separate=True, **options)
            host, device = buf.host, buf.device
            buf.free()
            del host, device, buf
            buf = UnifiedBuffer(nbytes, np.uint8, device=BACKEND, separate=True, **options)
            host = buf.host
            buf.device
            del buf
            del host

@way
def unified_pool():
    pool = isthmus.BufferPool()
    for _ in range(2):
        buf = pool.acquire((1000,), np.uint8, device=BACKEND)
        buf.device
        pool.release(buf)
    pool.clear()

@way
def pinned():
    array = np.zeros(1 << 20, np.uint8)
    for end in (lambda pin: pin.release(), lambda pin: None):
        pin = isthmus.pin(array, device=BACKEND)
        Buffer(1 << 20, device=BACKEND).copy_from(array)
        end(pin)
        del pin

@way
def queues_and_contexts():
    queue = Queue(BACKEND)
    buf = Buffer(1024, queue=queue, resource=driver())
    del queue
    buf.fill(1, blocking=False)
    buf.wait()
    del buf
    isthmus.Context(BACKEND)
    queue = Queue(BACKEND)
    queue.close()

@way
def waits():
    queue, gate = Queue(BACKEND), Event()
    buf = Buffer(1 << 20, queue=queue, resource=driver())
    for wait in (lambda: buf.wait(), lambda: queue.wait(), lambda: ended.wait(),
                 lambda: Event.wait_for([ended])):
        ended = buf.fill(1, blocking=False)
        wait()
    shared = Buffer(1024, queue=queue, resource=driver("shared"))
    ended = queue.submit(lambda view: None, shared)
    ended.wait()

@way
def memory_info():
    Device("cuda").memory_info()

@way
def copies():
    for each in buffers():
        data = np.ones(each.nbytes, np.uint8)
        each.copy_from(data)
        each.copy_to(data)
        each.to_numpy()
        each.tobytes()
        copy = Buffer(each.nbytes, device=BACKEND, resource=driver())
        copy.copy_from(each)
        copy.copy_from(data, blocking=False)
        copy.wait()
        array = isthmus.asarray(data, device=BACKEND)
        array[::3] = 5
        array[::2].to_numpy()
        pickle.loads(pickle.dumps(each))

@way
def compat_rmm():
    import isthmus.compat.rmm as rmm
    for make in (rmm.mr.CudaMemoryResource, rmm.mr.ManagedMemoryResource,
                 lambda: rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource()),
                 lambda: rmm.mr.CudaAsyncMemoryResource()):
        resource = make()
        block = rmm.DeviceBuffer(size=1 << 20, mr=resource)
        block.resize(1 << 21)
        del block
        address = resource.allocate(1 << 20)
        resource.deallocate(address, 1 << 20)
        del resource

@way
def compat_pydotcompute():
    import isthmus.compat.pydotcompute as pydotcompute
    buf = pydotcompute.UnifiedBuffer((1000,), np.float32)
    buf.host[:] = 1
    buf.device
    buf.free() if hasattr(buf, "free") else None
    del buf

@way
def low_level():
    from isthmus.low_level import device_alloc, free, host_alloc, shared_alloc
    device = isthmus.Device(BACKEND)
    context = Queue(device).context
    for block in (
        device_alloc(context, device, 1 << 20),
        shared_alloc(context, device, 1 << 20),
        host_alloc(context, 1 << 20),
    ):
        free(context, block)

@way
def the_end():
    gc.collect()

def trim():
    for kind in KINDS:
        for use in ("arrays", "buffers"):
            isthmus.default_pool(kind, BACKEND, use=use).trim()

told = {}
for name, function in ways.items():
    before, had = under_lock(), made()
    try:
        function()
        gc.collect()
        problem = ""
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    told[name] = [more(before, under_lock()), sum(more(had, made()).values()), problem]
    trim()  # so that the next request calls the driver
print(json.dumps(told))
"""
)

# Cases that make no driver call that may wait.
WITHOUT_CALLS = {"the_end"}


# Cases for CUDA only: the free memory of a CPU is not queried from a driver.
ONLY_CUDA = {"compat_rmm", "memory_info"}

# Where the device is a CPU, one host allocation serves as both copies in these cases.
WITHOUT_CALLS_ON_A_CPU = {"unified_pool", "compat_pydotcompute"}


@cache
def told(backend: str) -> dict[str, tuple[dict[str, int], int, str]]:
    outcome = python(WAYS, backend, **relay(backend), ISTHMUS_DEVICE=backend)
    names = json.loads(outcome.stdout)
    assert isinstance(names, dict)
    return names


NAMES = [line[4:-3] for line in WAYS.splitlines() if line.startswith("def ") and "()" in line]
NAMES = [name for name in NAMES if f"@way\ndef {name}():" in WAYS]


@pytest.mark.parametrize("way", NAMES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_call_that_may_wait_is_made_with_the_lock(backend: str, way: str) -> None:
    if way in ONLY_CUDA and backend != "cuda":
        pytest.skip("of CUDA alone")
    under_lock, made, problem = told(backend)[way]
    assert problem == ""
    assert under_lock == {}
    silent = WITHOUT_CALLS if backend == "cuda" else WITHOUT_CALLS | WITHOUT_CALLS_ON_A_CPU
    assert made > 0 or way in silent, "the test of this way does not see its calls"


DETECTED = (
    COUNTS
    + """
import isthmus
isthmus.Device(BACKEND)
assert under_lock() == {}, under_lock()
waiting, other = {
    "cuda": (("cuMemFree_v2", ctypes.c_uint64(0)), ("cuCtxGetCurrent", ctypes.c_void_p())),
    "sycl": (("DPCTLQueue_Wait", None), ("DPCTLCString_Delete", None)),
    "opencl": (("clFinish", None), ("clFlush", None)),
}[BACKEND]

def call(library, name, argument):
    getattr(library, name)(ctypes.byref(argument) if name.startswith("cuCtx") else argument)

held = ctypes.PyDLL(LIBRARY)  # whose calls keep the lock
call(relay, *waiting)
assert under_lock() == {}
call(held, *waiting)
assert under_lock() == {waiting[0]: 1}
call(held, *other)
assert under_lock() == {waiting[0]: 1}
"""
)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_relay_detects_the_lock_holder(backend: str) -> None:
    python(DETECTED, backend, **relay(backend))


CALLBACK = """
import ctypes, os, sys
from isthmus import Buffer, Queue
from isthmus.memory import PoolResource, ProviderResource

driver = ctypes.PyDLL(os.environ["ISTHMUS_CUDA_LIBRARY"])  # whose calls keep the lock
end, nbytes = sys.argv[1], int(sys.argv[2])
ran = []

@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def call_python(_):
    ran.append(True)

stream = Queue("cuda")
kind = "host" if end == "host" else "device"
block = Buffer(nbytes, resource=ProviderResource(kind, "cuda"))
owner = block.disown()[1] if end == "owner" else None
pool = PoolResource("device", "cuda")
Buffer(nbytes, resource=pool)

context = ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
sys.setswitchinterval(1000)  # the lock goes where it is released, and not before
assert driver.cuLaunchHostFunc(ctypes.c_void_p(stream.native_handle), call_python, None) == 0
assert not ran
if end in ("drop", "host"):
    del block
elif end == "free":
    block.free()
elif end == "owner":
    del owner
elif end == "pool":
    del pool
elif end == "trim":
    pool.trim()
stream.wait()
assert ran
"""


@pytest.mark.parametrize("nbytes", [1 << 10, 1 << 20, 8 << 20])
@pytest.mark.parametrize("end", ["drop", "host", "free", "owner", "pool", "trim"])
def test_a_free_waits_for_a_function_that_needs_the_lock(end: str, nbytes: int) -> None:
    """Work on the device runs a Python function, and the driver's free waits for that work."""
    driver = relay("cuda")["ISTHMUS_TEST_CUDA_DRIVER"]
    python(CALLBACK, end, str(nbytes), timeout=20, ISTHMUS_CUDA_LIBRARY=driver)
