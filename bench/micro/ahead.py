# SPDX-License-Identifier: Apache-2.0
"""The memory that a pool holds for buffers if the host runs ahead of its device.

Each step creates a buffer of 4 MiB, submits a fill of it to its queue and drops it, without waiting
for anything. No operation runs before the last step is submitted: all are ordered after a host
event. On CUDA the library holds back operations that wait for such an event, with their memory;
there they are ordered after fills that take longer. The pool may hold at most 1.25 times the memory
of one step at its peak, on every device that can be delayed this way.
"""

from __future__ import annotations

import sys
from time import perf_counter

import isthmus
from isthmus.memory import PoolResource

STEPS, STEP_BYTES = 200, 4 << 20
BOUND = 1.25


def main() -> None:
    """Prints a line for each device."""
    held = True
    for device in isthmus.devices():
        if "wait_for_host" in device.capabilities:
            held = run_ahead(isthmus.Queue(device)) and held
    sys.exit(1 if "--check" in sys.argv and not held else 0)


def run_ahead(queue: isthmus.Queue) -> bool:
    """Measures one queue; returns whether the bound was held."""
    pool = PoolResource("device", queue.device, queue.context, growth_bytes=STEP_BYTES)
    gate = isthmus.Event()
    if queue.device.backend == "cuda":
        large = isthmus.Buffer(1 << 30, queue=queue)
        for _ in range(STEPS):
            large.fill(0, blocking=False)
    else:
        queue.fence(after=[gate])
    begin = perf_counter()
    for step in range(STEPS):
        isthmus.Buffer(STEP_BYTES, queue=queue, resource=pool).fill(step % 256, blocking=False)
    microseconds = (perf_counter() - begin) / STEPS * 1e6
    ratio = pool.held_bytes / STEP_BYTES
    gate.complete()
    queue.wait()
    print(
        f"{queue.device.filter:<12} {STEPS} steps ahead: {microseconds:7.2f} us a step; held"
        f" {ratio:6.2f} of one step's memory   at most {BOUND:g}:"
        f" {'held' if ratio <= BOUND else 'NOT HELD'}",
        flush=True,
    )
    return ratio <= BOUND


if __name__ == "__main__":
    main()
