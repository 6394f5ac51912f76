# SPDX-License-Identifier: Apache-2.0
"""The Julia blocks of document 004 beside their counterparts in docs/typed-arrays.md.

The Python blocks run one after the other in one namespace, on every backend. The C++ blocks are
parts of another test, tests/conformance/document_004_test.cpp; test_docs.py compares them with it.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import ROOT

from isthmus import low_level

if TYPE_CHECKING:
    from isthmus import Context, Device

pytestmark = pytest.mark.second_driver
DOCUMENT = Path(__file__).parent / "documents" / "004_typed_arrays.md"
PAGE = ROOT / "docs" / "typed-arrays.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall(PAGE.read_text(encoding="utf-8"))
PYTHON = [source for language, source in BLOCKS if language == "python"]


def test_every_block_of_the_document_in_its_order() -> None:
    julia = [source for language, source in BLOCKS if language == "julia"]
    assert julia == [source for _, source in FENCE.findall(DOCUMENT.read_text(encoding="utf-8"))]
    assert len(julia) == 17


def test_each_is_followed_by_its_counterparts() -> None:
    languages = [language for language, _ in BLOCKS]
    starts = [at for at, language in enumerate(languages) if language == "julia"]
    assert all(languages[at + 1 : at + 3] == ["python", "cpp"] for at in starts)


def run_blocks(dev: Device) -> tuple[dict[str, Any], list[str]]:
    """The namespace at the end, and the lines that were printed."""
    space: dict[str, Any] = {"__name__": "document"}
    printed = io.StringIO()
    with dev.default_queue, contextlib.redirect_stdout(printed):
        for block in PYTHON:
            if dev.backend != "host":  # a compiled loop over that much takes seconds elsewhere
                block = block.replace("10_000_000", "100_000")
            exec(compile(block, PAGE.name, "exec"), space)
    return space, printed.getvalue().splitlines()


def read_when_freed(patched: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The contents of device memory at the time when a code block frees it."""
    seen: list[np.ndarray] = []
    free = low_level.free

    def read_and_free(ctx: Context, ptr: low_level.UsmPointer) -> None:
        if ptr.kind == "device":
            seen.append(np.zeros(256, np.float32))
            low_level.unsafe_copyto(ctx, low_level.device(), seen[-1], ptr, 256).wait()
        free(ctx, ptr)

    patched.setattr(low_level, "free", read_and_free)
    return seen


def test_python_blocks(dev: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    if set(dev.kinds) != {"device", "shared", "host"}:
        pytest.skip(f"{dev.filter} offers {', '.join(dev.kinds)} alone: {dev.limitations}")
    freed = read_when_freed(monkeypatch)
    space, printed = run_blocks(dev)
    assert printed[0] == "42.0"
    assert any("Memory size:" in line for line in printed)
    assert space["temp"].freed
    assert len(space["results"]) == 20_000
    assert np.array_equal(space["result"], space["huge_data"] + 1)
    assert len(freed) == 1
    assert np.array_equal(freed[0], space["rand"](256))
    dev.default_queue.wait()
