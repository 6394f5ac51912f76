# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/from-*: each original, and the same one with its imports changed."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import has_gpu, opencl_library

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PEERS = {"from-dpctl": "dpctl", "from-pydotcompute": "pydotcompute", "from-rmm": "rmm"}
NEEDS_A_CARD = {"from-rmm"}


def run(script: Path) -> str:
    environment = dict(os.environ)
    library = opencl_library()
    if library:  # dpctl alone does not find the driver where pip installs it
        environment["OCL_ICD_FILENAMES"] = library
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("folder", PEERS)
def test_the_outcome_is_the_same(folder: str) -> None:
    if folder == "from-dpctl":
        pytest.importorskip("dpctl")
    after = run(EXAMPLES / folder / "after.py")
    assert after.strip()
    if importlib.util.find_spec(PEERS[folder]) is None:
        pytest.skip(f"{PEERS[folder]} is not installed")
    if folder in NEEDS_A_CARD and not has_gpu():
        pytest.skip(f"{PEERS[folder]} needs a CUDA device")
    assert run(EXAMPLES / folder / "before.py") == after


@pytest.mark.parametrize("folder", PEERS)
def test_imports_alone_differ(folder: str) -> None:
    before, after = ((EXAMPLES / folder / f"{name}.py").read_text() for name in ("before", "after"))
    changed = [
        line[1:].strip()
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        if line[0] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert changed
    names = r"[A-Z]\w+,|\)|"
    assert all(re.fullmatch(rf"(from|import) .*|{names}", line) for line in changed), changed
