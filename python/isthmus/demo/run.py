# SPDX-License-Identifier: Apache-2.0
"""Copies the photograph through memory of each kind, checks every byte, and records the times."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

import isthmus

from . import kernels, photo, picture, workers
from .checks import Progress, check_output, differing
from .launch import Span, span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isthmus._kinds import Kind

PICTURE = "isthmus_demo.png"
_HOST = "NumPy array"


@dataclass
class Step:
    """One operation in a row of the timeline."""

    kind: str
    what: str
    source: str
    destination: str
    nbytes: int
    began: float
    seconds: float


@dataclass
class Check:
    """The comparison of a result with NumPy's."""

    kind: str
    nbytes: int
    wrong_bytes: int


@dataclass
class Outcome:
    """The results of the demo, as shown in the table, JSON and the picture."""

    photograph: str
    size: tuple[int, int]
    device: str
    device_name: str
    kernel: str
    notes: list[str]
    steps: list[Step] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    picture: str = ""

    @property
    def exact(self) -> bool:
        """Whether every result equals NumPy's, byte for byte."""
        return bool(self.checks) and all(check.wrong_bytes == 0 for check in self.checks)


class Trip:
    """Copies one photograph through memory of one kind and back."""

    def __init__(self, outcome: Outcome, worker: workers.Worker) -> None:
        self._outcome = outcome
        self._worker = worker

    def run(
        self, kind: Kind, source: NDArray[np.uint8], result: NDArray[np.uint8], reach: int
    ) -> int:
        """Fills ``result``. Returns the bytes in which the kernel's output differs from it.

        Returns 0 for device memory, which cannot be read in place.
        """
        name = f"{kind} kind"
        with self._buffer(source, kind) as photograph, self._buffer(source, kind) as drawn:
            began = time.perf_counter()
            event = photograph.copy_from(source, blocking=False)
            self._add_step(kind, "copy in", (_HOST, name), source.nbytes, span(event, began))
            ran = self._worker.run(photograph, drawn, source.shape, reach)
            self._add_step(kind, "kernel", (name, name), source.nbytes, ran)
            began = time.perf_counter()
            event = drawn.copy_to(result, blocking=False)
            self._add_step(kind, "copy out", (name, _HOST), source.nbytes, span(event, began))
            if kind == "device":
                return 0
            return differing(np.asarray(drawn).reshape(source.shape), result)

    def _buffer(self, source: NDArray[np.uint8], kind: Kind) -> isthmus.Buffer:
        return isthmus.Buffer(source.nbytes, kind=kind, queue=self._worker.queue)

    def _add_step(
        self, kind: str, name: str, direction: tuple[str, str], nbytes: int, span: Span
    ) -> None:
        began, ended = span
        self._outcome.steps.append(Step(kind, name, *direction, nbytes, began, ended - began))


def run(size: tuple[int, int], wanted: str, output: str, report: Progress) -> Outcome:
    """Runs the demo. Raises errors of Isthmus, and ImportError for missing packages."""
    check_output(output)
    report("opening drivers", 0.0)
    device, worker, notes = workers.choose(wanted)
    report("enlarging the photograph", 0.05)
    path = photo.find()
    source, reach = photo.load(path, size), photo.reach_of(path, size)
    outcome = Outcome(path, size, device.filter, device.name.strip(), worker.name, notes)
    report("computing NumPy's result for comparison", 0.15)
    expected = kernels.reference(source, reach)
    result = np.zeros_like(source)
    trip = Trip(outcome, worker)
    for index, kind in enumerate(device.kinds):
        report(f"through {kind} memory", 0.5 + 0.1 * index)
        result.fill(0)
        wrong = trip.run(kind, source, result, reach)
        wrong += differing(result, expected)
        outcome.checks.append(Check(kind, source.nbytes, wrong))
    report("drawing the picture", 0.85)
    outcome.picture = picture.draw(
        outcome, source, result, os.path.abspath(os.path.join(output, PICTURE))
    )
    report("done", 1.0)
    return outcome
