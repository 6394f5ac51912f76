# SPDX-License-Identifier: Apache-2.0
"""The cost of a unified buffer without copies: access, creation, and many live buffers."""

from __future__ import annotations

from importlib import import_module
from statistics import median
from timeit import Timer
from typing import TYPE_CHECKING, Any

import numpy as np
from _timing import interleaved
from _unified_rounds import seconds, without_collector
from _unified_table import Table, Taken

import isthmus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _unified_rounds import Place

KIB = 1 << 10
ACCESS_BOUND = 250e-9
COMPARED_BOUND, SCANNED_BOUND = 5e-6, 3e-6
CONSTRUCTOR_BOUND = 2e-6
FIRST_WRITE_BOUND = 1.5
FLAT_BOUND = 1.5  # the time beside many live buffers over that beside few
DIRTY = 10
LEAST_SCANNED = 64 * KIB  # below, bytes are compared
SMALL = (4 * KIB, 64 * KIB)
SIZES = (64, KIB, 4 * KIB, 64 * KIB - 64, 64 * KIB, KIB * KIB, 16 * KIB * KIB)
ACCESSES = ("host", "device", "state")


def _make(queue: isthmus.Queue, nbytes: int, **options: Any) -> isthmus.UnifiedBuffer:
    made = isthmus.UnifiedBuffer(nbytes, np.uint8, separate=True, queue=queue, **options)
    made.host[:] = 1
    made.sync_to_device()
    return made


def _accesses(buffer: isthmus.UnifiedBuffer, budget: float = 0.5) -> dict[str, Taken]:
    names = {"buffer": buffer}
    timers = {each: Timer(f"buffer.{each}", globals=names) for each in ACCESSES}
    taken: dict[str, list[float]] = {each: [] for each in ACCESSES}
    for _ in range(3):
        for name, found in interleaved(timers, budget=budget / 3).items():
            taken[name].append(found)
    return {name: Taken(found) for name, found in taken.items()}


def access(table: Table, place: Place) -> None:
    """Measures ``.host`` and ``.device`` with nothing changed."""
    for nbytes in SIZES:
        buffer = _make(place.queue, nbytes)
        _access_rows(table, f"{_text(nbytes)}, no view out", buffer, ACCESS_BOUND)
        view = buffer.host
        bound = COMPARED_BOUND if nbytes < LEAST_SCANNED else SCANNED_BOUND
        _access_rows(table, f"{_text(nbytes)}, a view out", buffer, bound, nbytes <= LEAST_SCANNED)
        del view


def _access_rows(
    table: Table, of: str, buffer: isthmus.UnifiedBuffer, bound: float, is_held: bool = True
) -> None:
    for name, taken in _accesses(buffer).items():
        if is_held and name != "state":
            table.below(f".{name}, {of}", taken, bound)
        else:
            table.told(f".{name}, {of}", taken)


def making(table: Table, place: Place) -> None:
    """Measures the constructor, and the first write of a large buffer."""
    makers: dict[str, Callable[[], object]] = {
        "ours": lambda: isthmus.UnifiedBuffer((1000,), np.float32, queue=place.queue),
        "numpy": lambda: np.empty((1000,), np.float32),
        **_pydotcompute(),
    }
    taken = interleaved(makers, budget=2.0)
    note = f"numpy.empty {taken['numpy'] * 1e9:.0f} ns"
    if "PyDotCompute" not in taken:
        note += "; PyDotCompute is absent"
    name, beside = "UnifiedBuffer((1000,)), beside PyDotCompute's", taken.get("PyDotCompute")
    table.below(name, Taken([taken["ours"]]), CONSTRUCTOR_BOUND, note, beside)
    for pinned in (False, True):
        _first_write(table, place, pinned)


def _pydotcompute() -> dict[str, Callable[[], object]]:
    try:
        peer = import_module("pydotcompute")
    except ImportError:
        return {}
    return {"PyDotCompute": lambda: peer.UnifiedBuffer((1000,), dtype=np.float32)}


def _first_write(table: Table, place: Place, pinned: bool) -> None:
    def ours() -> None:
        with place.make(pinned=pinned) as buffer:
            buffer.host.fill(1)

    def numpys() -> None:
        np.empty(place.nbytes, np.uint8).fill(1)

    with without_collector():
        taken = [(seconds(ours), seconds(numpys)) for _ in range(max(5, place.rounds // 3))]
    mine, theirs = (Taken(each) for each in zip(*taken[1:], strict=True))
    table.against(
        f"made, .host, all written{', pinned' if pinned else ''}; numpy.empty, fill",
        mine.median,
        mine.least,
        theirs.median,
        FIRST_WRITE_BOUND,
    )


def many(table: Table, place: Place, live: int) -> None:
    """Measures the synchronization of many live buffers of which few were written."""
    for nbytes in SMALL:
        buffers = [_make(place.queue, nbytes) for _ in range(live)]
        views = [each.host for each in buffers]
        isthmus.synchronize(buffers)
        _together(table, place, buffers, views)


def _copies(buffers: list[isthmus.UnifiedBuffer]) -> int:
    return sum(each.statistics.copies for each in buffers)


def _together(
    table: Table, place: Place, buffers: list[isthmus.UnifiedBuffer], views: list[Any]
) -> None:
    live, nbytes = len(buffers), buffers[0].nbytes
    dirty = range(0, live, max(1, live // DIRTY))
    taken, counts = [], set()
    for number in range(place.rounds):
        for each in dirty:
            views[each][number % nbytes] = 2 + number % 250
        before = _copies([buffers[each] for each in dirty])
        with without_collector():
            taken.append(seconds(lambda: isthmus.synchronize(buffers)))
        counts.add(_copies([buffers[each] for each in dirty]) - before)
    idle = Taken([seconds(lambda: isthmus.synchronize(buffers)) for _ in range(place.rounds)])
    name = f"{live} live of {_text(nbytes)}"
    ten = Taken(taken)
    table.told(f"{name}: synchronize, nothing written", idle)
    title = f"{name}: synchronize, {len(dirty)} written"
    alone = _by_themselves(place, buffers, views, dirty)
    if nbytes < LEAST_SCANNED:
        table.told(title, ten, idle.median + alone, "whole: as with nothing, and the copies alone")
    else:
        look = _one_look(place, live * nbytes)
        note = f"whole: one look at all pages, {look * 1e6:.0f} us, and the copies alone"
        table.told(title, ten, look + alone, note)
    table.counted(f"{name}: copies", counts, len(dirty))
    for each in dirty:
        if not np.array_equal(buffers[each].device.to_numpy(), views[each]):
            raise RuntimeError("a device copy is not what the host wrote")


def _one_look(place: Place, nbytes: int) -> float:
    """Returns the seconds of one scan of as many 4 KiB pages in a single buffer."""
    one = isthmus.UnifiedBuffer(
        nbytes, np.uint8, separate=True, queue=place.queue, granularity="page"
    )
    view = one.host
    one.sync_to_device()
    found = median(seconds(one.sync_to_device) for _ in range(place.rounds))
    del view
    one.free()
    return found


def _by_themselves(
    place: Place, buffers: list[isthmus.UnifiedBuffer], views: list[Any], dirty: range
) -> float:
    taken = []
    for number in range(place.rounds):
        for each in dirty:
            views[each][number % 64] = 1 + number % 250
        taken.append(seconds(lambda: [buffers[each].sync_to_device() for each in dirty]))
    return median(taken)


def growth(table: Table, place: Place, live: int) -> None:
    """Measures access to one buffer while more and more others are live."""
    for nbytes in SMALL:
        one = _make(place.queue, nbytes)
        view = one.host
        few: dict[str, Taken] = {}
        for count, _others in _growing(place, nbytes, live):
            for name, taken in _accesses(one).items():
                beside = few.setdefault(name, taken).median
                title = f".{name} of {_text(nbytes)}, a view out, {count} live"
                table.against(title, taken.median, taken.least, beside, FLAT_BOUND)
        del view


def _growing(place: Place, nbytes: int, live: int) -> Iterator[tuple[int, list[Any]]]:
    others: list[Any] = []
    count = 10
    while count <= live:
        while len(others) < count:
            made = _make(place.queue, nbytes)
            others.append((made, made.host))
        yield count, others
        count *= 10


def _text(nbytes: int) -> str:
    if nbytes % KIB or nbytes < KIB:
        return f"{nbytes} B"
    return f"{nbytes // KIB} KiB" if nbytes < KIB * KIB else f"{nbytes // KIB // KIB} MiB"
