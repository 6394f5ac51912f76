# SPDX-License-Identifier: Apache-2.0
"""An OpenCL buffer to a CUDA buffer and back, a copy that no driver can execute alone.

The peer is the path without such a copy: one library copies to a NumPy array, and the other, here
CuPy, copies from there.
"""

from __future__ import annotations

from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

import isthmus
from isthmus.cli.output import time_text

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"1 MiB": 1 << 20, "64 MiB": 64 << 20, "1 GiB": 1 << 30}
ROUNDS = 9


def seconds(work: Callable[[], object]) -> float:
    """Returns the median time of a few calls, after one that is not counted."""
    taken = []
    for _ in range(ROUNDS + 1):
        start = perf_counter()
        work()
        taken.append(perf_counter() - start)
    return median(taken[1:])


def measure(name: str, nbytes: int) -> None:
    """Prints a line for each direction."""
    import cupy

    ours = isthmus.Buffer(nbytes, kind="device", queue=isthmus.Queue("opencl"))
    cuda = isthmus.Buffer(nbytes, kind="device", queue=isthmus.Queue("cuda"))
    host = np.zeros(nbytes, np.uint8)
    array = cupy.empty(nbytes, np.uint8)

    def to_cuda() -> None:
        ours.copy_to(host)
        array.set(host)
        cupy.cuda.get_current_stream().synchronize()

    def from_cuda() -> None:
        array.get(out=host)
        ours.copy_from(host)

    there = seconds(lambda: cuda.copy_from(ours))
    back = seconds(lambda: ours.copy_from(cuda))
    for way, taken, peer in (("to CUDA", there, to_cuda), ("back", back, from_cuda)):
        theirs = seconds(peer)
        print(
            f"{name}, {way}: {time_text(taken)} ({nbytes / taken / 1e9:.1f} GB/s)   "
            f"by way of NumPy {time_text(theirs)}   x {taken / theirs:.2f}",
            flush=True,
        )


def main() -> None:
    """Prints a line for each size and direction."""
    for name, nbytes in SIZES.items():
        measure(name, nbytes)


if __name__ == "__main__":
    if isthmus.devices("cuda") and isthmus.devices("opencl") and find_spec("cupy"):
        main()
    else:
        print("a CUDA and an OpenCL device and CuPy are needed: nothing is measured")
