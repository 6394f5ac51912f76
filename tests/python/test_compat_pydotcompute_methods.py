# SPDX-License-Identifier: Apache-2.0
"""Each public method compared with the released package: the same calls and errors on both.

The comparison runs without a GPU, where the released package uses NumPy arrays.
"""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import enum
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest.importorskip("pydotcompute")

DOOR = "isthmus.compat.pydotcompute"
CLASSES = {
    "UnifiedBuffer": ".core.unified_buffer",
    "BufferState": ".core.unified_buffer",
    "MemoryPool": ".core.memory_pool",
    "PoolStatistics": ".core.memory_pool",
    "configure_memory_pool": ".core.memory_pool",
    "get_memory_pool": ".core.memory_pool",
    "Accelerator": ".core.accelerator",
    "DeviceProperties": ".core.accelerator",
    "DeviceType": ".core.accelerator",
    "cuda_available": ".core.accelerator",
    "get_accelerator": ".core.accelerator",
    "metal_available": ".core.accelerator",
    "PyDotComputeError": ".exceptions",
    "BufferError": ".exceptions",
    "BufferNotAllocatedError": ".exceptions",
    "BufferSyncError": ".exceptions",
    "BackendError": ".exceptions",
    "BackendNotAvailableError": ".exceptions",
    "CUDAError": ".exceptions",
    "MetalError": ".exceptions",
}
# Special methods, which Python calls.
SPECIAL = {
    "UnifiedBuffer": ["__init__", "__len__", "__getitem__", "__setitem__", "__repr__"],
    "MemoryPool": ["__new__", "__repr__"],
    "Accelerator": ["__new__", "__repr__"],
    "PoolStatistics": ["__init__", "__eq__", "__repr__"],
    "DeviceProperties": ["__init__", "__eq__", "__hash__"],
}


def package(name: str) -> Any:
    return SimpleNamespace(
        **{each: getattr(import_module(f"{name}{path}"), each) for each, path in CLASSES.items()}
    )


OURS, THEIRS = package(DOOR), package("pydotcompute")

Case = "Callable[[Any], Any]"
# For each class and method, the calls to make on both packages, each with None where the two must
# agree, or else the reason why they differ.
CASES: dict[tuple[str, str, str], tuple[Callable[[Any], Any], str | None]] = {}


def case(of: str, method: str, name: str, why: str | None = None) -> Callable[[Any], Any]:
    def added(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        assert (of, method, name) not in CASES
        CASES[of, method, name] = call, why
        return call

    return added


def rows(of: str, method: str, **calls: Callable[[Any], Any]) -> None:
    for name, call in calls.items():
        case(of, method, name)(call)


def differing(of: str, method: str, why: str, **calls: Callable[[Any], Any]) -> None:
    for name, call in calls.items():
        case(of, method, name, why)(call)


# ---- unified buffers -----------------------------------------------------------------------------


def new(p: Any, shape: Any = 4, dtype: Any = np.float32) -> Any:
    return p.UnifiedBuffer(shape, dtype)


def full(p: Any, dtype: Any = np.float32) -> Any:
    buf = new(p, (2, 3), dtype)
    buf.copy_from(np.arange(6, dtype=dtype).reshape(2, 3))
    return buf


def then(buf: Any, *results: Any) -> list[Any]:
    """The results of a call, followed by the state of the buffer."""
    return [*results, buf.is_allocated, buf.host.tolist()]


def is_self(buf: Any, result: Any) -> bool:
    return result is buf


def put(buf: Any, key: Any, value: Any) -> list[Any]:
    buf[key] = value
    return [buf.state, buf.host.tolist()]


B = "UnifiedBuffer"
rows(
    B,
    "__init__",
    number=lambda p: new(p, 7).shape,
    shape=lambda p: new(p, (2, 3)).shape,
    no_axes=lambda p: new(p, ()).shape,
    default_dtype=lambda p: p.UnifiedBuffer(3).dtype.str,
    keyword=lambda p: p.UnifiedBuffer(shape=3, dtype="i8", pinned=True).dtype.str,
    pinned_by_place=lambda p: p.UnifiedBuffer(3, "f4", True),
    no_shape=lambda p: p.UnifiedBuffer(),
    no_dtype=lambda p: new(p, 3, "nonsense"),
    unknown=lambda p: p.UnifiedBuffer(3, colour=1),
    subscripted=lambda p: p.UnifiedBuffer[np.float32](3).shape,
)
AT_ONCE = "shapes and dtypes that cannot be allocated are refused by the constructor"
differing(
    B,
    "__init__",
    AT_ONCE,
    empty=lambda p: new(p, (0, 3)).shape,
    negative=lambda p: new(p, -1).shape,
    objects=lambda p: new(p, 3, object).dtype.str,
    text=lambda p: new(p, "abc").shape,
    fraction=lambda p: new(p, (1.5,)).shape,
)
for attribute in ("shape", "size", "nbytes", "state", "is_allocated"):
    for shape in ((), (5,), (2, 3, 4)):
        case(B, attribute, str(shape))(lambda p, a=attribute, s=shape: getattr(new(p, s, "f8"), a))
    case(B, attribute, "is_read_only")(lambda p, a=attribute: setattr(new(p), a, 1))
for kind in ("?", "i1", "u2", "i8", "f2", "f8", "c8", "S3", "M8[s]"):
    case(B, "dtype", kind)(lambda p, k=kind: new(p, 3, k).dtype.str)
rows(
    B,
    "allocate",
    returns_it=lambda p: (lambda b: is_self(b, b.allocate()))(new(p)),
    is_allocated=lambda p: new(p).allocate().is_allocated,
    host=lambda p: new(p).allocate(device=False).state,
    neither=lambda p: new(p).allocate(host=False, device=False).state,
    by_place=lambda p: new(p).allocate(True),
    again=lambda p: new(p).allocate().allocate().is_allocated,
)
differing(
    B,
    "allocate",
    "both copies are there afterwards, and equal",
    state=lambda p: new(p).allocate().state,
    device=lambda p: new(p).allocate(host=False).state,
)
rows(
    B,
    "free",
    returns=lambda p: full(p).free(),
    state=lambda p: (lambda b: [b.free(), b.state, b.is_allocated, b.shape])(full(p)),
    before=lambda p: (lambda b: [b.free(), b.state])(new(p)),
    twice=lambda p: (lambda b: [b.free(), b.free(), b.state])(full(p)),
    and_again=lambda p: (lambda b: [b.free(), b.fill(2) is b, b.host.tolist()])(new(p)),
)
rows(
    B,
    "host",
    contents=lambda p: full(p).host,
    is_writable=lambda p: new(p).allocate().host.flags.writeable,
    is_the_memory=lambda p: (lambda b: [b.host.fill(3), b.host])(new(p).allocate()),
    is_read_only=lambda p: setattr(new(p), "host", 1),
)
rows(
    B,
    "device",
    contents=lambda p: full(p).device,
    after_a_mark=lambda p: (lambda b: [b.host.fill(3), b.mark_host_dirty(), b.device])(full(p)),
    is_read_only=lambda p: setattr(new(p), "device", 1),
)
NO_ALLOCATE = "needs no allocate(), as PyDotCompute's documentation has it"
differing(B, "host", NO_ALLOCATE, unallocated=lambda p: new(p).host.shape)
differing(B, "device", NO_ALLOCATE, unallocated=lambda p: new(p).device.shape)
rows(
    B,
    "metal",
    unallocated=lambda p: new(p).metal,
    allocated=lambda p: new(p).allocate().metal,
)
rows(
    B,
    "mark_host_dirty",
    unallocated=lambda p: new(p).mark_host_dirty(),
    freed=lambda p: (lambda b: [b.free(), b.mark_host_dirty()])(full(p)),
    allocated=lambda p: (lambda b: [b.mark_host_dirty(), b.state])(new(p).allocate()),
)
rows(
    B,
    "mark_device_dirty",
    unallocated=lambda p: new(p).mark_device_dirty(),
    freed=lambda p: (lambda b: [b.free(), b.mark_device_dirty()])(full(p)),
    allocated=lambda p: (lambda b: [b.mark_device_dirty(), b.state])(new(p).allocate()),
    after_the_host=lambda p: (lambda b: [b.mark_host_dirty(), b.mark_device_dirty(), b.state])(
        new(p).allocate()
    ),
)
rows(B, "mark_metal_dirty", unallocated=lambda p: new(p).mark_metal_dirty())
differing(
    B,
    "mark_metal_dirty",
    "no copy of Metal's is there",
    allocated=lambda p: new(p).allocate().mark_metal_dirty(),
)
rows(
    B,
    "synchronize",
    unallocated=lambda p: new(p).synchronize(),
    returns=lambda p: new(p).allocate().synchronize(),
    contents=lambda p: (lambda b: then(b, b.synchronize()))(full(p)),
)
differing(
    B,
    "synchronize",
    "the state ends in SYNCHRONIZED without a GPU, too",
    state=lambda p: (lambda b: [b.mark_host_dirty(), b.synchronize(), b.state])(full(p)),
)
for side in ("ensure_on_device", "ensure_on_host"):
    rows(
        B,
        side,
        returns=lambda p, s=side: asyncio.run(getattr(full(p), s)()),
        contents=lambda p, s=side: (lambda b: then(b, asyncio.run(getattr(b, s)())))(full(p)),
    )
    differing(
        B,
        side,
        NO_ALLOCATE,
        unallocated=lambda p, s=side: asyncio.run(getattr(new(p), s)()),
    )
SOURCES: dict[str, Any] = {
    "array": np.arange(4, dtype=np.float32),
    "wider": np.arange(4, dtype=np.float64),
    "integers": np.arange(4),
    "list": [1, 2, 3, 4],
    "number": 7,
    "one_element": [5],
    "too_long": np.arange(5),
    "too_many_axes": np.ones((2, 2)),
    "complex": np.ones(4, complex),
    "text": ["a", "b", "c", "d"],
    "none": None,
    "ragged": [[1], [2, 3]],
}
for name, source in SOURCES.items():
    case(B, "copy_from", name)(
        lambda p, s=source: (lambda b: then(b, b.copy_from(s) and None, b.state))(new(p))
    )
differing(B, "copy_from", "returns the buffer", returns=lambda p: new(p).copy_from(1) is None)
rows(
    B,
    "copy_to",
    returns=lambda p: full(p).copy_to(np.empty((2, 3))),
    contents=lambda p: (lambda out: [full(p).copy_to(out), out])(np.empty((2, 3))),
    broadcast=lambda p: (lambda out: [full(p).copy_to(out), out])(np.empty((2, 2, 3))),
    wrong_shape=lambda p: full(p).copy_to(np.empty(5)),
    narrower=lambda p: full(p).copy_to(np.empty((2, 3), np.int32)),
    read_only=lambda p: full(p).copy_to(np.broadcast_to(np.float32(1), (2, 3))),
    a_list=lambda p: full(p).copy_to([0] * 6),
    nothing=lambda p: full(p).copy_to(None),
)
differing(B, "copy_to", NO_ALLOCATE, unallocated=lambda p: new(p, (2, 3)).copy_to(np.empty((2, 3))))
rows(
    B,
    "zeros",
    returns_it=lambda p: (lambda b: is_self(b, b.zeros()))(new(p)),
    contents=lambda p: (lambda b: then(b, b.zeros() is b, b.state))(full(p)),
    unallocated=lambda p: (lambda b: then(b, b.zeros() is b))(new(p)),
)
FILLED: dict[str, tuple[Any, Any]] = {
    "number": ("f4", 3),
    "scalar": ("f4", np.float32(2.5)),
    "truth": ("f4", True),
    "digits": ("f4", "4.5"),
    "digits_of_an_integer": ("i4", "45"),
    "a_fraction_of_an_integer": ("i4", "4.5"),
    "text": ("f4", "x"),
    "none": ("i4", None),
    "complex": ("f4", 1j),
    "too_large": ("u1", 300),
    "short_text": ("S3", b"ab"),
    "two": ("f4", [1, 2]),
    "record": ([("a", "i4"), ("b", "f4")], (1, 2.5)),
}
for name, (dtype, value) in FILLED.items():
    case(B, "fill", name)(
        lambda p, d=dtype, v=value: (lambda b: then(b, b.fill(v) is b, b.state))(new(p, 2, d))
    )
differing(
    B,
    "fill",
    "a value that NumPy's cast would change is an error",
    cut_fraction=lambda p: new(p, 2, "i4").fill(2.5).host,
    cut_text=lambda p: new(p, 2, "S3").fill(b"abcd").host,
)
differing(B, "__len__", "a TypeError, as NumPy's", no_axes=lambda p: len(new(p, ())))
for shape in ((3,), (2, 3)):
    case(B, "__len__", str(shape))(lambda p, s=shape: len(new(p, s)))
KEYS: dict[str, Any] = {
    "row": 0,
    "last": -1,
    "element": (1, 2),
    "slice": slice(1, 2),
    "step": (slice(None), slice(None, None, -1)),
    "ellipsis": ...,
    "new_axis": None,
    "list": [1, 0],
    "mask": np.ones((2, 3), bool),
    "out_of_range": 2,
    "too_many": (0, 0, 0),
    "text": "x",
    "fraction": 0.5,
}
for name, key in KEYS.items():
    case(B, "__getitem__", name)(lambda p, k=key: full(p)[k])
    case(B, "__setitem__", name)(lambda p, k=key: put(full(p), k, 9))
rows(
    B,
    "__getitem__",
    iterated=lambda p: [row.tolist() for row in full(p)],
    as_array=lambda p: np.asarray(full(p)).tolist(),
)
rows(
    B,
    "__setitem__",
    wrong_shape=lambda p: put(full(p), 0, [1, 2]),
    wrong_value=lambda p: put(full(p), 0, "x"),
)
differing(B, "__getitem__", NO_ALLOCATE, unallocated=lambda p: new(p)[0].shape)
differing(B, "__setitem__", NO_ALLOCATE, unallocated=lambda p: put(new(p), slice(None), 1))
rows(
    B,
    "__repr__",
    unallocated=lambda p: repr(new(p)),
    dirty=lambda p: repr(full(p, "i8")),
    freed=lambda p: (lambda b: [b.free(), repr(b)])(full(p)),
)
for name in ("UNINITIALIZED", "HOST_ONLY", "DEVICE_ONLY", "SYNCHRONIZED", "HOST_DIRTY"):
    case("BufferState", name, "name")(lambda p, n=name: p.BufferState[n])
rows(
    "BufferState",
    "DEVICE_DIRTY",
    name=lambda p: p.BufferState.DEVICE_DIRTY,
    all=lambda p: [each.name for each in p.BufferState],
    unknown=lambda p: p.BufferState["METAL_DIRTY"],
)
differing(
    "BufferState",
    "DEVICE_DIRTY",
    "it is isthmus.BufferState, whose numbers are the C interface's",
    number=lambda p: p.BufferState.DEVICE_DIRTY.value,
    text=lambda p: str(p.BufferState.DEVICE_DIRTY),
)

# ---- the pool ------------------------------------------------------------------------------------

P = "MemoryPool"


def pool(p: Any) -> Any:
    return p.MemoryPool()


rows(
    P,
    "__new__",
    is_one=lambda p: pool(p) is pool(p),
    after_a_reset=lambda p: [
        pool(p).enable(),
        setattr(p.MemoryPool, "_instance", None),
        pool(p).enabled,
    ],
    is_another_after_a_reset=lambda p: (
        lambda old: [setattr(p.MemoryPool, "_instance", None), pool(p) is old]
    )(pool(p)),
    unknown=lambda p: p.MemoryPool(initial_size_mb=1),
)
differing(P, "__new__", "the documentation's limits", limits=lambda p: [p.MemoryPool(1) is None])
rows(
    P,
    "enable",
    returns=lambda p: pool(p).enable(),
    twice=lambda p: [pool(p).enable(), pool(p).enable(), pool(p).enabled],
    and_a_buffer=lambda p: [pool(p).enable(), full(p).host],
)
rows(
    P,
    "disable",
    returns=lambda p: pool(p).disable(),
    after=lambda p: [pool(p).enable(), pool(p).disable(), pool(p).enabled],
)
rows(
    P,
    "enabled",
    first=lambda p: pool(p).enabled,
    is_read_only=lambda p: setattr(pool(p), "enabled", True),
)
for method in ("get_stats", "get_pinned_stats"):
    rows(
        P,
        method,
        first=lambda p, m=method: vars(getattr(pool(p), m)()),
        with_a_buffer=lambda p, m=method: [
            pool(p).enable(),
            full(p).host,
            vars(getattr(pool(p), m)()),
        ],
    )
for method in ("free_all_blocks", "free_all_free"):
    rows(
        P,
        method,
        first=lambda p, m=method: getattr(pool(p), m)(),
        enabled=lambda p, m=method: [
            pool(p).enable(),
            getattr(pool(p), m)(),
            pool(p).enabled,
        ],
    )
rows(
    P,
    "set_limit",
    number=lambda p: pool(p).set_limit(100),
    none=lambda p: pool(p).set_limit(None),
    zero=lambda p: pool(p).set_limit(0),
    keyword=lambda p: pool(p).set_limit(size_mb=5),
    no_argument=lambda p: pool(p).set_limit(),
)
differing(
    P,
    "set_limit",
    "arguments are checked without a GPU, too",
    negative=lambda p: pool(p).set_limit(-1),
    text=lambda p: pool(p).set_limit("5"),
    fraction=lambda p: pool(p).set_limit(1.5),
)
rows(
    P,
    "__repr__",
    first=lambda p: repr(pool(p)),
    enabled=lambda p: [pool(p).enable(), repr(pool(p))],
)
rows(
    "get_memory_pool",
    "",
    is_the_pool=lambda p: p.get_memory_pool() is pool(p),
    argument=lambda p: p.get_memory_pool(1),
)
rows(
    "configure_memory_pool",
    "",
    is_the_pool=lambda p: p.configure_memory_pool() is pool(p),
    enables=lambda p: p.configure_memory_pool().enabled,
    enables_not=lambda p: p.configure_memory_pool(enable=False).enabled,
    leaves_enabled=lambda p: [pool(p).enable(), p.configure_memory_pool(enable=False).enabled],
    sizes=lambda p: p.configure_memory_pool(1, 128).enabled,
    keyword=lambda p: p.configure_memory_pool(max_size_mb=128, enable=False).enabled,
    initial=lambda p: p.configure_memory_pool(_initial_size_mb=1).enabled,
    unknown=lambda p: p.configure_memory_pool(initial_size_mb=1),
)
S = "PoolStatistics"
rows(
    S,
    "__init__",
    places=lambda p: vars(p.PoolStatistics(1, 2, 3)),
    keywords=lambda p: vars(p.PoolStatistics(used_bytes=1, total_bytes=2, n_free_blocks=3)),
    too_few=lambda p: p.PoolStatistics(1, 2),
    changed=lambda p: (lambda s: [setattr(s, "used_bytes", 9), vars(s)])(p.PoolStatistics(1, 2, 3)),
)
rows(
    S,
    "__eq__",
    same=lambda p: p.PoolStatistics(1, 2, 3) == p.PoolStatistics(1, 2, 3),
    other=lambda p: p.PoolStatistics(1, 2, 3) == (1, 2, 3),
    unhashable=lambda p: hash(p.PoolStatistics(1, 2, 3)),
)
case(S, "__repr__", "text")(lambda p: repr(p.PoolStatistics(1, 2, 3)))
for figure in ("free_bytes", "utilization", "used_mb", "total_mb"):
    for values in ((0, 0, 0), (1 << 20, 4 << 20, 5), (7, 7, 0), (5, 3, 1), (8 << 30, 16 << 30, 9)):
        case(S, figure, str(values))(lambda p, f=figure, v=values: getattr(p.PoolStatistics(*v), f))

# ---- devices -------------------------------------------------------------------------------------

A = "Accelerator"
PROPERTIES = {
    "device_id": 0,
    "device_type": None,
    "name": "A",
    "compute_capability": (8, 9),
    "total_memory": 3 << 30,
    "multiprocessor_count": 1,
    "max_threads_per_block": 1,
    "max_block_dims": (1, 1, 1),
    "max_grid_dims": (1, 1, 1),
    "warp_size": 1,
    "is_available": True,
}


def properties(p: Any, **changed: Any) -> Any:
    return p.DeviceProperties(**(PROPERTIES | changed))


rows(
    A,
    "__new__",
    is_one=lambda p: p.Accelerator() is p.Accelerator() is p.get_accelerator(),
    argument=lambda p: p.Accelerator(1),
)
rows(A, "cuda_available", value=lambda p: p.Accelerator().cuda_available)
rows(A, "metal_available", value=lambda p: p.Accelerator().metal_available)
rows(A, "device_count", value=lambda p: p.Accelerator().device_count)
rows(
    A,
    "devices",
    kinds=lambda p: [each.device_type for each in p.Accelerator().devices],
    is_a_copy=lambda p: [p.Accelerator().devices.append(None), len(p.Accelerator().devices)],
)
for name in (
    *("device_id", "device_type", "compute_capability", "max_threads_per_block"),
    *("max_block_dims", "max_grid_dims", "warp_size", "is_available", "compute_capability_str"),
):
    case(A, "current_device", name)(lambda p, n=name: getattr(p.Accelerator().current_device, n))
differing(
    A,
    "current_device",
    "the processor's own",
    name=lambda p: p.Accelerator().current_device.name,
    total_memory=lambda p: p.Accelerator().current_device.total_memory,
)
for method in ("get_device", "set_device"):
    for wrong in (-1, 1000, "0", None):
        case(A, method, repr(wrong))(lambda p, m=method, w=wrong: getattr(p.Accelerator(), m)(w))
    case(A, method, "by_keyword")(
        lambda p, m=method: type(getattr(p.Accelerator(), m)(device_id=0)).__name__
    )
case(A, "get_device", "first")(lambda p: p.Accelerator().get_device(0).device_type)
case(A, "set_device", "first")(lambda p: p.Accelerator().set_device(0))
rows(A, "synchronize", returns=lambda p: p.Accelerator().synchronize())
rows(
    A,
    "get_memory_info",
    names=lambda p: sorted(dict(p.Accelerator().get_memory_info())),
    has=lambda p: [name in p.Accelerator().get_memory_info() for name in ("used", "x")],
    numbers=lambda p: type(p.Accelerator().get_memory_info()["free"]).__name__,
    items=lambda p: [name for name, _ in p.Accelerator().get_memory_info().items()],
    absent=lambda p: p.Accelerator().get_memory_info().get("x", 5),
    unknown=lambda p: p.Accelerator().get_memory_info()["x"],
)
differing(
    A,
    "get_memory_info",
    "the processor's memory, as two numbers that have names",
    total=lambda p: p.Accelerator().get_memory_info()["total"] > 0,
    iterated=lambda p: len(list(p.Accelerator().get_memory_info())),
)
rows(A, "__repr__", all_but_the_name=lambda p: repr(p.Accelerator()).rpartition("=")[0])
for name in ("cuda_available", "metal_available"):
    case(name, "", "value")(lambda p, n=name: getattr(p, n)())
case("get_accelerator", "", "is_one")(lambda p: p.get_accelerator() is p.get_accelerator())
rows(
    "DeviceProperties",
    "__init__",
    too_few=lambda p: p.DeviceProperties(0),
    is_frozen=lambda p: setattr(properties(p), "name", "B"),
)
rows(
    "DeviceProperties",
    "__eq__",
    same=lambda p: properties(p) == properties(p),
    other=lambda p: properties(p) == properties(p, name="B"),
)
case("DeviceProperties", "__hash__", "same")(lambda p: hash(properties(p)) == hash(properties(p)))
rows(
    "DeviceProperties",
    "compute_capability_str",
    some=lambda p: properties(p).compute_capability_str,
    none=lambda p: properties(p, compute_capability=None).compute_capability_str,
)
rows("DeviceProperties", "total_memory_gb", some=lambda p: properties(p).total_memory_gb)
for name in ("CPU", "CUDA", "METAL"):
    case("DeviceType", name, "value")(lambda p, n=name: p.DeviceType[n].value)

# ---- errors --------------------------------------------------------------------------------------


def raised(error: Exception) -> list[Any]:
    return [str(error), vars(error).keys(), isinstance(error, Exception)]


for name in ("PyDotComputeError", "BufferError", "BackendError", "CUDAError", "MetalError"):
    rows(
        name,
        "",
        text=lambda p, n=name: raised(getattr(p, n)("some text")),
        nothing=lambda p, n=name: raised(getattr(p, n)()),
    )
rows(
    "BufferNotAllocatedError",
    "",
    text=lambda p: raised(p.BufferNotAllocatedError()),
    is_one_of=lambda p: issubclass(p.BufferNotAllocatedError, p.BufferError),
)
rows(
    "BufferSyncError",
    "",
    text=lambda p: raised(p.BufferSyncError("host->device", ValueError("no"))),
    direction=lambda p: p.BufferSyncError("host->device", ValueError("no")).direction,
    cause=lambda p: repr(p.BufferSyncError("host->device", ValueError("no")).cause),
    too_few=lambda p: p.BufferSyncError("host->device"),
)
rows(
    "BackendNotAvailableError",
    "",
    text=lambda p: raised(p.BackendNotAvailableError("metal", "none here")),
    reason=lambda p: p.BackendNotAvailableError("metal", "none here").reason,
    backend_name=lambda p: p.BackendNotAvailableError("metal", "none here").backend_name,
    too_few=lambda p: p.BackendNotAvailableError("metal"),
)

# ---- both packages -------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A form of the value that is comparable between the two packages."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.tolist()]
    if isinstance(value, (list, tuple, type({}.keys()))):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def outcome(p: Any, call: Callable[[Any], Any]) -> tuple[str, Any]:
    try:
        return "value", plain(call(p))
    except Exception as error:
        return "error", error


@pytest.fixture(autouse=True)
def both_new() -> Iterator[None]:
    for p in (OURS, THEIRS):
        p.MemoryPool._instance = None
    yield
    for p in (OURS, THEIRS):
        p.MemoryPool().disable()
        p.MemoryPool._instance = None


def same_error(ours: Exception, theirs: Exception) -> bool:
    """Whether the same clause catches both; texts of the package's own errors may be extended."""
    name = type(theirs).__name__
    if name in CLASSES:
        return isinstance(ours, getattr(OURS, name)) and str(ours).startswith(str(theirs))
    if name == "FrozenInstanceError":
        return type(ours).__name__ == name
    wanted = next(each for each in type(theirs).__mro__ if each.__module__ == "builtins")
    return isinstance(ours, getattr(builtins, wanted.__name__))


def agree(call: Callable[[Any], Any]) -> bool:
    (kind, ours), (their_kind, theirs) = outcome(OURS, call), outcome(THEIRS, call)
    if kind != their_kind:
        return False
    return same_error(ours, theirs) if kind == "error" else bool(ours == theirs)


if find_spec("cupy") or OURS.Accelerator().device_count > 1:
    pytest.skip("the released package is compared where it has no GPU", allow_module_level=True)


@pytest.mark.parametrize(
    "key", [key for key, (_, why) in CASES.items() if why is None], ids="-".join
)
def test_the_same(key: tuple[str, str, str]) -> None:
    call = CASES[key][0]
    # The effect of set_device() lasts until the end of its context.
    agrees = contextvars.copy_context().run(agree, call)
    assert agrees, (outcome(OURS, call), outcome(THEIRS, call))


@pytest.mark.parametrize("key", [key for key, (_, why) in CASES.items() if why], ids="-".join)
def test_what_differs_on_purpose(key: tuple[str, str, str]) -> None:
    """docs/from-pydotcompute.md has the reasons. Cases that agree belong in the list above."""
    call, why = CASES[key]
    assert not agree(call), (why, outcome(OURS, call), outcome(THEIRS, call))


def test_no_method_is_left_out() -> None:
    compared = {(of, method) for of, method, _ in CASES}
    for name in CLASSES:
        theirs = getattr(THEIRS, name)
        if not isinstance(theirs, type) or issubclass(theirs, Exception):
            assert (name, "") in compared
            continue
        found = {member for member in vars(theirs) if not member.startswith("_")}
        if name == "DeviceProperties":
            found -= set(theirs.__dataclass_fields__)
        assert {(name, member) for member in found | set(SPECIAL.get(name, []))} <= compared
