# SPDX-License-Identifier: Apache-2.0
"""Runs the rounds: the host edits, the changes are copied, the device counts and stamps.

In each round the host writes into ``buf.host`` as into any NumPy array. The synchronization detects
the written cells and copies them. The device counts the land of every row and stamps a band of
rows, of which the host then reads only that band. All results are checked. For comparison, the same
array is copied as a whole into a buffer, as by a library that copies whole arrays.
"""

from __future__ import annotations

import os
import time
from contextlib import closing

import numpy as np

import isthmus
from isthmus.demo.checks import Progress, check_output, differing

from . import edits, kernels, mask, picture, workers
from .close_up import CloseUp, close_up, region_around
from .dirty_map import DirtyMap
from .outcome import Options, Outcome, Round
from .truth import Truth

PICTURE = "isthmus_demo_unified.png"
STAMPED_ROWS = 32  # per round
_FINE, _COARSE = (400, 1080), (24, 90)  # blocks of the maps for the picture and for the terminal


class Rounds:
    """The unified buffer, the NumPy copy, and the buffer that receives whole copies."""

    def __init__(self, outcome: Outcome, source: mask.Mask, worker: workers.Worker) -> None:
        options, shape, queue = outcome.options, source.cells.shape, worker.queue
        self._outcome, self._source, self._worker = outcome, source, worker
        self.unified = isthmus.UnifiedBuffer(
            shape,
            np.uint8,
            queue=queue,
            separate=not options.one_copy,
            granularity=options.granularity,
        )
        self.unified.copy_from(source.cells)
        self.truth = Truth(source.cells)
        self._dirty = DirtyMap(outcome.shape, _FINE)  # in all rounds but the first
        self._coarse = DirtyMap(outcome.shape, _COARSE)  # in the last one
        self._close_up: CloseUp | None = None  # of the last one
        self._coast = edits.Coast(source.cells, options.seed)
        self._whole = isthmus.Buffer(source.cells.nbytes, queue=queue)
        self._counts = isthmus.Buffer(self.truth.counts.nbytes, queue=queue)

    def close(self) -> None:
        """Frees the memory."""
        for buffer in (self.unified, self._whole, self._counts):
            buffer.free()

    def run_round(self, number: int) -> None:
        """Runs one round. The first round copies the whole map and is excluded from the dirty
        map.
        """
        edit = self._coast.edit(number)
        region = region_around(edit.window, self._outcome.shape)
        before_edit = self.truth.cells[region].copy()
        edit.apply(self.unified.host)
        self.truth.edit(edit)
        ranges = self.unified.dirty_ranges().host
        if number > 0:
            self._dirty.add(ranges)
        if number == self._outcome.options.rounds:
            self._coarse.add(ranges)
            self._close_up = close_up(
                number, edit.window, region, before_edit, self.truth.cells, ranges
            )
        dirty_bytes = sum(stop - start for start, stop in ranges)  # a cell is a byte
        result = Round(number, str(self.unified.state), len(ranges), dirty_bytes)
        before = self.unified.statistics
        self._synchronize(result)
        self._count(result)
        self._stamp(result)
        after = self.unified.statistics
        result.bytes_to_device = after.bytes_to_device - before.bytes_to_device
        result.bytes_to_host = after.bytes_to_host - before.bytes_to_host
        self._outcome.rounds.append(result)

    def _synchronize(self, result: Round) -> None:
        began = time.perf_counter()
        _wait(self.unified.sync_to_device())
        result.sync_seconds = time.perf_counter() - began
        began = time.perf_counter()
        self._whole.copy_from(self.truth.cells)
        result.whole_seconds = time.perf_counter() - began

    def _count(self, result: Round) -> None:
        self._counts.fill(0)
        began, ended = self._worker.count(self.unified.device, self._counts)
        result.count_seconds = ended - began
        counts = self._counts.to_numpy().view(np.uint32).reshape(-1, 2)
        result.wrong_rows = self.truth.wrong_rows(counts)
        result.land_km2 = self._source.area(counts[:, 0])

    def _stamp(self, result: Round) -> None:
        """The device writes a band; the host reads only that band."""
        rows, number = self._band(result.number), 1 + result.number % kernels.STAMPS
        with self.unified.device_write(rows) as band:
            self._worker.stamp(band, number)
        self.truth.stamp(rows, number)
        result.stamped_state = str(self.unified.state)
        began = time.perf_counter()
        with self.unified.host_read(rows) as read:
            result.read_seconds = time.perf_counter() - began
            result.wrong_cells = differing(read, self.truth.cells[rows])

    def _band(self, number: int) -> slice:
        """The band of a round; consecutive bands from the north."""
        height = self.truth.cells.shape[0]
        length = min(STAMPED_ROWS, height)
        start = number * length % (height - length + 1)
        return slice(start, start + length)

    def finish(self) -> None:
        """Compares every byte of both copies with NumPy's, and fills in the coarse map."""
        outcome, device = self._outcome, self.unified.device
        on_device = device if isinstance(device, np.ndarray) else device.to_numpy()
        outcome.wrong_bytes_on_device = differing(on_device, self.truth.cells)
        outcome.wrong_bytes_on_host = differing(self.unified.to_numpy(), self.truth.cells)
        outcome.dirty = self._coarse.shares().round(5).tolist()
        outcome.land = self._coarse.land(self.truth.cells).round(3).tolist()

    def draw(self, path: str) -> str:
        """Writes the picture. Precondition: all rounds ran."""
        assert self._close_up is not None
        overview = picture.Overview(
            self._dirty.land(self.truth.cells), self._dirty.rounds(), self._source.latitudes
        )
        return picture.draw(self._outcome, overview, self._close_up, path)


def run(options: Options, output: str, report: Progress) -> Outcome:
    """Runs the demo. Raises errors of Isthmus, and ImportError for missing packages."""
    check_output(output)
    path = mask.find()
    report("opening drivers", 0.0)
    device, worker, notes = workers.choose(options.device)
    report("reading the map", 0.05)
    source = mask.load(path, options.rows)
    rows, columns = source.cells.shape
    outcome = Outcome(
        path, (rows, columns), source.cells.nbytes, device.filter, device.name.strip(),
        worker.name, options, notes,
    )  # fmt: skip
    report("computing NumPy's counts for comparison", 0.1)
    with closing(Rounds(outcome, source, worker)) as rounds:
        for number in range(options.rounds + 1):
            report(f"round {number} of {options.rounds}", 0.2 + 0.6 * number / (options.rounds + 1))
            rounds.run_round(number)
        report("comparing every byte", 0.8)
        rounds.finish()
        report("drawing the picture", 0.9)
        outcome.picture = rounds.draw(os.path.abspath(os.path.join(output, PICTURE)))
    report("done", 1.0)
    return outcome


def _wait(event: isthmus.Event | None) -> None:
    if event is not None:
        event.wait()
