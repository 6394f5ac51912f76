# SPDX-License-Identifier: Apache-2.0
"""The Python blocks of document 003, run one after the other in one namespace.

They name things that they do not define: kernels, data, a queue of batches, and the messages and
actors of the library that the document is of. The test gives all of these, as small as they can be.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pytest
from support import sim, trim_default_pools

import isthmus

if TYPE_CHECKING:
    from isthmus import Device

DOCUMENT = Path(__file__).parent / "documents" / "003_unified_buffer.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)


def add_one(array: Any) -> None:
    """A kernel that has ended when this returns."""
    if isinstance(array, np.ndarray):
        array += 1
    else:
        array.copy_from(array.to_numpy() + 1)


class Copy(isthmus.Buffer):
    """What the document's first block has of another library."""

    @classmethod
    def to_device(cls, data: np.ndarray) -> Copy:
        made = cls(data.nbytes)
        made.copy_from(data)
        return made

    def copy_to_host(self) -> np.ndarray:
        return np.frombuffer(self.tobytes(), np.float32)


class Runtime:
    """Sends to an actor that looks up the buffer of the message, and uses it."""

    def __init__(self, space: dict[str, Any]) -> None:
        self.space = space
        self.sums: list[float] = []

    async def send(self, actor: str, message: Any) -> None:
        assert actor == "processor"
        buf = self.space["buffers"][message.buffer_id]
        part = buf[message.offset : message.offset + message.size]
        add_one(part.device)
        buf.mark_device_dirty()
        self.sums.append(float(part.to_numpy().sum()))


async def launched(kernel: Any, array: Any) -> None:
    kernel(array)


def names() -> dict[str, Any]:
    data = np.arange(1000, dtype=np.float32)
    batches = [data + number for number in range(4)]
    left = [None, *batches[:0:-1]]
    space: dict[str, Any] = {
        "np": np,
        "cuda": Copy,
        "kernel": lambda array: None,
        "data": data,
        "input_data": data * 2,
        "large_array": data,
        "my_kernel": add_one,
        "gpu_kernel": add_one,
        "process": add_one,
        "process_on_gpu": add_one,
        "message": lambda cls: cls,
        "dataclass": dataclass,
        "uuid4": uuid4,
        "batches": batches,
        "data_available": lambda: len(left) > 1,
        "get_next_batch": lambda: left.pop(),
        "launch_async": lambda kernel, array: asyncio.ensure_future(launched(kernel, array)),
    }
    space["runtime"] = Runtime(space)
    return space


async def run(block: str, space: dict[str, Any]) -> list[str]:
    """The lines that it prints. It may wait, as in a notebook."""
    code = compile(block, DOCUMENT.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        waits = eval(code, space)
        if waits is not None:
            await waits
    return printed.getvalue().splitlines()


def block_with(text: str) -> str:
    (found,) = (block for block in BLOCKS if text in block)
    return found


async def test_all_blocks(dev: Device) -> None:
    space = names()
    printed: list[str] = []
    trim_default_pools(dev)
    with dev.default_queue:
        for block in BLOCKS:
            printed += await run(block, space)
    isthmus.get_memory_pool().clear()
    assert printed[:2] == ["HOST_DIRTY", "SYNCHRONIZED"]
    assert printed[2] in ("Allocated: 40.0 MB", "Allocated: 41.9 MB")  # a driver's whole pages


async def outcome_of(text: str, dev: Device) -> dict[str, Any]:
    space = names()
    space.update(UnifiedBuffer=isthmus.UnifiedBuffer, get_memory_pool=isthmus.get_memory_pool)
    with dev.default_queue:
        await run(block_with(text), space)
    return space


async def test_results_of_work_on_the_device(dev: Device) -> None:
    explicit = await outcome_of("# Explicitly sync before kernel launch", dev)
    assert (explicit["result"] == np.arange(1000) + 1).all()
    read = await outcome_of("gpu_kernel(buf.device)", dev)
    assert (read["result"] == np.arange(1000) * 2 + 1).all()
    sent = await outcome_of("create_work_buffer", dev)
    assert sent["runtime"].sums == [float((np.arange(1000) + 1).sum())]
    swapped = await outcome_of("buf_a, buf_b = buf_b, buf_a", dev)
    assert (swapped["buf_a"].host == np.arange(1000) + 3).all()


async def test_a_pool_returns_the_same_buffer(dev: Device) -> None:
    space = await outcome_of("# Acquire from pool", dev)
    assert space["buf2"] is space["buf"]
    batches = await outcome_of("results.append", dev)
    assert len(batches["results"]) == 4
    isthmus.get_memory_pool().clear()


async def test_memory_of_a_separate_device() -> None:
    with sim().default_queue:
        space = names() | {"UnifiedBuffer": isthmus.UnifiedBuffer}
        printed = await run(block_with("Allocated:"), space)
    assert printed == ["Allocated: 41.9 MB"]  # 40 MB, in pieces of 2 MiB that the pool took


def test_it_is_the_document() -> None:
    assert len(BLOCKS) == 11
    with pytest.raises(SyntaxError):
        compile(block_with("await gpu_task"), DOCUMENT.name, "exec")
