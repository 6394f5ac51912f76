# SPDX-License-Identifier: Apache-2.0
"""Names and signatures: those known of RMM 26.10, and those of the RMM that is installed."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from compat_rmm_support import on
from support import python, raised

import isthmus.compat.rmm as rmm
from isthmus.compat.rmm import mr

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from isthmus import Device

__all__ = ["on"]
pytestmark = pytest.mark.sim_and_host

TOP = [
    "DeviceBuffer",
    "disable_logging",
    "RMMError",
    "enable_logging",
    "flush_logger",
    "get_flush_level",
    "get_log_filenames",
    "get_logging_level",
    "is_initialized",
    "level_enum",
    "mr",
    "register_reinitialize_hook",
    "reinitialize",
    "set_flush_level",
    "set_logging_level",
    "should_log",
    "unregister_reinitialize_hook",
]
# The constructor arguments of RMM's classes: name, and default if any, of each.
MADE_WITH = {
    "ArenaMemoryResource": "upstream_mr arena_size=None dump_log_on_failure=False",
    "BinningMemoryResource": "upstream_mr min_size_exponent=-1 max_size_exponent=-1",
    "CallbackMemoryResource": "allocate_func deallocate_func",
    "CudaAsyncMemoryResource": (
        "initial_pool_size=None release_threshold=None enable_ipc=False enable_fabric=False"
    ),
    "CudaAsyncViewMemoryResource": "pool_handle",
    "CudaMemoryResource": "",
    "FailureCallbackResourceAdaptor": "upstream_mr callback",
    "FixedSizeMemoryResource": "upstream_mr block_size=1048576 blocks_to_preallocate=128",
    "LimitingResourceAdaptor": "upstream_mr allocation_limit",
    "LoggingResourceAdaptor": "upstream_mr log_file_name=None",
    "ManagedMemoryResource": "",
    "PinnedHostMemoryResource": "",
    "PoolMemoryResource": "upstream_mr initial_pool_size=None maximum_pool_size=None",
    "PrefetchResourceAdaptor": "upstream_mr",
    "SamHeadroomMemoryResource": "headroom",
    "StatisticsResourceAdaptor": "upstream_mr",
    "SystemMemoryResource": "",
    "TrackingResourceAdaptor": "upstream_mr capture_stacks=False",
    "UpstreamResourceAdaptor": "upstream_mr",
}
FUNCTIONS = [
    "available_device_memory",
    "disable_logging",
    "enable_logging",
    "get_current_device_resource",
    "get_log_filenames",
    "get_per_device_resource",
    "is_initialized",
    "set_current_device_resource",
    "set_per_device_resource",
]
# The modules that a program may import from, and RMM's stubs of the native ones.
MODULES = {
    "": None,
    "mr": None,
    "mr.experimental": None,
    "rmm": None,
    "statistics": None,
    "pylibrmm.cuda_stream_pool": "pylibrmm/cuda_stream_pool.pyi",
    "pylibrmm.device_buffer": "pylibrmm/device_buffer.pyi",
    "pylibrmm.logger": "pylibrmm/logger.pyi",
    "pylibrmm.memory_resource": "pylibrmm/memory_resource/_memory_resource.pyi",
    "pylibrmm.memory_resource.experimental": "pylibrmm/memory_resource/experimental.pyi",
    "pylibrmm.stream": "pylibrmm/stream.pyi",
}
# RMM's names that are missing here, and additional ones; docs/from-rmm.md describes both.
NOT_THERE = {"_OwningStream", "SupportsCUDAArrayInterface", "_CUDAArrayInterface"}


def ours(name: str) -> ModuleType:
    return import_module(f"isthmus.compat.rmm{name and '.'}{name}")


def arguments(call: Callable[..., Any]) -> list[inspect.Parameter]:
    given = inspect.signature(call).parameters.values()
    return [one for one in given if one.name != "self"]


def written(parameters: list[inspect.Parameter]) -> str:
    return " ".join(
        one.name if one.default is one.empty else f"{one.name}={one.default!r}"
        for one in parameters
        if one.kind is not one.KEYWORD_ONLY
    )


def test_names() -> None:
    assert set(TOP) <= set(rmm.__all__)
    assert [name for name in TOP if getattr(rmm, name, None) is None] == []


def test_resources() -> None:
    made = {name: getattr(mr, name) for name in MADE_WITH}
    assert {name: written(arguments(one)) for name, one in made.items()} == MADE_WITH
    assert [n for n, one in made.items() if not issubclass(one, mr.DeviceMemoryResource)] == []


def test_there_is_nothing_else_in_mr() -> None:
    listed = {*MADE_WITH, *FUNCTIONS, "DeviceMemoryResource", "experimental"}
    assert set(mr.__all__) == listed
    assert set(mr.experimental.__all__) == {"CudaAsyncManagedMemoryResource"}


def test_modules_and_their_lists() -> None:
    for name in MODULES:
        module = ours(name)
        assert [one for one in module.__all__ if not hasattr(module, one)] == [], name
        assert module.__doc__, name


def test_the_places_of_the_classes() -> None:
    assert ours("pylibrmm.device_buffer").DeviceBuffer is rmm.DeviceBuffer
    assert ours("pylibrmm.memory_resource").PoolMemoryResource is mr.PoolMemoryResource
    assert ours("pylibrmm").DeviceBuffer is rmm.DeviceBuffer
    assert ours("pylibrmm").CudaStreamPool is ours("pylibrmm.cuda_stream_pool").CudaStreamPool
    assert ours("pylibrmm").CudaStreamFlags is ours("pylibrmm.stream").CudaStreamFlags
    assert rmm.__version__ == "26.10.00"


def test_documented() -> None:
    """Every public class and method has a docstring."""
    for name in MODULES:
        for public in ours(name).__all__:
            value = getattr(ours(name), public)
            if not inspect.isclass(value) and not inspect.isfunction(value):
                continue
            assert value.__doc__, public
            for member, what in vars(value).items() if inspect.isclass(value) else ():
                plain = inspect.isfunction(what) or isinstance(what, (property, staticmethod))
                if plain and not member.startswith("_"):
                    assert what.__doc__, f"{public}.{member}"


@pytest.mark.parametrize("name", MODULES)
def test_names_of_the_installed_rmm(name: str) -> None:
    pytest.importorskip("rmm")
    theirs = import_module(f"rmm{name and '.'}{name}")
    listed = getattr(theirs, "__all__", None)
    if listed is None:
        made_there = theirs.__name__
        listed = [
            one
            for one, value in vars(theirs).items()
            if not one.startswith("_")
            and (inspect.isclass(value) or inspect.isfunction(value))
            and value.__module__ == made_there
        ]
    missing = [one for one in listed if not hasattr(ours(name), one)]
    assert not missing


@pytest.mark.parametrize("name", [name for name, stub in MODULES.items() if stub])
def test_signatures_of_the_installed_rmm(name: str) -> None:
    installed = pytest.importorskip("rmm")
    stub = Path(installed.__file__).parent / (MODULES[name] or "")
    if not stub.exists():
        pytest.skip(f"this RMM has no {MODULES[name]}")
    module = ours(name)
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            compare(getattr(module, node.name), node, node.name)
        if isinstance(node, ast.ClassDef) and node.name not in NOT_THERE:
            made = getattr(module, node.name)
            for each in node.body:
                if isinstance(each, ast.FunctionDef):
                    compare(vars_of(made, each.name), each, f"{node.name}.{each.name}")


def vars_of(made: type, name: str) -> Any:
    assert hasattr(made, name), f"{made.__name__} has no {name}"
    return inspect.getattr_static(made, name)


def compare(mine: Any, theirs: ast.FunctionDef, where: str) -> None:
    """The arguments are the same in the same order, with defaults where RMM has them."""
    kinds = {ast.unparse(one) for one in theirs.decorator_list}
    if "property" in kinds:
        assert isinstance(mine, property), where
        return
    mine = mine.__func__ if isinstance(mine, staticmethod) else mine
    if not inspect.isfunction(mine):  # a slot that Python fills itself
        return
    found = {one.name: one for one in arguments(mine)}
    given = theirs.args
    positional = [one.arg for one in given.args if one.arg != "self"]
    own = [one.name for one in found.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert own == positional, where
    optional = positional[len(positional) - len(given.defaults) :] if given.defaults else []
    optional += [one.arg for one in given.kwonlyargs]
    for name in found:
        needed = name in positional and name not in optional
        # The stub describes only a part of an overload, and omits add_bin's default.
        if "overload" not in kinds and where != "BinningMemoryResource.add_bin":
            assert (found[name].default is inspect.Parameter.empty) == needed, f"{where} {name}"
    assert {one.arg for one in given.kwonlyargs} <= set(found), where


class OtherVersion:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 1, 0


# Arguments that RMM rejects before it needs a device: the error here has the same class, or a
# subclass.
REFUSED: dict[str, Callable[[Any], object]] = {
    "buffer None": lambda m: m.DeviceBuffer.to_device(None),
    "buffer str": lambda m: m.DeviceBuffer.to_device("abc"),
    "buffer int": lambda m: m.DeviceBuffer.to_device(3),
    "buffer u2": lambda m: m.DeviceBuffer.to_device(np.ones(2, "u2")),
    "buffer i1": lambda m: m.DeviceBuffer.to_device(np.ones(2, "i1")),
    "buffer 2-D": lambda m: m.DeviceBuffer.to_device(np.ones((2, 2), "u1")),
    "buffer gaps": lambda m: m.DeviceBuffer.to_device(np.ones(4, "u1")[::2]),
    "stream None": lambda m: m.DeviceBuffer(size=1, stream=None),
    "stream int": lambda m: m.DeviceBuffer(size=1, stream=3),
    "mr int": lambda m: m.DeviceBuffer(mr=3),
    "size negative": lambda m: m.DeviceBuffer(size=-1),
    "size too large": lambda m: m.DeviceBuffer(size=1 << 64),
    "size str": lambda m: m.DeviceBuffer(size="5"),
    "size None": lambda m: m.DeviceBuffer(size=None),
    "ptr negative": lambda m: m.DeviceBuffer(ptr=-1, size=1),
    "ptr str": lambda m: m.DeviceBuffer(ptr="x", size=1),
    "positional": lambda m: m.DeviceBuffer(5),
    "upstream int": lambda m: m.mr.UpstreamResourceAdaptor(3),
    "upstream none": lambda m: m.mr.PoolMemoryResource(),
    "pool text": lambda m: m.mr.PoolMemoryResource(m.mr.CudaMemoryResource(), "2k"),
    "pool sizes": lambda m: m.mr.PoolMemoryResource(m.mr.CudaMemoryResource(), "1GiB", "1MiB"),
    "pool float": lambda m: m.mr.PoolMemoryResource(m.mr.CudaMemoryResource(), 1.5),
    "arena text": lambda m: m.mr.ArenaMemoryResource(m.mr.CudaMemoryResource(), "2k"),
    "limit text": lambda m: m.mr.LimitingResourceAdaptor(m.mr.CudaMemoryResource(), "1GiB"),
    "limit negative": lambda m: m.mr.LimitingResourceAdaptor(m.mr.CudaMemoryResource(), -1),
    "bins": lambda m: m.mr.BinningMemoryResource(m.mr.CudaMemoryResource(), 300, 400),
    "no log": lambda m: m.mr.LoggingResourceAdaptor(m.mr.CudaMemoryResource()),
    "pop": lambda m: m.mr.StatisticsResourceAdaptor(m.mr.CudaMemoryResource()).pop_counters(),
    "view": lambda m: m.mr.CudaAsyncViewMemoryResource(3),
    "allocate None": lambda m: m.mr.CudaMemoryResource().allocate(10, None),
    "device str": lambda m: m.mr.get_per_device_resource("a"),
    "level": lambda m: m.set_logging_level(3),
    "profiler": lambda m: m.statistics.profiler().__enter__(),
}


def compare_refusals(rows: dict[str, Callable[[Any], object]], theirs: Any, mine: Any) -> None:
    differ = {}
    for row, use in rows.items():
        wanted, got = raised(lambda use=use: use(theirs)), raised(lambda use=use: use(mine))
        if wanted is None or got is None or not issubclass(got, wanted):
            differ[row] = (wanted, got)
    assert differ == {}


@pytest.mark.host_only
def test_refused_as_by_the_installed_rmm(on: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = pytest.importorskip("rmm")
    monkeypatch.delenv("RMM_LOG_FILE", raising=False)
    import_module("rmm.statistics")
    compare_refusals(REFUSED, theirs, rmm)


STREAMS: dict[str, Callable[[Any], object]] = {
    "int": lambda m: m.stream.Stream(3),
    "flags": lambda m: m.stream.Stream(m.stream.DEFAULT_STREAM, flags=0),
    "version": lambda m: m.stream.Stream(OtherVersion()),
    "pool of 0": lambda m: m.cuda_stream_pool.CudaStreamPool(0),
    "pool of -1": lambda m: m.cuda_stream_pool.CudaStreamPool(-1),
    "pool of a": lambda m: m.cuda_stream_pool.CudaStreamPool("a"),
}


@pytest.mark.host_only
def test_streams_refused_as_by_the_installed_rmm(on: Device) -> None:
    pytest.importorskip("rmm")
    for module in ("stream", "cuda_stream_pool"):
        import_module(f"rmm.pylibrmm.{module}")
    compare_refusals(STREAMS, import_module("rmm").pylibrmm, ours("pylibrmm"))


def test_the_installed_rmm_is_left_alone() -> None:
    python("""
import sys
import isthmus.compat.rmm, isthmus.compat.rmm.mr, isthmus.compat.rmm.statistics
assert "rmm" not in sys.modules
""")


def test_the_questions_about_devices_need_no_import() -> None:
    """RMM behaves the same: ``import rmm`` suffices for ``rmm._cuda.gpu``."""
    pytest.importorskip("cuda.bindings.runtime")
    python(
        "import isthmus.compat.rmm as rmm\n"
        "assert callable(rmm._cuda.gpu.getDevice)\n"
        "try:\n"
        "    rmm._cuda.nothing\n"
        "except AttributeError as error:\n"
        "    assert 'nothing' in str(error)\n"
    )
