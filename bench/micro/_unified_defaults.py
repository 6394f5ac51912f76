# SPDX-License-Identifier: Apache-2.0
"""Rounds with the default options, by size, density of the writes and number of the round.

Each buffer is new and filled once, which is not measured. A writer then changes one byte of each
page that it writes, at random positions, in eight rounds. The note of a row lists the ratio of each
round to a whole copy in the same round, as medians over several buffers. The bound applies to the
mean of the rounds after the third.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from _unified_rounds import Place, without_collector
from _unified_table import Table, Taken, ratio_text

if TYPE_CHECKING:
    from _unified_rounds import Workload

KIB, MIB = 1 << 10, 1 << 20
SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB)
SHARES = (0.0, 0.001, 0.01, 0.1, 1.0)  # of the pages, at least one
ROUNDS, LEARNING = 8, 3
BOUND = 1.05
# The mean of the rounds after the third, if 0.1 % of the pages of 256 MiB are written.
SPARSE_SIZE, SPARSE_SHARE, SPARSE_BOUND = 256 * MIB, 0.001, 1 / 5


def defaults(table: Table, place: Place, _live: int) -> None:
    """Measures all sizes up to that of ``place``."""
    for nbytes in (each for each in SIZES if each <= place.nbytes):
        sized = Place(place.queue, nbytes, place.rounds)
        for share in SHARES:
            _row(table, sized, share)
        sized.close()


def _row(table: Table, place: Place, share: float) -> None:
    # Large buffers take long to create; small ones vary more.
    repeats = max(3, min(place.rounds, 64 * MIB // place.nbytes))
    taken = [_history(place, _workload(place, share)) for _ in range(repeats)]
    columns = list(zip(*taken, strict=True))  # of each round
    ratios = [median(total / whole for total, whole in column) for column in columns]
    later = [pair for column in columns[LEARNING:] for pair in column]
    total, whole = (Taken(each) for each in zip(*later, strict=True))
    ratio = sum(ratios[LEARNING:]) / len(ratios[LEARNING:])
    is_sparse = place.nbytes == SPARSE_SIZE and share == SPARSE_SHARE and not place.is_gpu
    table.against(
        f"{_text(place.nbytes)}, {f'{share:.1%} of the pages' if share else 'one element'}",
        ratio * whole.median,
        total.least,
        whole.median,
        SPARSE_BOUND if is_sparse else BOUND,
        "rounds " + " ".join(ratio_text(each) for each in ratios),
    )


def _workload(place: Place, share: float) -> Workload:
    return place.every_page if share == 1 else place.random_pages(share)


def _history(place: Place, workload: Workload) -> list[tuple[float, float]]:
    """Returns the seconds of each round, and of the whole copy beside it."""
    with place.synchronized() as (buffer, view), without_collector():
        taken = [place.round(buffer, view, workload(number), number) for number in range(ROUNDS)]
    return [(total, whole) for total, _, whole in taken]


def _text(nbytes: int) -> str:
    return f"{nbytes // MIB} MiB" if nbytes >= MIB else f"{nbytes // KIB} KiB"
