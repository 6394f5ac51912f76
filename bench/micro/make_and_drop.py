"""``Buffer(1024)`` on the host, made and dropped, beside ``numpy.empty(1024)``.

At most twice its time out of the driver's hands, 1.2 times out of a pool's.
"""

from __future__ import annotations

from timeit import Timer

import numpy as np
from _timing import Report, interleaved

import isthmus
from isthmus.memory import PoolResource


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
    names["pool"] = PoolResource("host", "host")
    for arguments in ("resource=pool", "queue=queue, resource=pool"):
        taken = interleaved(
            {
                "isthmus": Timer(f"Buffer(1024, {arguments})", globals=names),
                "numpy": Timer("empty(1024, u1)", globals=names),
            },
        )
        report.against(
            f"Buffer(1024, {arguments})", taken["isthmus"], ("numpy.empty", taken["numpy"]), 1.2
        )
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
