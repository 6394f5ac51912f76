"""Times of several ways to do one thing, taken in turn so that a busy machine hits all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from timeit import Timer

Work = Callable[[], object] | Timer


def interleaved(
    contestants: Mapping[str, Work], rounds: int = 11, seconds: float = 2e-3
) -> dict[str, float]:
    """Median seconds of one call of each.

    In each of ``rounds`` rounds each runs for about ``seconds``, or once if that takes longer, and
    another one goes first. The garbage collector is off meanwhile.
    """
    timers = {name: _timer(work) for name, work in contestants.items()}
    numbers = {name: _calibrated(timer, seconds) for name, timer in timers.items()}
    taken: dict[str, list[float]] = {name: [] for name in timers}
    names = list(timers)
    for _ in range(rounds):
        for name in names:
            taken[name].append(timers[name].timeit(numbers[name]) / numbers[name])
        names.append(names.pop(0))
    return {name: median(times) for name, times in taken.items()}


def _timer(work: Work) -> Timer:
    return work if isinstance(work, Timer) else Timer(work)


def _calibrated(timer: Timer, seconds: float) -> int:
    """How many calls take about so long; they warm caches, too."""
    number = 1
    while True:
        taken = timer.timeit(number)
        if taken >= seconds / 4:
            return max(1, round(number * seconds / taken))
        number *= 4
