# SPDX-License-Identifier: Apache-2.0
"""Rounds of a writer on the host and ``sync_to_device``, compared with a whole copy.

The time of a round is that of the synchronization, plus the additional time of the writer's stores
relative to the same stores into plain memory just before or after. The difference is the page
faults of dirty tracking. A writer changes one byte of each page that it writes, so that the stores
cost little besides the faults.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from _unified_table import Taken

import isthmus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Chosen = slice | NDArray[np.int64] | None
    # Returns the bytes to write in a round, as an index into the array, or None for no write.
    Workload = Callable[[int], Chosen]

PAGE, HUGE_PAGE = 4096, 2 << 20


def seconds(work: Callable[[], object]) -> float:
    """Returns the time of one call."""
    start = perf_counter()
    work()
    return perf_counter() - start


@contextmanager
def without_collector() -> Iterator[None]:
    """Collects garbage before the measurement, and disables the collector during it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@dataclass(frozen=True)
class Figures:
    """Times of one workload. ``moved`` is the share of all bytes that a round uploaded."""

    total: Taken
    moving: Taken
    whole: Taken
    moved: float


class Place:
    """A device, plain memory as the source of whole copies, and their target.

    The plain memory is pinned on CUDA devices.
    """

    def __init__(self, queue: isthmus.Queue, nbytes: int, rounds: int) -> None:
        self.queue = queue
        self.nbytes = nbytes
        self.rounds = rounds
        self.is_gpu = queue.device.backend == "cuda"
        memory = np.ones(nbytes + PAGE, np.uint8)
        begin = -memory.ctypes.data % PAGE
        self.plain: Bytes = memory[begin : begin + nbytes]
        self._pin = isthmus.pin(self.plain, device=queue.device) if self.is_gpu else None
        self._target = isthmus.Buffer(nbytes, queue=queue)
        self.copy_whole()
        self.random = np.random.default_rng(7)

    def close(self) -> None:
        """Unpins the plain memory."""
        if self._pin is not None:
            self._pin.release()

    def slack(self, bound: float) -> float:
        """Returns a GPU's bound for this device: other devices may take 1.5 times as long."""
        return bound if self.is_gpu else bound * 1.5

    def copy_whole(self) -> None:
        """Executes the whole copy with which all times are compared."""
        self._target.copy_from(self.plain)

    def make(self, **options: Any) -> isthmus.UnifiedBuffer:
        """Creates a buffer with the options that the bounds assume."""
        made: dict[str, Any] = {"pinned": True, "separate": True, "queue": self.queue, **options}
        return isthmus.UnifiedBuffer(self.nbytes, np.uint8, **made)

    @contextmanager
    def synchronized(self, **options: Any) -> Iterator[tuple[isthmus.UnifiedBuffer, Bytes]]:
        """Yields a synchronized buffer and its host view; compares both copies at the end."""
        with self.make(**options) as buffer:
            view = buffer.host
            view[:] = 1
            buffer.sync_to_device()
            yield buffer, view
            self.check(buffer, view)

    def check(self, buffer: isthmus.UnifiedBuffer, view: Bytes) -> None:
        """Raises RuntimeError if the copies differ after a synchronization."""
        buffer.sync_to_device()
        if not np.array_equal(buffer.device.to_numpy(), view):
            raise RuntimeError("the device copy is not what the host wrote")

    def measure(self, workload: Workload, warm_up: int = 3, **options: Any) -> Figures:
        """Measures rounds on a fresh buffer. The first ``warm_up`` rounds do not count."""
        with self.synchronized(**options) as (buffer, view), without_collector():
            for number in range(warm_up):
                self.round(buffer, view, workload(number), number)
            before = buffer.statistics.bytes_to_device
            taken = [
                self.round(buffer, view, workload(number), number)
                for number in range(warm_up, warm_up + self.rounds)
            ]
            moved = (buffer.statistics.bytes_to_device - before) / self.rounds / self.nbytes
        total, moving, whole = (Taken(each) for each in zip(*taken, strict=True))
        return Figures(total, moving, whole, moved)

    def round(
        self, buffer: isthmus.UnifiedBuffer, view: Bytes, chosen: Chosen, number: int
    ) -> tuple[float, float, float]:
        """Returns seconds: of the round, of finding and copying alone, and of the whole copy."""
        whole = seconds(self.copy_whole)
        faults = self.faults(view, chosen, number)
        moving = seconds(buffer.sync_to_device)
        return moving + faults, moving, whole

    def faults(self, view: Bytes, chosen: Chosen, number: int) -> float:
        """Writes, and returns the additional time relative to plain memory."""
        if chosen is None:
            return 0.0
        value = np.uint8(2 + number % 250)
        by_turns = (view, self.plain) if number % 2 else (self.plain, view)
        taken = [seconds(partial(to.__setitem__, chosen, value)) for to in by_turns]
        return taken[0] - taken[1] if number % 2 else taken[1] - taken[0]

    # -- workloads

    def every_page(self, _number: int) -> Chosen:
        """Writes one byte of each page."""
        return slice(0, self.nbytes, PAGE)

    def run_of(self, share: float) -> Workload:
        """Writes one run at a random position."""
        length = self._length(share)

        def chosen(_number: int) -> Chosen:
            begin = int(self.random.integers(0, (self.nbytes - length) // PAGE + 1)) * PAGE
            return slice(begin, begin + length, PAGE)

        return chosen

    def window_of(self, share: float) -> Workload:
        """Writes a run that begins where the previous one ended."""
        length = self._length(share)
        places = self.nbytes // length

        def chosen(number: int) -> Chosen:
            begin = number % places * length
            return slice(begin, begin + length, PAGE)

        return chosen

    def random_pages(self, share: float) -> Workload:
        """Writes one byte in each of several pages, which are chosen anew each time."""
        pages = self.nbytes // PAGE
        count = max(1, round(pages * share))

        def chosen(_number: int) -> Chosen:
            which = np.sort(self.random.choice(pages, count, replace=False))
            return which * PAGE + self.random.integers(0, PAGE, count)

        return chosen

    def same_pages(self, _number: int) -> Chosen:
        """Writes one byte of each huge page, always the same one."""
        return np.arange(HUGE_PAGE // 2, self.nbytes, HUGE_PAGE)

    def _length(self, share: float) -> int:
        return max(PAGE, round(self.nbytes * share) // PAGE * PAGE)
