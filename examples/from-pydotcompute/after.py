# SPDX-License-Identifier: Apache-2.0
"""A flame moves over a plate: the host sets its position, the device spreads the heat."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from isthmus.compat.pydotcompute import UnifiedBuffer
from isthmus.compat.pydotcompute.core.accelerator import get_accelerator
from isthmus.compat.pydotcompute.core.memory_pool import configure_memory_pool
from isthmus.compat.pydotcompute.exceptions import PyDotComputeError

SIZE, STEPS = 256, 500
FLAME = 100.0


def spread(plate: Any, result: Any) -> None:
    """Computes one step, with arrays of the device's library: CuPy or NumPy."""
    inner = plate[1:-1, 1:-1]
    neighbours = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
    result[1:-1, 1:-1] = inner + 0.2 * (neighbours - 4 * inner)


def flame_position(step: int) -> tuple[int, int]:
    angle = 2 * np.pi * step / STEPS
    row, column = (SIZE / 2 + SIZE / 3 * component for component in (np.sin(angle), np.cos(angle)))
    return int(row), int(column)


def simulate() -> UnifiedBuffer:
    now, later = (UnifiedBuffer((SIZE, SIZE)).allocate().zeros() for _ in range(2))
    for step in range(STEPS):
        now[flame_position(step)] = FLAME
        spread(now.device, later.device)
        later.mark_device_dirty()
        now, later = later, now
    get_accelerator().synchronize()
    return now


def simulate_with_numpy() -> np.ndarray:
    now, later = np.zeros((2, SIZE, SIZE), np.float32)
    for step in range(STEPS):
        now[flame_position(step)] = FLAME
        spread(now, later)
        now, later = later, now
    return now


def main() -> None:
    configure_memory_pool(max_size_mb=64)
    heat = np.empty((SIZE, SIZE), np.float32)
    try:
        simulate().copy_to(heat)
    except PyDotComputeError as problem:
        sys.exit(f"the simulation failed: {problem}")
    if not np.allclose(heat, simulate_with_numpy(), atol=1e-3):
        sys.exit("the result differs from NumPy's")
    row, column = np.unravel_index(heat.argmax(), heat.shape)
    print(f"hottest at {row}, {column}: {heat.max():.2f} degrees; {heat.mean():.4f} on average")


if __name__ == "__main__":
    main()
