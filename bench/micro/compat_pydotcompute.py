# SPDX-License-Identifier: Apache-2.0
"""``isthmus.compat.pydotcompute``, compared with PyDotCompute 0.2.0 in one process.

Needs ``pip install pydotcompute``. Small buffers have 4 KiB, large ones 64 MiB. With a CUDA device
and CuPy, both packages use the device. Elsewhere PyDotCompute has one array for both sides and
never copies. The cost of one changed element is then compared with the whole copy that PyDotCompute
makes if there are two arrays.
"""

from __future__ import annotations

import sys
from importlib import import_module
from timeit import Timer
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from _timing import Report, interleaved

import isthmus
from isthmus.compat.pydotcompute import UnifiedBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL, LARGE = 1 << 10, 1 << 24  # elements of float32
PEER = "PyDotCompute"


class Row(NamedTuple):
    """One operation, and its bounds relative to the peer's time, without a GPU and on one."""

    title: str
    code: str
    most: float
    most_on_gpu: float
    size: int = SMALL


# The last six cost more: they detect writes, which PyDotCompute requires the caller to declare.
ROWS = (
    Row("UnifiedBuffer((1024,))", "make((1024,))", 0.1, 0.4),
    Row("UnifiedBuffer((1024,)).allocate()", "make((1024,)).allocate()", 0.2, 1.3),
    Row("np.asarray(buf), 4 KiB", "asarray(buf)", 0.01, 0.01),
    Row("copy_from(array), 64 MiB", "buf.copy_from(data)", 1.2, 1.2, LARGE),
    Row("copy_to(array), 64 MiB", "buf.copy_to(target)", 1.2, 1.2, LARGE),
    Row("fill(1), 64 MiB", "buf.fill(1)", 1.2, 1.2, LARGE),
    Row("buf[0] = 1, then .device", "buf[0] = 1; buf.device", 1.2, 1.2),
    Row("copy_from(array), 4 KiB", "buf.copy_from(data)", 6, 8),
    Row("fill(1), 4 KiB", "buf.fill(1)", 7, 9),
    Row(".host, nothing changed", "buf.host", 1.2, 4),
    Row(".device, nothing changed", "buf.device", 1.5, 40),
    Row("mark_host_dirty()", "buf.mark_host_dirty()", 5, 15),
    Row("synchronize(), nothing changed", "buf.synchronize()", 5, 7),
)


def names_for(make: Callable[..., Any], size: int) -> dict[str, Any]:
    """Returns the variables that a row's code uses."""
    buf = make((size,)).allocate()
    buf.fill(np.float32(0))
    _ = buf.device
    data = np.arange(size, dtype=np.float32)
    return {
        "make": make,
        "buf": buf,
        "data": data,
        "target": np.empty_like(data),
        "asarray": np.asarray,
    }


def compare(report: Report, row: Row, peer: Callable[..., Any], on_gpu: bool) -> None:
    """Measures both packages alternately, and reports the medians."""
    taken = interleaved(
        {
            "isthmus": Timer(row.code, globals=names_for(UnifiedBuffer, row.size)),
            PEER: Timer(row.code, globals=names_for(peer, row.size)),
        },
        budget=2.0,
    )
    most = row.most_on_gpu if on_gpu else row.most
    report.against(row.title, taken["isthmus"], (PEER, taken[PEER]), most)


def one_element(report: Report, peer: Callable[..., Any]) -> None:
    """Writes one element of 64 MiB and then accesses ``.device``, with two copies."""
    ours = UnifiedBuffer((LARGE,), separate=True, granularity="page").allocate()
    view, other = ours.host, peer((LARGE,)).allocate()

    def change() -> None:
        view[12345] += 1
        _ = ours.device

    def change_told() -> None:
        other[12345] += 1  # marks the buffer, so that all of it is copied
        _ = other.device

    whole, target = np.ones(LARGE, np.float32), np.ones(LARGE, np.float32)

    def change_whole() -> None:
        np.copyto(target, whole)

    beside = (PEER, change_told) if other.device is not other.host else ("a copy", change_whole)
    taken = interleaved({"isthmus": change, beside[0]: beside[1]}, budget=4.0)
    title = "one element of 64 MiB written, then .device"
    report.against(title, taken["isthmus"], (beside[0], taken[beside[0]]), 0.1)


def main() -> None:
    """Prints a line for each operation."""
    try:
        peer = import_module("pydotcompute").UnifiedBuffer
    except ImportError:
        sys.exit("PyDotCompute is absent: pip install pydotcompute==0.2.0")
    on = UnifiedBuffer(1).queue.device
    print(f"isthmus {isthmus.__version__} on {on.filter}, {PEER} beside it:")
    report = Report()
    for row in ROWS:
        compare(report, row, peer, on.backend == "cuda")
    one_element(report, peer)
    report.finish()


if __name__ == "__main__":
    main()
