# SPDX-License-Identifier: Apache-2.0
"""``isthmus.compat.rmm``, compared with RMM in one process.

Needs ``pip install rmm-cu13`` and a CUDA device; without them only the times of Isthmus are
printed. Both packages use a pool over the driver's memory, unless a row says otherwise. RMM's pool
in Python formats a trace message for each allocation, even if nothing logs it. Its C++ is faster,
see ``bench/micro/rmm.cpp``.

After an address was queried, or an array created over the memory, the package must expect work of
other libraries on the default stream. Rows are therefore measured before and after.
"""

from __future__ import annotations

from importlib import import_module
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np
from _timing import Report, interleaved

import isthmus

PEER = "RMM"
SIZES = {"64 B": 64, "4 KiB": 4 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
LIVE = 10_000


class Row(NamedTuple):
    """One operation, and its bound relative to the peer's time."""

    title: str
    code: str
    most: float
    resource: str = "pool"
    size: int = 1
    most_lent: float = 0  # the bound after an address was queried; 0: the same


PAIRS = [
    Row(f"{text}, allocated and freed, {resource}", "make(size=size)", most, resource, size, lent)
    for resource, most, lent in (("pool", 1.0, 1.0), ("driver", 1.3, 3.5), ("async", 1.0, 1.3))
    for text, size in SIZES.items()
]
RAW = [
    Row(f"{text}, mr.allocate and deallocate", "free(take(size), size)", 1.0, "pool", size)
    for text, size in SIZES.items()
]
WITH_MANY = [
    Row(f"{text}, with 10,000 live", "make(size=size)", 1.0, "crowded", size)
    for text, size in list(SIZES.items())[:3]
]
COPIES = [
    row
    for text, size in (("4 KiB", 4 << 10), ("64 MiB", 64 << 20))
    for row in (
        Row(f"{text}, to_device(array)", "make.to_device(host)", 1.3, "pool", size),
        Row(f"{text}, copy_from_host(array)", "buf.copy_from_host(host)", 1.3, "pool", size),
        Row(f"{text}, copy_to_host(array)", "buf.copy_to_host(host)", 1.3, "pool", size),
        Row(f"{text}, copy_to_host()", "buf.copy_to_host()", 1.3, "pool", size),
        Row(f"{text}, tobytes()", "buf.tobytes()", 1.3, "pool", size),
        Row(f"{text}, copy()", "buf.copy()", 1.3, "pool", size),
    )
]
OTHERS = [
    Row("len(buf), buf.ptr", "len(buf); buf.ptr", 1.5),
    Row("resize within the capacity", "buf.resize(1)", 3.0, "pool", 64),
    Row("make and drop a StatisticsResourceAdaptor", "mr.StatisticsResourceAdaptor(pool)", 2.5),
]


class Contestant:
    """One of the two packages, with the objects that a row's code uses."""

    def __init__(self, module: Any) -> None:
        self.module, mr = module, module.mr
        below = mr.CudaMemoryResource()
        self.resources = {
            "driver": below,
            "pool": mr.PoolMemoryResource(below, "1GiB", "8GiB"),
            "crowded": mr.PoolMemoryResource(below, "1GiB", "8GiB"),
            "async": mr.CudaAsyncMemoryResource(),
        }
        sizes = np.random.default_rng(1).integers(64, 64 << 10, LIVE)
        self.held = [
            module.DeviceBuffer(size=int(size), mr=self.resources["crowded"]) for size in sizes
        ]

    def timer(self, row: Row) -> Timer:
        """Returns a timer of the row's code, with the row's resource as the current one."""
        mr, make, resource = self.module.mr, self.module.DeviceBuffer, self.resources[row.resource]
        mr.set_current_device_resource(resource)
        names = {
            "mr": mr,
            "make": make,
            "size": row.size,
            "buf": make.to_device(np.ones(row.size, np.uint8)),
            "host": np.ones(row.size, np.uint8),
            "pool": self.resources["pool"],
            "take": resource.allocate,
            "free": resource.deallocate,
        }
        return Timer(row.code, globals=names)


def measure(report: Report, row: Row, ours: Contestant, peer: Contestant | None) -> None:
    """Measures both packages alternately, and reports the medians."""
    contestants = {"isthmus": ours.timer(row)}
    if peer is not None:
        contestants[PEER] = peer.timer(row)
    taken = interleaved(contestants, budget=2.0)
    if peer is None:
        print(f"{row.title:<50} {taken['isthmus'] * 1e6:12.2f} us", flush=True)
    else:
        report.against(row.title, taken["isthmus"], (PEER, taken[PEER]), row.most)


def installed_peer() -> Contestant | None:
    """Returns RMM, or None without RMM or without a CUDA device."""
    try:
        module = import_module("rmm")
    except ImportError:
        return None
    return Contestant(module) if isthmus.devices("cuda") else None


def main() -> None:
    """Prints a line for each operation."""
    ours, peer = Contestant(import_module("isthmus.compat.rmm")), installed_peer()
    beside = f"{PEER} {peer.module.__version__} beside it" if peer else f"{PEER} is absent"
    where = ours.held[0].buffer.device
    print(f"isthmus {isthmus.__version__} on {where.filter}, {beside}:")
    report = Report()
    print("before an address was requested:")
    for row in (*PAIRS, *WITH_MANY, *COPIES):
        measure(report, row, ours, peer)
    print("after an address was requested:")
    _ = ours.held[0].ptr
    for row in (*PAIRS, *WITH_MANY, *RAW, *COPIES, *OTHERS):
        measure(report, row._replace(most=row.most_lent or row.most), ours, peer)
    report.finish()


if __name__ == "__main__":
    main()
