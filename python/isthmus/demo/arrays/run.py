# SPDX-License-Identifier: Apache-2.0
"""Processes the batches, like the loop in the documentation, and monitors the memory.

The array of the results is created once. Each batch becomes a device array, which is dropped when
the next one is assigned; the pool then reuses its memory. The results of each batch are compared
with NumPy's, and differences are reported.
"""

from __future__ import annotations

import csv
import os
import time
from typing import TYPE_CHECKING

import numpy as np

import isthmus
from isthmus.demo.checks import Tell, check_output
from isthmus.memory import PoolResource, StatisticsResource

from . import kernels, patches, picture, workers
from .outcome import Outcome, Wish

if TYPE_CHECKING:
    from numpy.typing import NDArray

PICTURE = "isthmus_demo_arrays.png"
_SHOWN = 120  # patches in the picture


class Pipeline:
    """The loop and its monitoring."""

    def __init__(self, outcome: Outcome, source: patches.Patches, worker: workers.Worker) -> None:
        self._outcome, self._source, self._worker = outcome, source, worker
        queue = worker.queue
        self._pool = PoolResource("device", queue.device, queue.context)
        self._counted = StatisticsResource(self._pool)
        self.results = np.empty((outcome.wish.batches, outcome.wish.patches), np.float32)

    def go(self, tell: Tell) -> None:
        """Processes all batches. All memory comes from the pool and returns to it."""
        wish = self._outcome.wish
        with self._worker.queue, isthmus.using(self._counted):
            result = isthmus.empty(wish.patches, isthmus.float32)
            for number in range(wish.batches):
                tell(f"batch {number} of {wish.batches}", 0.1 + 0.8 * number / wish.batches)
                self._step(number, result)
                self._watch()

    def _step(self, number: int, result: isthmus.Array) -> None:
        wish, seconds = self._outcome.wish, self._outcome.seconds
        times = [time.perf_counter()]
        batch = self._source.batch(number, wish.patches)
        times.append(time.perf_counter())
        array = isthmus.asarray(batch, kind="device")
        times.append(time.perf_counter())
        began, ended = self._worker.contrast(array, result)
        times.append(time.perf_counter())
        self.results[number] = result.to_numpy()
        times.append(time.perf_counter())
        self._check(number, batch)
        times.append(time.perf_counter())
        seconds.kernel += ended - began
        cut, upload, _, download, check = np.diff(times).tolist()
        seconds.cut += cut
        seconds.upload += upload
        seconds.download += download
        seconds.check += check
        self._outcome.nbytes += batch.nbytes

    def _check(self, number: int, batch: patches.Batch) -> None:
        wrong = int(np.count_nonzero(self.results[number] != kernels.reference(batch)))
        self._outcome.wrong_results += wrong
        if wrong:
            self._outcome.wrong_batches.append(number)

    def _watch(self) -> None:
        memory = self._outcome.memory
        memory.held.append(self._pool.held_bytes)
        memory.live.append(self._counted.current_bytes)
        memory.driver_allocations.append(self._pool.maps)
        memory.resident.append(_resident_bytes())

    def draw(self, path: str) -> str:
        """Writes the picture and fills in the summary of the results."""
        outcome, contrast = self._outcome, self.results.reshape(-1)
        outcome.least, outcome.most = float(contrast.min()), float(contrast.max())
        outcome.mean = float(contrast.mean(dtype=np.float64))
        return picture.draw(outcome, self._patches_by_contrast(contrast), path)

    def _patches_by_contrast(self, contrast: NDArray[np.float32]) -> patches.Batch:
        """The patches to show, in evenly spaced ranks from the least contrast to the most."""
        order = np.argsort(contrast, kind="stable")
        shown = order[np.linspace(0, len(order) - 1, _SHOWN).astype(np.int64)]
        size = self._outcome.wish.patches
        return np.stack([self._source.batch(at // size, size)[at % size] for at in shown.tolist()])


def run(wish: Wish, output: str, tell: Tell) -> Outcome:
    """Runs the demo. Raises errors of Isthmus, and ImportError for missing packages."""
    check_output(output)
    beside = _held_in(wish.beside) if wish.beside else []
    tell("opening drivers", 0.0)
    device, worker, notes = workers.choose(wish.device)
    tell("reading the photographs", 0.05)
    paths, source = patches.load(wish.seed)
    outcome = Outcome(
        paths, source.count, device.filter, device.name.strip(), worker.name, wish, notes,
        beside=beside,
    )  # fmt: skip
    pipeline = Pipeline(outcome, source, worker)
    pipeline.go(tell)
    tell("drawing the picture", 0.9)
    outcome.picture = pipeline.draw(os.path.abspath(os.path.join(output, PICTURE)))
    tell("done", 1.0)
    return outcome


def _held_in(path: str) -> list[int]:
    """The second column of a CSV file that has a header and a line for each batch."""
    with open(path, encoding="ascii", newline="") as lines:
        try:
            return [int(held) for _, held in list(csv.reader(lines))[1:]]
        except ValueError as problem:
            raise ValueError(
                f"{path} has not a batch's number and bytes in each line: {problem}"
            ) from None


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as told:
        return int(told.read().split()[1]) * os.sysconf("SC_PAGESIZE")
