# SPDX-License-Identifier: Apache-2.0
"""Packs messages of many sizes into one block of device memory, and unpacks them again."""

from __future__ import annotations

import sys
import time
from typing import Any

import dpctl
import numpy as np
from dpctl.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, USMAllocationError

MESSAGES = 2000
LARGEST = 64 * 1024


def messages() -> list[np.ndarray]:
    generator = np.random.default_rng(1)
    sizes = generator.integers(16, LARGEST, MESSAGES)
    return [generator.integers(0, 256, size, np.uint8) for size in sizes]


def pack(queue: Any, sent: list[np.ndarray]) -> Any:
    """Packs one message after another, each through memory that host and device can access."""
    block = MemoryUSMDevice(sum(map(len, sent)), alignment=64, queue=queue)
    view = MemoryUSMHost(len(block), queue=queue)
    at = 0
    for message in sent:
        staged = MemoryUSMShared(len(message), queue=queue)
        staged.copy_from_host(message)
        memoryview(view)[at : at + len(message)] = memoryview(staged)
        at += len(message)
    queue.memcpy_async(block, view, len(block)).wait()
    return block


def unpack(block: Any, sizes: list[int]) -> list[np.ndarray]:
    contents = block.copy_to_host()
    return np.split(contents, np.cumsum(sizes)[:-1])


def main() -> None:
    try:
        queue = dpctl.SyclQueue()
        sent = messages()
        begin = time.perf_counter()
        received = unpack(pack(queue, sent), [len(message) for message in sent])
        elapsed = time.perf_counter() - begin
    except (dpctl.SyclQueueCreationError, USMAllocationError) as problem:
        sys.exit(f"cannot pack the messages: {problem}")
    if not all(np.array_equal(*pair) for pair in zip(sent, received, strict=True)):
        sys.exit("the unpacked messages differ from the packed ones")
    print(f"{MESSAGES} messages, {sum(map(len, sent)) >> 20} MiB", file=sys.stdout)
    print(f"{elapsed * 1e3:.0f} ms", file=sys.stderr)


if __name__ == "__main__":
    main()
