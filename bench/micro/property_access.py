# SPDX-License-Identifier: Apache-2.0
"""Reading a property of a memory object, which must not take longer than in dpctl."""

from __future__ import annotations

from timeit import Timer

from _timing import Report, dpctl_queue, import_dpctl, interleaved

import isthmus
import isthmus.memory

# dpctl's time, plus the spread of two medians on a busy machine.
BOUND = 1.05
NAMES = ("nbytes", "_pointer", "sycl_queue", "sycl_device", "sycl_context")


def main() -> None:
    """Prints a line for each property."""
    import_dpctl()
    device = isthmus.Device("opencl")
    queue = isthmus.Queue(device)
    ours = isthmus.memory.MemoryUSMShared(1024, queue=queue)
    import dpctl.memory

    theirs = dpctl.memory.MemoryUSMShared(1024, queue=dpctl_queue(device))
    report = Report()
    for name in NAMES:
        taken = interleaved(
            {
                "isthmus": Timer(f"memory.{name}", globals={"memory": ours}),
                "dpctl": Timer(f"memory.{name}", globals={"memory": theirs}),
            },
        )
        report.against(f"memory.{name}", taken["isthmus"], ("dpctl", taken["dpctl"]), BOUND)
    plain = isthmus.Buffer(1024, kind="shared", queue=queue)
    for name in ("nbytes", "kind", "ptr", "queue", "device"):
        taken = interleaved({name: Timer(f"buffer.{name}", globals={"buffer": plain})})
        report.below(f"Buffer.{name}", taken[name], 80e-9)
    report.finish()


if __name__ == "__main__":
    main()
