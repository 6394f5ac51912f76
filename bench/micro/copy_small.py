# SPDX-License-Identifier: Apache-2.0
"""4 KiB to and from memory that the host can access: at most a microsecond."""

from __future__ import annotations

from timeit import Timer

import numpy as np
from _timing import Report, dpctl_queue, import_dpctl, interleaved

import isthmus
import isthmus.memory

NBYTES = 4096


def main() -> None:
    """Prints a line for each direction, kind and device."""
    report = Report()
    import_dpctl()
    peers = {kind: _dpctl(kind) for kind in ("shared", "host")}
    for device in ("host", "opencl"):
        for kind, theirs in peers.items():
            _measure(report, device, kind, theirs)
    report.finish()


def _dpctl(kind: str) -> object:
    device = isthmus.Device("opencl")
    import dpctl.memory

    make = {"shared": dpctl.memory.MemoryUSMShared, "host": dpctl.memory.MemoryUSMHost}[kind]
    return make(NBYTES, queue=dpctl_queue(device))


def _measure(report: Report, device: str, kind: str, theirs: object) -> None:
    buffer = isthmus.Buffer(NBYTES, kind=kind, queue=isthmus.Queue(device))
    host = np.ones(NBYTES, np.uint8)
    names = {"ours": buffer, "theirs": theirs, "host": host}
    for ours, peer in (("copy_from", "copy_from_host"), ("copy_to", "copy_to_host")):
        taken = interleaved(
            {
                "isthmus": Timer(f"ours.{ours}(host)", globals=names),
                "dpctl": Timer(f"theirs.{peer}(host)", globals=names),
            },
        )
        title = f"{device}, {kind}: {ours}, 4 KiB"
        report.below(title, taken["isthmus"], 1e-6, ("dpctl", taken["dpctl"]))


if __name__ == "__main__":
    main()
