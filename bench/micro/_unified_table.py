# SPDX-License-Identifier: Apache-2.0
"""The lines that ``unified.py`` prints: each figure with its whole copy and its bound."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING

from isthmus.cli.output import print_json, time_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMNS = f"{'time':>9} {'least':>9} {'whole':>9} {'ratio':>8} {'bound':>8}  held"


@dataclass(frozen=True)
class Taken:
    """Seconds of several rounds of one measurement."""

    rounds: Sequence[float]

    @property
    def median(self) -> float:
        """The median round."""
        return median(self.rounds)

    @property
    def mean(self) -> float:
        """The mean of all rounds."""
        return fmean(self.rounds)

    @property
    def least(self) -> float:
        """The best round, close to the time on a machine without other work."""
        return min(self.rounds)

    @property
    def most(self) -> float:
        """The worst single round."""
        return max(self.rounds)


@dataclass(frozen=True)
class Row:
    """One figure, in seconds. ``whole`` is the time it is compared with, or None."""

    device: str
    workload: str
    seconds: float
    least: float
    whole: float | None
    bound: str
    held: bool | None
    note: str

    @property
    def ratio(self) -> float | None:
        """The time over ``whole``, or None."""
        return None if self.whole is None else self.seconds / self.whole


@dataclass
class Table:
    """Collects rows. Prints each at once, or all of them as one JSON text at the end."""

    as_json: bool = False
    device: str = ""
    rows: list[Row] = field(default_factory=list)

    def begin(self, device: str, title: str) -> None:
        """Starts the rows of a device."""
        self.device = device
        if not self.as_json:
            print(f"\n{title}\n{'':<58} {_COLUMNS}", flush=True)

    def against(
        self, workload: str, seconds: float, least: float, whole: float, most: float, note: str = ""
    ) -> None:
        """Adds a row with a bound: at most ``most`` times the seconds of ``whole``."""
        self._add(workload, seconds, least, whole, ratio_text(most), seconds <= most * whole, note)

    def below(
        self,
        workload: str,
        taken: Taken,
        most: float,
        note: str = "",
        beside: float | None = None,
    ) -> None:
        """Adds a row with a bound of ``most`` seconds; ``beside`` is printed for information."""
        held = taken.median <= most
        self._add(workload, taken.median, taken.least, beside, time_text(most), held, note)

    def told(
        self, workload: str, taken: Taken, beside: float | None = None, note: str = ""
    ) -> None:
        """Adds a row without a bound."""
        self._add(workload, taken.median, taken.least, beside, "", None, note)

    def counted(self, workload: str, counts: set[int], expected: int) -> None:
        """Adds a row of counts, of which each must be exactly ``expected``."""
        held = counts == {expected}
        text = f"{'/'.join(map(str, sorted(counts)))} counted"
        self._add(workload, 0.0, 0.0, None, str(expected), held, text)

    def held(self) -> bool:
        """Returns whether every bound was held."""
        return all(row.held is not False for row in self.rows)

    def finish(self) -> None:
        """Prints the summary, or the JSON text."""
        if self.as_json:
            print_json([{**asdict(row), "ratio": row.ratio} for row in self.rows])
            return
        missed = [row for row in self.rows if row.held is False]
        bounds = sum(row.held is not None for row in self.rows)
        print(f"\n{bounds - len(missed)} of {bounds} bounds were held; those that were not:")
        for row in missed:
            over = "" if row.ratio is None else f"{ratio_text(row.ratio)} of the whole"
            print(f"  {row.device:<13} {row.workload}: {over} {row.note}, bound {row.bound}")

    def _add(
        self,
        workload: str,
        seconds: float,
        least: float,
        whole: float | None,
        bound: str,
        held: bool | None,
        note: str,
    ) -> None:
        row = Row(self.device, workload, seconds, least, whole, bound, held, note)
        self.rows.append(row)
        if self.as_json:
            return
        beside = "" if whole is None else time_text(whole)
        ratio = "" if row.ratio is None else ratio_text(row.ratio)
        word = {True: "yes", False: "NO", None: ""}[held]
        print(
            f"{workload:<58} {_time(seconds):>9} {_time(least):>9} {beside:>9} {ratio:>8} "
            f"{bound:>8}  {word:<4} {note}".rstrip(),
            flush=True,
        )


def ratio_text(ratio: float) -> str:
    """Formats a ratio as the bounds are written: 1.05, 1/7."""
    if ratio >= 2 / 3 or ratio <= 0:
        return f"{ratio:.2f}"
    return f"1/{1 / ratio:.3g}" if ratio > 1e-3 else f"1/{1 / ratio:.0f}"


def _time(seconds: float) -> str:
    if seconds == 0:
        return ""
    return time_text(seconds) if seconds > 0 else f"-{time_text(-seconds)}"
