# SPDX-License-Identifier: Apache-2.0
"""Half of a 4,096 x 4,096 float32 array to a device and back: every other column, or a block.

On a CUDA device the peers are CuPy and PyTorch, with the same views of NumPy arrays: Isthmus must
be at least three times as fast as the better of them. On the host the peer is NumPy. One thread, in
a separate process that is bound to one processor, must reach at least 0.7 of its speed. All
threads, from 16 processors on, must reach twice its speed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from _timing import Report, by_itself

import isthmus

if TYPE_CHECKING:
    from collections.abc import Callable

    Contestants = dict[str, Callable[[], object]]

WHOLE = np.random.default_rng(1).random((4096, 4096), np.float32)
ALONE = "--alone"  # marks the process that is bound to one processor
HALVES = {"every other column": np.s_[:, ::2], "a sub-block": np.s_[512:3584, 512:3243]}


def on_cuda(view: np.ndarray) -> tuple[Contestants, Contestants]:
    """Returns the copies of all contestants, to the device and back."""
    import cupy
    import torch

    ours = isthmus.empty(view.shape, "float32", device="cuda")
    array = cupy.empty(view.shape, view.dtype)
    tensor = torch.empty(view.shape, dtype=torch.float32, device="cuda")
    theirs = torch.from_numpy(view)
    wait = cupy.cuda.get_current_stream().synchronize
    there: Contestants = {
        "Isthmus": lambda: ours.copy_from(view),
        "CuPy": lambda: (array.set(view), wait()),
        "PyTorch": lambda: tensor.copy_(theirs),
    }
    back: Contestants = {
        "Isthmus": lambda: ours.copy_to(view),
        "CuPy": lambda: np.copyto(view, array.get()),
        "PyTorch": lambda: theirs.copy_(tensor),
    }
    return there, back


def on_host(view: np.ndarray) -> tuple[Contestants, Contestants]:
    """Returns the copies of all contestants within host memory, both ways."""
    ours = isthmus.empty(view.shape, "float32", kind="host", device="host")
    packed = np.empty(view.shape, view.dtype)
    there: Contestants = {
        "Isthmus": lambda: ours.copy_from(view),
        "NumPy": lambda: np.copyto(packed, view),
    }
    back: Contestants = {
        "Isthmus": lambda: ours.copy_to(view),
        "NumPy": lambda: np.copyto(view, packed),
    }
    return there, back


def tell(report: Report, title: str, contestants: Contestants, most: float) -> None:
    """Reports the time of Isthmus against the best peer."""
    taken = {name: by_itself(work) for name, work in contestants.items()}
    ours = taken.pop("Isthmus")
    best = min(taken, key=lambda name: taken[name])
    report.against(title, ours, (best, taken[best]), most)


def compare(
    report: Report,
    where: str,
    contestants: Callable[[np.ndarray], tuple[Contestants, Contestants]],
    most: float,
) -> None:
    """Prints a line for each half and direction."""
    print(f"{where}:")
    for name, cut in HALVES.items():
        there, back = contestants(WHOLE.copy()[cut])
        tell(report, f"there, {name}", there, most)
        tell(report, f"back, {name}", back, most)


def by_one_thread(report: Report) -> None:
    """Measures in a new process, since the import starts threads for the available processors."""
    first = min(os.sched_getaffinity(0))
    done = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], ALONE],
        preexec_fn=lambda: os.sched_setaffinity(0, {first}),
        check=False,
    )
    report.held = report.held and done.returncode == 0


def main() -> None:
    """Prints a line for each half, direction and device."""
    report = Report()
    if ALONE in sys.argv:
        compare(report, "The host, by one thread", on_host, 1 / 0.7)
        report.finish()
    by_one_thread(report)
    many = len(os.sched_getaffinity(0))
    if many >= 16:
        compare(report, f"The host, by {many} processors", on_host, 1 / 2)
    if isthmus.devices("cuda") and find_spec("cupy") and find_spec("torch"):
        compare(report, "CUDA", on_cuda, 1 / 3)
    else:
        print("a CUDA device, CuPy and PyTorch are needed for the rest")
    report.finish()


if __name__ == "__main__":
    main()
