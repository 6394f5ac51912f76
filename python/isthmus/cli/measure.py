# SPDX-License-Identifier: Apache-2.0
"""Times of alternatives, measured alternately so that load on the machine affects all equally."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from timeit import Timer

Work = Callable[[], object] | Timer

_MIN_ROUNDS = 5


def interleaved(
    contestants: Mapping[str, Work],
    rounds: int = 201,
    seconds: float = 1e-4,
    budget: float = 1.0,
) -> dict[str, float]:
    """Median seconds of one call of each alternative.

    In each round every alternative runs for about ``seconds``, or once if that takes longer. The
    order rotates between rounds. Rounds are many and short: on a busy machine most of them are not
    interrupted. No new round begins after ``budget`` seconds, except the first few. The garbage
    collector is off while the clock runs.
    """
    timers = {name: _timer(work) for name, work in contestants.items()}
    numbers = {name: _calibrated(timer, seconds) for name, timer in timers.items()}
    times: dict[str, list[float]] = {name: [] for name in timers}
    names = list(timers)
    deadline = time.perf_counter() + budget
    for round_number in range(rounds):
        if round_number >= _MIN_ROUNDS and time.perf_counter() > deadline:
            break
        for name in names:
            times[name].append(timers[name].timeit(numbers[name]) / numbers[name])
        names.append(names.pop(0))
    return {name: median(seconds) for name, seconds in times.items()}


def _timer(work: Work) -> Timer:
    return work if isinstance(work, Timer) else Timer(work)


def _calibrated(timer: Timer, seconds: float) -> int:
    """The number of calls that take about ``seconds``. Measuring it also warms caches."""
    number = 1
    while True:
        elapsed = min(timer.timeit(number) for _ in range(3))
        if elapsed >= seconds / 4:
            return max(1, round(number * seconds / elapsed))
        number *= 4
