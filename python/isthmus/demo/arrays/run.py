# SPDX-License-Identifier: Apache-2.0
"""Processes the batches, like the loop in the documentation, and monitors the memory.

The array of the results is created once. Each batch becomes a device array, which is dropped when
the next one is assigned; the pool then reuses its memory. The results of each batch are compared
with NumPy's, and differences are reported. In the end the array of a batch is created with and
without a pool, for comparison.
"""

from __future__ import annotations

import csv
import os
import time
from typing import TYPE_CHECKING

import numpy as np

import isthmus
from isthmus.demo.checks import Progress, check_output
from isthmus.memory import PoolResource, StatisticsResource

from . import kernels, patches, picture, workers
from .comparison import compare
from .outcome import Options, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

PICTURE = "isthmus_demo_arrays.png"
_MAX_SHOWN = 192  # patches in the picture
_MAX_COMPARED = 200  # batches


class Pipeline:
    """The loop and its monitoring."""

    def __init__(self, outcome: Outcome, source: patches.Patches, worker: workers.Worker) -> None:
        self._outcome, self._source, self._worker = outcome, source, worker
        queue = worker.queue
        self._pool = PoolResource("device", queue.device, queue.context)
        self._counted = StatisticsResource(self._pool)
        self.results = np.empty((outcome.options.batches, outcome.options.patches), np.float32)

    def process_all(self, report: Progress) -> None:
        """Processes all batches. All memory comes from the pool and returns to it."""
        options = self._outcome.options
        with self._worker.queue, isthmus.using(self._counted):
            result = isthmus.empty(options.patches, isthmus.float32)
            for number in range(options.batches):
                report(f"batch {number} of {options.batches}", 0.1 + 0.8 * number / options.batches)
                self._step(number, result)

    def _step(self, number: int, result: isthmus.Array) -> None:
        options, seconds = self._outcome.options, self._outcome.seconds
        times = [time.perf_counter()]
        batch = self._source.batch(number, options.patches)
        times.append(time.perf_counter())
        array = isthmus.asarray(batch, kind="device")
        times.append(time.perf_counter())
        began, ended = self._worker.contrast(array, result)
        times.append(time.perf_counter())
        self.results[number] = result.to_numpy()
        times.append(time.perf_counter())
        self._check(number, batch)
        times.append(time.perf_counter())
        self._record_memory()
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

    def _record_memory(self) -> None:
        memory = self._outcome.memory
        memory.held.append(self._pool.held_bytes)
        memory.live.append(self._counted.current_bytes)
        memory.driver_allocations.append(self._pool.maps)
        memory.resident.append(_resident_bytes())

    def compare(self) -> None:
        """Measures the first batch with and without a pool."""
        options = self._outcome.options
        batch = self._source.batch(0, options.patches)
        self._outcome.comparison = compare(
            self._worker.queue, batch, min(options.batches, _MAX_COMPARED)
        )

    def draw(self, path: str) -> str:
        """Writes the picture and fills in the summary of the results."""
        outcome, contrast = self._outcome, self.results.reshape(-1)
        outcome.least, outcome.most = float(contrast.min()), float(contrast.max())
        outcome.mean = float(contrast.mean(dtype=np.float64))
        return picture.draw(outcome, self._patches_by_contrast(contrast), path)

    def _patches_by_contrast(self, contrast: NDArray[np.float32]) -> picture.Shown:
        """The patches to show, in evenly spaced ranks from the least contrast to the most."""
        order = np.argsort(contrast, kind="stable")
        count = max(min(len(order), _MAX_SHOWN) // picture.ROWS, 1) * picture.ROWS
        shown = order[np.linspace(0, len(order) - 1, count).astype(np.int64)]
        size = self._outcome.options.patches
        chosen = np.stack(
            [self._source.batch(index // size, size)[index % size] for index in shown.tolist()]
        )
        return picture.Shown(chosen, contrast[shown])


def run(options: Options, output: str, report: Progress) -> Outcome:
    """Runs the demo. Raises errors of Isthmus, and ImportError for missing packages."""
    check_output(output)
    other_held = _held_in(options.beside) if options.beside else []
    report("opening drivers", 0.0)
    device, worker, notes = workers.choose(options.device)
    report("reading the photographs", 0.05)
    paths, source = patches.load(options.seed)
    outcome = Outcome(
        paths, source.count, device.filter, device.name.strip(), worker.name, options, notes,
        beside=other_held,
    )  # fmt: skip
    pipeline = Pipeline(outcome, source, worker)
    pipeline.process_all(report)
    report("comparing with the driver's allocations", 0.9)
    pipeline.compare()
    report("drawing the picture", 0.95)
    outcome.picture = pipeline.draw(os.path.abspath(os.path.join(output, PICTURE)))
    report("done", 1.0)
    return outcome


def _held_in(path: str) -> list[int]:
    """The second column of a CSV file that has a header and a line for each batch."""
    with open(path, encoding="ascii", newline="") as lines:
        try:
            return [int(held) for _, held in list(csv.reader(lines))[1:]]
        except ValueError as problem:
            raise ValueError(
                f"{path}: each line after the header must have a batch number and bytes: {problem}"
            ) from None


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
