"""``Buffer(1024)`` on the host, made and dropped: at most twice ``numpy.empty(1024)``."""

from __future__ import annotations

from timeit import Timer

import numpy as np
from _timing import Report, interleaved

import isthmus


def main() -> None:
    """Prints a line for each kind of memory."""
    report = Report()
    queue = isthmus.Device("host").default_queue
    names = {"Buffer": isthmus.Buffer, "queue": queue, "empty": np.empty, "u1": np.uint8}
    for kind in ("device", "shared", "host"):
        taken = interleaved(
            {
                "isthmus": Timer(f"Buffer(1024, kind='{kind}', queue=queue)", globals=names),
                "numpy": Timer("empty(1024, u1)", globals=names),
            },
        )
        title = f"Buffer(1024, kind={kind!r}) on the host"
        report.against(title, taken["isthmus"], ("numpy.empty", taken["numpy"]), 2.0)
    with isthmus.Device("host"):
        taken = interleaved(
            {
                "isthmus": Timer("Buffer(1024)", globals=names),
                "numpy": Timer("empty(1024, u1)", globals=names),
            },
        )
        title = "Buffer(1024), the host being current"
        report.against(title, taken["isthmus"], ("numpy.empty", taken["numpy"]), 2.0)
    report.finish()


if __name__ == "__main__":
    main()
