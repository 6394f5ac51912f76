# SPDX-License-Identifier: Apache-2.0
"""isthmus.compat.dpctl.memory and isthmus.memory, compared with dpctl.memory on Intel's runtime."""

from __future__ import annotations

from timeit import Timer
from typing import Any

from _timing import Report, dpctl_queue, import_dpctl, interleaved

import isthmus
import isthmus.memory

KINDS = ("Device", "Shared", "Host")
SIZES = {"64 B": 64, "4 KiB": 4096, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
# The peer's time, plus the spread of two medians on a busy machine.
PAR = 1.05


class Three:
    """The same class of all three packages, and how each allocates on the same device."""

    def __init__(self, door: Any, theirs: Any, queue: Any, own: isthmus.Queue, kind: str) -> None:
        name = f"MemoryUSM{kind}"
        self.kind = kind
        self.queue, self.own = queue, own
        self.classes = {
            "door": getattr(door, name),
            "isthmus": getattr(isthmus.memory, name),
            "dpctl": getattr(theirs, name),
        }

    def times(self, statement: str, setup: str = "pass", **values: Any) -> dict[str, float]:
        """Returns the seconds of ``statement``, in which ``made_by`` is the class."""
        timers = {}
        for who, made_by in self.classes.items():
            on = self.own if who == "isthmus" else self.queue
            names = {"made_by": made_by, "queue": on, **values}
            timers[who] = Timer(statement, setup, globals=names)
        return interleaved(timers)


def allocations(report: Report, three: Three) -> None:
    for name, size in SIZES.items():
        taken = three.times("made_by(size, queue=queue)", size=size)
        beside = ("dpctl", taken["dpctl"])
        report.below(f"{three.kind}: {name} made and dropped, isthmus.memory", taken["isthmus"],
                     0.5e-6, beside)  # fmt: skip
        report.below(f"{three.kind}: {name} made and dropped", taken["door"], 1.2e-6, beside)
        taken = three.times("made_by(size, queue=queue)._pointer", size=size)
        title = f"{three.kind}: {name} made, its address told, and dropped"
        if size < SIZES["64 MiB"]:
            report.against(title, taken["door"], ("dpctl", taken["dpctl"]), 1.3)
        else:  # instead of growing, the pool waits for memory that was dropped unused
            report.below(title, taken["door"], 200e-6, ("dpctl", taken["dpctl"]))
    used = "made = made_by(size, queue=queue); made._pointer; made.memset(1); del made"
    taken = three.times(used, size=SIZES["64 MiB"])
    report.against(f"{three.kind}: 64 MiB made, its address told, set and dropped", taken["door"],
                   ("dpctl", taken["dpctl"]), 1 / 3)  # fmt: skip
    taken = three.times("made_by(size, queue=queue).memset(1)", size=SIZES["64 MiB"])
    report.against(f"{three.kind}: 64 MiB made, set and dropped", taken["door"],
                   ("dpctl", taken["dpctl"]), 1 / 5)  # fmt: skip


def copies(report: Report, three: Three) -> None:
    import numpy as np

    for name, small in (("4 KiB", True), ("64 MiB", False)):
        size = SIZES[name]
        host = np.ones(size, np.uint8)
        setup = "made = made_by(len(host), queue=queue)"
        for call, most_large in (
            ("copy_from_host(host)", PAR),
            ("copy_to_host(host)", 1 / 2.5),
            ("copy_to_host()", 1 / 3),
        ):
            most = (1 / 15 if three.kind != "Device" else PAR) if small else most_large
            taken = three.times(f"made.{call}", setup, host=host)
            report.against(f"{three.kind}: {name} {call}", taken["door"],
                           ("dpctl", taken["dpctl"]), most)  # fmt: skip


def access(report: Report, three: Three) -> None:
    setup = "made = made_by(1024, queue=queue)"
    for what in ("nbytes", "_pointer", "sycl_queue", "__sycl_usm_array_interface__"):
        taken = three.times(f"made.{what}", setup)
        report.against(f"{three.kind}: {what}", taken["door"], ("dpctl", taken["dpctl"]), PAR)
    taken = three.times("made_by(made)", setup)
    report.against(f"{three.kind}: wrapped without a copy", taken["door"],
                   ("dpctl", taken["dpctl"]), PAR)  # fmt: skip
    made = three.classes["dpctl"](1024, queue=three.queue)
    taken = three.times("made_by(made)", made=made)
    report.against(f"{three.kind}: dpctl's wrapped without a copy", taken["door"],
                   ("dpctl", taken["dpctl"]), PAR)  # fmt: skip


def main() -> None:
    """Prints a line for each figure."""
    import_dpctl()
    import dpctl.memory as theirs

    import isthmus.compat.dpctl.memory as door

    device = isthmus.Device("sycl")
    queue = dpctl_queue(device)
    report = Report()
    for kind in KINDS:
        isthmus.set_resource(isthmus.memory.PoolResource(kind.lower(), device))
        three = Three(door, theirs, queue, device.default_queue, kind)
        allocations(report, three)
        copies(report, three)
        access(report, three)
    report.finish()


if __name__ == "__main__":
    main()
