# SPDX-License-Identifier: Apache-2.0
"""Copies the photograph through memory of each kind, checks every byte, and records the times.

The first trip through new memory is timed apart from the later ones: it includes the work of the
driver, which may compile the kernel, and of the system, which provides pages.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

import isthmus

from . import kernels, photo, picture, workers
from .checks import Progress, check_output, differing
from .launch import span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isthmus._kinds import Kind

PICTURE = "isthmus_demo.png"
_HOST = "NumPy array"
_MAX_TRIPS = 5  # through the memory of one kind, after the first
_MAX_SECONDS = 1.0  # after which no other trip begins


@dataclass
class Step:
    """One operation of a trip."""

    kind: str
    what: str
    source: str
    destination: str
    nbytes: int
    first_seconds: float  # of the first trip
    seconds: float  # the least of the later trips


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
    numpy_seconds: float = 0.0  # of the same kernel by NumPy on the host, without copies
    steps: list[Step] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    picture: str = ""

    @property
    def exact(self) -> bool:
        """Whether every result equals NumPy's, byte for byte."""
        return bool(self.checks) and all(check.wrong_bytes == 0 for check in self.checks)

    def seconds_of(self, kind: str) -> float:
        """The time of a trip through the memory of that kind, without first use."""
        return sum(step.seconds for step in self.steps if step.kind == kind)


class Trips:
    """Copies one photograph through memory of one kind and back, several times."""

    def __init__(self, outcome: Outcome, worker: workers.Worker) -> None:
        self._outcome = outcome
        self._worker = worker

    def run(
        self, kind: Kind, source: NDArray[np.uint8], result: NDArray[np.uint8], reach: int
    ) -> int:
        """Fills ``result``. Returns the bytes in which the kernel's output differs from it.

        Returns 0 for device memory, which cannot be read in place.
        """
        with self._buffer(source, kind) as photograph, self._buffer(source, kind) as drawn:
            first = self._trip(photograph, drawn, source, result, reach)
            later: list[list[float]] = []
            began = time.perf_counter()
            while not later or (
                len(later) < _MAX_TRIPS and time.perf_counter() - began < _MAX_SECONDS
            ):
                result.fill(0)
                later.append(self._trip(photograph, drawn, source, result, reach))
            self._add_steps(kind, source.nbytes, first, later)
            if kind == "device":
                return 0
            return differing(np.asarray(drawn).reshape(source.shape), result)

    def _buffer(self, source: NDArray[np.uint8], kind: Kind) -> isthmus.Buffer:
        return isthmus.Buffer(source.nbytes, kind=kind, queue=self._worker.queue)

    def _trip(
        self, photograph: isthmus.Buffer, drawn: isthmus.Buffer, source: NDArray[np.uint8],
        result: NDArray[np.uint8], reach: int,
    ) -> list[float]:  # fmt: skip
        """The seconds of the copy in, the kernel and the copy out."""
        began = time.perf_counter()
        copied_in = span(photograph.copy_from(source, blocking=False), began)
        ran = self._worker.run(photograph, drawn, source.shape, reach)
        began = time.perf_counter()
        copied_out = span(drawn.copy_to(result, blocking=False), began)
        return [ended - began for began, ended in (copied_in, ran, copied_out)]

    def _add_steps(
        self, kind: str, nbytes: int, first: list[float], later: list[list[float]]
    ) -> None:
        memory = f"{kind} kind"
        steps = (
            ("copy in", _HOST, memory),
            ("kernel", memory, memory),
            ("copy out", memory, _HOST),
        )
        for step, first_seconds, seconds in zip(
            steps, first, zip(*later, strict=True), strict=True
        ):
            self._outcome.steps.append(Step(kind, *step, nbytes, first_seconds, min(seconds)))


def numpy_seconds(source: NDArray[np.uint8], result: NDArray[np.uint8], reach: int) -> float:
    """The time of the kernel by NumPy, on arrays that were used before."""
    ink = kernels.function(source.shape, reach)
    began = time.perf_counter()
    ink(source.data.cast("B"), result.data.cast("B"))
    return time.perf_counter() - began


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
    trips = Trips(outcome, worker)
    for index, kind in enumerate(device.kinds):
        report(f"through {kind} memory", 0.5 + 0.1 * index)
        wrong = trips.run(kind, source, result, reach)
        wrong += differing(result, expected)
        outcome.checks.append(Check(kind, source.nbytes, wrong))
    report("timing NumPy", 0.8)
    outcome.numpy_seconds = numpy_seconds(source, result, reach)
    report("drawing the picture", 0.85)
    outcome.picture = picture.draw(
        outcome, source, result, os.path.abspath(os.path.join(output, PICTURE))
    )
    report("done", 1.0)
    return outcome
