# SPDX-License-Identifier: Apache-2.0
"""One library, one registry: every way to open it sees the same allocations."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import SANITIZED

import isthmus
from isthmus import memory

LOADS = Path(__file__).resolve().parents[1] / "abi" / "loads" / "loads.c"
WAYS = [
    os.RTLD_NOW | os.RTLD_LOCAL,
    os.RTLD_LAZY | os.RTLD_LOCAL,
    os.RTLD_NOW | os.RTLD_GLOBAL,
    os.RTLD_NOW | os.RTLD_NOLOAD,
    *([] if SANITIZED else [os.RTLD_NOW | os.RTLD_DEEPBIND]),
]


class LiveInfo(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("count", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
    )


def live_through(library: ctypes.CDLL) -> int:
    info = LiveInfo(ctypes.sizeof(LiveInfo))
    assert library.isthmus_live_info(0, ctypes.byref(info)) == 0
    return int(info.count)


@pytest.mark.parametrize("mode", WAYS)
@pytest.mark.parametrize("name", [isthmus.get_library(), "libisthmus.so.0"])
def test_ctypes_and_the_module_count_the_same(name: str, mode: int) -> None:
    library = ctypes.CDLL(name, mode=mode)
    before = memory.live()[0]
    assert live_through(library) == before
    buffer = isthmus.Buffer(100, kind="host", device="host")
    assert live_through(library) == memory.live()[0] == before + 1
    buffer.free()
    assert live_through(library) == memory.live()[0] == before


@pytest.mark.skipif(SANITIZED, reason="it opens the library with RTLD_DEEPBIND too")
def test_a_program_that_opens_it_every_way(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path / "loads"
    include = isthmus.get_include()
    subprocess.run(
        [compiler, "-std=c99", "-Wall", "-Wextra", f"-I{include}", LOADS, "-o", program, "-ldl"],
        check=True,
    )
    library = Path(isthmus.get_library())
    env = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    done = subprocess.run([program, library], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "one registry"
