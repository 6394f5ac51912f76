# SPDX-License-Identifier: Apache-2.0
"""Names, paths and arguments, compared with the original package where it is installed."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pydotcompute")

DOOR = "isthmus.compat.pydotcompute"
# For each module path, the names that this package provides.
NAMES = {
    "": ["Accelerator", "BufferState", "MemoryPool", "UnifiedBuffer"],
    ".core": ["Accelerator", "BufferState", "MemoryPool", "UnifiedBuffer"],
    ".core.unified_buffer": ["BufferState", "UnifiedBuffer"],
    ".core.memory_pool": [
        "MemoryPool",
        "PoolStatistics",
        "configure_memory_pool",
        "get_memory_pool",
    ],
    ".core.accelerator": [
        "Accelerator",
        "DeviceProperties",
        "DeviceType",
        "cuda_available",
        "get_accelerator",
        "metal_available",
    ],
    ".exceptions": [
        "BackendError",
        "BackendNotAvailableError",
        "BufferError",
        "BufferNotAllocatedError",
        "BufferSyncError",
        "CUDAError",
        "MetalError",
        "PyDotComputeError",
    ],
}
EACH = [(path, name) for path, names in NAMES.items() for name in names]
# Names whose arguments cannot be compared: the original raises TypeError for any argument.
OTHER_ARGUMENTS = {("MemoryPool", "__init__"), ("MemoryPool", "__new__")}


def pair(path: str, name: str) -> tuple[Any, Any]:
    ours = getattr(import_module(f"{DOOR}{path}"), name)
    return ours, getattr(import_module(f"pydotcompute{path}"), name)


def public(of: Any) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


def test_names_at_the_top() -> None:
    """All names that work without a path; the released package has some of them only there."""
    top = import_module(DOOR)
    asked = {
        *("UnifiedBuffer", "BufferState", "get_accelerator", "Accelerator", "DeviceProperties"),
        *("get_memory_pool", "MemoryPool", "PoolStatistics", "configure_memory_pool"),
        *("PyDotComputeError", "BufferError", "BufferNotAllocatedError", "BufferSyncError"),
    }
    assert set(top.__all__) == asked
    for path, names in NAMES.items():
        for name in asked.intersection(names):
            assert getattr(top, name) is getattr(import_module(f"{DOOR}{path}"), name)


@pytest.mark.parametrize(("path", "name"), EACH)
def test_members(path: str, name: str) -> None:
    ours, theirs = pair(path, name)
    assert public(theirs) <= public(ours) | {"with_traceback", "add_note", "args"}
    for member in public(theirs):
        assert isinstance(vars(theirs).get(member), property) == isinstance(
            inspect.getattr_static(ours, member), property
        ), member


def accepted(call: Any) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(call).parameters
    return {name: each for name, each in parameters.items() if name != "self"}


def compare_arguments(ours: Any, theirs: Any) -> None:
    """Every call that the original accepts, by position and by name, is accepted here."""
    mine = accepted(ours)
    for place, (name, wanted) in enumerate(accepted(theirs).items()):
        if wanted.kind in (wanted.VAR_POSITIONAL, wanted.VAR_KEYWORD):
            continue
        if wanted.kind is wanted.POSITIONAL_OR_KEYWORD:
            found = list(mine.values())[place]
            assert found.kind is wanted.kind
        else:
            found = mine[name]
        assert same_default(found.default, wanted.default), name


def same_default(ours: Any, theirs: Any) -> bool:
    if theirs is np.float32:
        return bool(np.dtype(ours) == np.float32)
    return bool(ours == theirs)


@pytest.mark.parametrize(("path", "name"), EACH)
def test_arguments(path: str, name: str) -> None:
    ours, theirs = pair(path, name)
    if inspect.isfunction(theirs):
        compare_arguments(ours, theirs)
        return
    for member, value in vars(theirs).items():
        is_private = member.startswith("_") and not member.endswith("__")
        if inspect.isfunction(value) and not is_private and (name, member) not in OTHER_ARGUMENTS:
            compare_arguments(getattr(ours, member), value)
            assert inspect.iscoroutinefunction(value) == inspect.iscoroutinefunction(
                getattr(ours, member)
            )


def test_states_have_the_names() -> None:
    ours, theirs = pair("", "BufferState")
    assert [each.name for each in ours] == [each.name for each in theirs]


def test_errors_have_the_bases() -> None:
    for name in NAMES[".exceptions"]:
        ours, theirs = pair(".exceptions", name)
        assert [each.__name__ for each in ours.__mro__] == [
            each.__name__ for each in theirs.__mro__
        ]


def test_fields() -> None:
    for name, path in (
        ("PoolStatistics", ".core.memory_pool"),
        ("DeviceProperties", ".core.accelerator"),
    ):
        ours, theirs = pair(path, name)
        assert list(ours.__dataclass_fields__) == list(theirs.__dataclass_fields__)


def both(call: Any) -> tuple[Any, Any]:
    """The results of a program with this package, and with the original."""
    ours, theirs = pair("", "UnifiedBuffer")
    return call(lambda *a, **k: ours(*a, device="host", **k)), call(theirs)


def program(make: Any) -> list[Any]:
    buf = make((4, 5), dtype=np.float64)
    seen: list[Any] = [buf.shape, buf.size, buf.nbytes, buf.is_allocated, len(buf)]
    buf.copy_from(np.arange(20).reshape(4, 5))
    seen += [buf.state.name, buf[1, 2], buf[1:3].sum(), buf.device.tolist()]
    buf[0] = -1
    buf.mark_host_dirty()
    seen += [buf.state.name, float(buf.device.sum())]
    out = np.empty((4, 5))
    buf.copy_to(out)
    seen += [out.tolist(), buf.fill(3) is buf, buf.zeros().host.sum()]
    buf.free()
    seen += [buf.state.name, buf.is_allocated]
    return [*seen, buf.allocate().host.shape]


def test_a_program_has_the_same_results() -> None:
    ours, theirs = both(program)
    assert ours == theirs
