# SPDX-License-Identifier: Apache-2.0
"""64 MiB on Intel's runtime, compared with dpctl's best case: page-aligned host memory.

Isthmus copies the same aligned memory, and an ordinary NumPy array. The latter begins 16 bytes into
a page, and costs dpctl two to four times as much. The bound applies to both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from _timing import Report, dpctl_queue, import_dpctl, interleaved

import isthmus

if TYPE_CHECKING:
    from collections.abc import Callable

NBYTES = 64 << 20
PAGE = 4096
BOUND = 1.0


def aligned(offset: int = 0) -> Any:
    """Returns host memory that begins ``offset`` bytes into a page and is faulted in."""
    whole = np.ones(NBYTES + 2 * PAGE, np.uint8)
    begin = -whole.ctypes.data % PAGE + offset
    return whole[begin : begin + NBYTES]


def main() -> None:
    """Prints a line for each direction, kind and alignment of host memory."""
    import_dpctl()
    device = isthmus.Device("opencl")
    queue = isthmus.Queue(device)
    import dpctl.memory

    classes = {
        "device": dpctl.memory.MemoryUSMDevice,
        "shared": dpctl.memory.MemoryUSMShared,
        "host": dpctl.memory.MemoryUSMHost,
    }
    sycl_queue = dpctl_queue(device)
    report = Report()
    for kind, make in classes.items():
        buffers = [isthmus.Buffer(NBYTES, kind=kind, queue=queue) for _ in range(2)]
        memories = [make(NBYTES, queue=sycl_queue) for _ in range(2)]
        _directions(report, kind, buffers, memories)
    report.finish()


def _directions(report: Report, kind: str, ours: list[isthmus.Buffer], theirs: list[Any]) -> None:
    page, numpy_like = aligned(), aligned(16)
    _line(
        report,
        f"{kind}: host memory -> buffer",
        {
            "at a page": lambda: ours[0].copy_from(page),
            "16 in": lambda: ours[0].copy_from(numpy_like),
        },
        lambda: theirs[0].copy_from_host(page),
    )
    _line(
        report,
        f"{kind}: buffer -> host memory",
        {"at a page": lambda: ours[0].copy_to(page), "16 in": lambda: ours[0].copy_to(numpy_like)},
        lambda: theirs[0].copy_to_host(page),
    )
    _line(
        report,
        f"{kind}: buffer -> buffer",
        {"": lambda: ours[1].copy_from(ours[0])},
        lambda: theirs[1].copy_from_device(theirs[0]),
    )


def _line(
    report: Report,
    title: str,
    ours: dict[str, Callable[[], object]],
    theirs: Callable[[], object],
) -> None:
    taken = interleaved({**ours, "dpctl": theirs}, budget=2.0)
    for place in ours:
        name = f"{title}, {place}" if place else title
        report.against(name, taken[place], ("dpctl", taken["dpctl"]), BOUND)


if __name__ == "__main__":
    main()
