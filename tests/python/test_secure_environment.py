# SPDX-License-Identifier: Apache-2.0
"""A program with more privileges than its caller loads no library named by the environment."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support import relay

from isthmus import _core

NOBODY = 65534

PROGRAM = """
import ctypes, sys
AT_SECURE = 23
libc = ctypes.CDLL(None)
libc.getauxval.restype, libc.getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
library = ctypes.CDLL(sys.argv[1])
library.isthmus_device_find(b"cuda", ctypes.byref(ctypes.c_void_p()))
with open("/proc/self/maps") as maps:
    print(libc.getauxval(AT_SECURE), sys.argv[2] in maps.read())
"""


def found_by(interpreter: Path) -> str:
    """Whether the program runs in secure mode, and whether it opened the library that was named."""
    names = relay("cuda")
    done = subprocess.run(
        [
            interpreter,
            "-S",
            "-c",
            PROGRAM,
            os.path.realpath(_core._library_path()),
            os.path.realpath(names["ISTHMUS_CUDA_LIBRARY"]),
        ],
        env=names | {"PYTHONHOME": sys.base_prefix},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_set_group_id() -> None:
    original = Path(sys.executable).resolve()
    assert found_by(original) == "0 True"
    if os.geteuid() != 0:
        pytest.skip("only root makes a program that runs with another group's rights")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        copy = Path(folder, "python")
        shutil.copy(original, copy)
        os.chown(copy, -1, NOBODY)
        copy.chmod(stat.S_ISGID | 0o755)
        told = found_by(copy)
    if told.startswith("0"):
        pytest.skip("the file system takes no set-group-ID programs")
    assert told == "1 False"
