# SPDX-License-Identifier: Apache-2.0
"""The bounds of rounds, by the writes between two synchronizations and their history."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from _unified_rounds import HUGE_PAGE, PAGE, Place, seconds, without_collector
from _unified_table import Table, Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from _unified_rounds import Bytes, Figures, Workload

    import isthmus

# Relative to a whole copy.
RUN_BOUNDS = {0.01: 1 / 50, 0.1: 1 / 8}
WINDOW_BOUND = 1 / 15
SPARSE_BOUND, SPARSE_BY_PAGE_BOUND = 1 / 2.5, 1 / 20
RANDOM_BOUND, RANDOM_MOVING_BOUND = 1 / 7, 1 / 20
DENSE_BOUND, WORST_BOUND = 1.05, 1.7
HASHED_BOUND = 1.02
EXPLICIT_SHARES = (0.01, 0.1, 0.5, 1.0)
NOTHING_BOUND = 0.1e-3  # seconds
# Rounds after which the default policy has tried small pages and has measured their benefit.
LEARNING = 40


def part(table: Table, place: Place) -> None:
    """Measures runs, windows and pages, of which only the written bytes must be copied."""
    nothing = place.measure(lambda _number: None)
    table.below(
        "nothing written", nothing.total, place.slack(NOTHING_BOUND), beside=nothing.whole.median
    )
    for share, bound in RUN_BOUNDS.items():
        _row(table, place, f"one run of {share:.0%}", place.run_of(share), bound)
    _row(table, place, "a moving window of 5%", place.window_of(0.05), WINDOW_BOUND)
    sparse = place.random_pages(0.001)
    _row(table, place, "0.1% random pages", sparse, SPARSE_BOUND, warm_up=LEARNING)
    by_page: dict[str, Any] = {"granularity": "page"}
    _row(table, place, "0.1% random pages, by page", sparse, SPARSE_BY_PAGE_BOUND, **by_page)
    figures = place.measure(place.random_pages(0.01), **by_page)
    _told(table, "1% random pages, by page", figures, place.slack(RANDOM_BOUND))
    table.against(
        "1% random pages, by page: finding and moving alone",
        figures.moving.median,
        figures.moving.least,
        figures.whole.median,
        place.slack(RANDOM_MOVING_BOUND),
    )


def _row(
    table: Table,
    place: Place,
    name: str,
    workload: Workload,
    bound: float,
    warm_up: int = 3,
    **options: Any,
) -> None:
    _told(table, name, place.measure(workload, warm_up, **options), place.slack(bound))


def _told(table: Table, name: str, figures: Figures, bound: float) -> None:
    total = figures.total
    note = f"moved {figures.moved:.2%}"
    table.against(name, total.median, total.least, figures.whole.median, bound, note)


def dense(table: Table, place: Place) -> None:
    """Measures the cost of tracking, also in the worst case, if everything is written."""
    figures = place.measure(place.every_page)
    total, whole = figures.total, figures.whole
    bound = place.slack(DENSE_BOUND)
    note = f"medians {total.median / whole.median:.2f}"
    table.against("every page, mean", total.mean, total.least, whole.mean, bound, note)
    for name, prepare, rounds in histories(place):
        _worst(table, place, name, prepare, rounds)


# Yields a name, a preparation, and the rounds, each with whether it is measured.
def histories(
    place: Place,
) -> Iterable[tuple[str, Callable[[isthmus.UnifiedBuffer], None], Iterable[tuple[Workload, bool]]]]:
    """Histories that leave tracking at its worst for rounds that write all pages."""
    every, sparse = (place.every_page, False), (place.random_pages(0.001), False)
    measured = [(place.every_page, True)] * 4
    for name, before in {
        "nothing": (),
        "8 dense, 24 sparse": chain(repeat(every, 8), repeat(sparse, 24)),
        "40 with one page of each 2 MiB": repeat((place.same_pages, False), 40),
        "dense, sparse by turns": chain.from_iterable(
            repeat([(place.every_page, True), sparse], 8)
        ),
    }.items():
        yield name, lambda _buffer: None, chain(before, measured)
    yield "device_write in each 2 MiB", write_by_device, measured


def write_by_device(buffer: isthmus.UnifiedBuffer) -> None:
    """Writes one page in each huge page, which is then tracked by small pages around it."""
    for begin in range(0, buffer.nbytes - HUGE_PAGE + 1, HUGE_PAGE):
        with buffer.device_write((begin, begin + PAGE)):
            pass
    buffer.sync_to_host()


def _worst(
    table: Table,
    place: Place,
    name: str,
    prepare: Callable[[isthmus.UnifiedBuffer], None],
    rounds: Iterable[tuple[Workload, bool]],
) -> None:
    taken = []
    with place.synchronized() as (buffer, view), without_collector():
        prepare(buffer)
        for number, (workload, is_measured) in enumerate(rounds):
            figures = place.round(buffer, view, workload(number), number)
            if is_measured:
                taken.append(figures)
    total, _, whole = (Taken(each) for each in zip(*taken, strict=True))
    table.against(
        f"every page, worst after: {name}",
        total.most,
        total.least,
        whole.median,
        place.slack(WORST_BOUND),
        f"whole's worst {whole.most / whole.median:.2f}",
    )


def untracked(table: Table, place: Place) -> None:
    """Measures a buffer whose writes the kernel does not report: hashes and ``host_write``."""
    options: dict[str, Any] = {"tracking": "hashes"}
    figures = place.measure(place.every_page, **options)
    hashing = _hashing(place, options)
    table.told("no tracker: hashing all", hashing, figures.whole.median)
    total, whole = figures.total, figures.whole.median
    bound = place.slack(HASHED_BOUND)
    note = f"with the hashing {total.median / whole:.2f}"
    table.against(
        "no tracker: every page, less one hashing",
        total.median - hashing.median,
        total.least - hashing.least,
        whole,
        bound,
        note,
    )
    for share in EXPLICIT_SHARES:
        taken = _explicit(place, share, options)
        name = f"no tracker: host_write of {share:.0%}"
        most = share * (bound + hashing.median / whole)
        note = f"{taken.median / whole / share:.2f} of its share; bound: with the hashing of it"
        table.against(name, taken.median, taken.least, whole, most, note)


def _hashing(place: Place, options: dict[str, Any]) -> Taken:
    with place.synchronized(**options) as (buffer, _view), without_collector():
        return Taken([seconds(lambda: buffer.state) for _ in range(place.rounds)])


def _explicit(place: Place, share: float, options: dict[str, Any]) -> Taken:
    length = max(PAGE, round(place.nbytes * share) // PAGE * PAGE)
    taken = []
    with place.make(**options) as buffer, without_collector():
        buffer.fill(np.uint8(1)).sync_to_device()
        for number in range(3 + place.rounds):
            begin = (number * length) % (place.nbytes - length + PAGE) // PAGE * PAGE
            taken.append(_write_range(place, buffer, (begin, begin + length), number))
        place.check(buffer, buffer.host)
    return Taken(taken[3:])


def _write_range(
    place: Place, buffer: isthmus.UnifiedBuffer, wanted: tuple[int, int], number: int
) -> float:
    def write() -> None:
        with buffer.host_write(wanted) as of:
            _touch(of, number)
        buffer.sync_to_device()

    return seconds(write) - seconds(lambda: _touch(place.plain[slice(*wanted)], number))


def _touch(of: Bytes, number: int) -> None:
    of[::PAGE] = 2 + number % 250
