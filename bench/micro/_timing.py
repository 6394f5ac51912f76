# SPDX-License-Identifier: Apache-2.0
"""Helpers of the benchmarks in this folder: a report of bounds, and timing functions.

Each program prints a line for each figure: the time of Isthmus, the peer's time, their ratio (x),
the bound, and whether it was held. With ``--check`` the exit status is 1 if a bound was missed.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from isthmus.cli.contestants import dpctl_queue, import_dpctl
from isthmus.cli.measure import interleaved
from isthmus.cli.output import time_text

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Report", "by_itself", "dpctl_queue", "fresh_process", "import_dpctl", "interleaved"]

_ROUNDS, _WARM_UP = 15, 5


@dataclass
class Report:
    """Prints lines of figures. ``held`` is whether all of them were within their bounds."""

    held: bool = field(default=True)

    def against(self, title: str, ours: float, peer: tuple[str, float], most: float) -> None:
        """Isthmus may take at most ``most`` times the peer's time."""
        name, theirs = peer
        ratio = ours / theirs
        self._line(
            f"{title:<78} {time_text(ours):>9}   {name} {time_text(theirs):>9}   x {ratio:5.2f}",
            f"at most {most:g} x",
            ratio <= most,
        )

    def below(
        self, title: str, ours: float, most: float, peer: tuple[str, float] | None = None
    ) -> None:
        """Isthmus may take at most ``most`` seconds. A peer's time is printed for information."""
        beside = ""
        if peer:
            beside = f"   {peer[0]} {time_text(peer[1]):>9}   x {ours / peer[1]:5.2f}"
        within = f"at most {time_text(most)}"
        self._line(f"{title:<78} {time_text(ours):>9}{beside}", within, ours <= most)

    def finish(self) -> None:
        """Exits with the status of the report."""
        sys.exit(1 if "--check" in sys.argv and not self.held else 0)

    def _line(self, figures: str, bound: str, held: bool) -> None:
        print(f"{figures}   {bound}: {'held' if held else 'NOT HELD'}", flush=True)
        self.held = self.held and held


def by_itself(work: Callable[[], object]) -> float:
    """Returns the median time of a few calls, after some that are not counted.

    For peers whose threads spin for a while after their work, on processors that other threads
    need. The pause and the uncounted calls let such threads of the previous peer stop first.
    """
    sleep(0.05)
    taken = []
    for _ in range(_WARM_UP + _ROUNDS):
        start = perf_counter()
        work()
        taken.append(perf_counter() - start)
    return median(taken[_WARM_UP:])


def fresh_process(programs: dict[str, str], rounds: int = 9) -> dict[str, float]:
    """Runs the programs alternately in new interpreters; returns the medians they print."""
    printed: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            done = subprocess.run(
                [sys.executable, "-c", program], check=True, capture_output=True, text=True
            )
            printed[name].append(float(done.stdout))
    return {name: median(seconds) for name, seconds in printed.items()}
