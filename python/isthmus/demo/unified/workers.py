# SPDX-License-Identifier: Apache-2.0
"""The workers that count and stamp the map: OpenCL C, CUDA C, PyTorch, Python functions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from isthmus.demo.launch import (
    CudaProgram,
    OpenCLProgram,
    Program,
    Span,
    TorchStream,
    WorkerSelector,
    memory_of,
    run_function,
)

from . import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    import isthmus

    # The type of `UnifiedBuffer.device`: a NumPy array if one copy serves both host and device.
    Array = NDArray[np.uint8] | isthmus.Array


class Worker(Protocol):
    """Processes arrays of ``UnifiedBuffer.device`` and ``device_write``. Its calls block."""

    name: str
    queue: isthmus.Queue

    def count(self, cells: Array, counts: isthmus.Buffer) -> Span:
        """Writes two 32-bit numbers per row to ``counts``. Precondition: it contains zeros."""

    def stamp(self, cells: Array, number: int) -> Span:
        """Writes ``number`` above the lowest bit of every cell."""


class _ProgramWorker:
    """Runs the kernels of a ``Program``."""

    name: str

    def __init__(self, program: Program) -> None:
        self.queue = program.queue
        self._program = program

    def count(self, cells: Any, counts: isthmus.Buffer) -> Span:
        rows, width = cells.shape
        items = (kernels.ITEMS_PER_ROW, rows)
        return self._program.run("count", items, (memory_of(cells), counts), (width,))

    def stamp(self, cells: Any, number: int) -> Span:
        nbytes = cells.nbytes
        return self._program.run("stamp", (nbytes, 1), (memory_of(cells),), (number, nbytes))


class OpenCLWorker(_ProgramWorker):
    """pyopencl, on the queue that the unified buffer uses."""

    name = "OpenCL C, run by pyopencl on Isthmus' context and queue"

    def __init__(self, queue: isthmus.Queue) -> None:
        super().__init__(OpenCLProgram(queue, kernels.OPENCL, ["count", "stamp"]))


class CuPyWorker(_ProgramWorker):
    """CuPy, on the stream of the queue that the unified buffer uses."""

    name = "CUDA C, run by CuPy on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        super().__init__(CudaProgram(queue, kernels.CUDA, ["count", "stamp"]))


class TorchWorker:
    """PyTorch, on the stream of the queue that the unified buffer uses."""

    name = "PyTorch operations, on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue
        self._stream = TorchStream(queue)
        self._stream.warm_up(self._counting(8), (64,), (64,))
        self._stream.warm_up(_stamping(1), (64,))

    def count(self, cells: Any, counts: isthmus.Buffer) -> Span:
        return self._stream.run(self._counting(cells.shape[1]), memory_of(cells), counts)

    def stamp(self, cells: Any, number: int) -> Span:
        return self._stream.run(_stamping(number), memory_of(cells))

    def _counting(self, width: int) -> Any:
        torch = self._stream.torch

        def count(cells: Any, counts: Any) -> None:
            pairs = counts.view(torch.int32).view(-1, 2)
            kernels.count_with_torch(torch, cells.view(-1, width), pairs)

        return count


def _stamping(number: int) -> Any:
    return lambda cells: kernels.stamp_with_torch(cells, number)


class FunctionWorker:
    """NumPy: submitted to the queue, or called directly if the device array is NumPy's."""

    name = "NumPy functions"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue

    def count(self, cells: Array, counts: isthmus.Buffer) -> Span:
        if not isinstance(cells, np.ndarray):
            function = kernels.counting(cells.shape[1])
            return run_function(self.queue, function, memory_of(cells), counts)
        began = time.perf_counter()
        result = np.zeros((cells.shape[0], 2), np.uint32)
        kernels.count_rows(cells, result)
        counts.copy_from(result)
        return began, time.perf_counter()

    def stamp(self, cells: Array, number: int) -> Span:
        if not isinstance(cells, np.ndarray):
            return run_function(self.queue, kernels.stamping(number), memory_of(cells))
        began = time.perf_counter()
        kernels.stamp_cells(cells, number)
        return began, time.perf_counter()


def choose(wanted: str) -> tuple[isthmus.Device, Worker, list[str]]:
    """The device of the filter, its worker, and the reasons if these are not the preferred ones."""
    return _SELECTOR.choose(wanted)


_SELECTOR: WorkerSelector[Worker] = WorkerSelector(
    OpenCLWorker, (CuPyWorker, TorchWorker), FunctionWorker
)
