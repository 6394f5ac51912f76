# SPDX-License-Identifier: Apache-2.0
"""The two Cython blocks of the USM memory instructions, compiled with the shipped declarations."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import isthmus
import isthmus.memory

if TYPE_CHECKING:
    from types import ModuleType

pytest.importorskip("Cython", reason="Cython is not installed")

SOURCE = Path(__file__).with_name("usm_memory.pyx")


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("cython")
    c_file = folder / "usm_memory.c"
    package_parent = Path(isthmus.__file__).parent.parent
    cython = [sys.executable, "-m", "cython", "-3", "--fast-fail"]
    subprocess.run([*cython, "-I", package_parent, SOURCE, "-o", c_file], check=True)
    library = Path(isthmus.get_library())
    target = folder / f"usm_memory{sysconfig.get_config_var('EXT_SUFFIX')}"
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{isthmus.get_include()}"]
    links = [f"-L{library.parent}", f"-l:{library.name}", f"-Wl,-rpath,{library.parent}"]
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", *includes, c_file, "-o", target, *links], check=True
    )
    spec = importlib.util.spec_from_file_location("usm_memory", target)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_allocation_pattern(module: ModuleType) -> None:
    queue = isthmus.Queue()
    before = isthmus.memory.live("device")
    memory = module.MemoryUSMDevice(1024, queue)
    assert memory.nbytes == 1024
    count, nbytes = isthmus.memory.live("device")
    assert (count - before[0], nbytes - before[1]) == (1, 1024)
    del memory
    queue.wait()
    assert isthmus.memory.live("device") == before


def test_copy_operations(module: ModuleType) -> None:
    queue = isthmus.Queue()
    data = os.urandom(4096)
    memory = module.MemoryUSMDevice(4096, queue)
    memory.copy_from_host(data)
    back = isthmus.Buffer(4096, kind="host", queue=queue)
    memory.copy_to(back)
    assert back.tobytes() == data
    with pytest.raises(ValueError, match="larger than allocation"):
        memory.copy_from_host(bytes(4097))


def test_errors_and_handles(module: ModuleType) -> None:
    queue = isthmus.Queue()
    with pytest.raises(TypeError, match=r"isthmus\.Queue"):
        module.MemoryUSMDevice(16, "no queue")
    with pytest.raises(isthmus.USMAllocationError):
        module.MemoryUSMDevice(2**62, queue)
    buffer = isthmus.Buffer(16, queue=queue)
    assert module.address_of(buffer) == buffer.ptr
    buffer.free()
    with pytest.raises(isthmus.ClosedError):
        module.address_of(buffer)
