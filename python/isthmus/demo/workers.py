# SPDX-License-Identifier: Apache-2.0
"""The workers that run the photograph's kernel: OpenCL C, CUDA C, PyTorch, a Python function.

``launch`` implements their access to memory of Isthmus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from . import kernels
from .launch import CudaProgram, OpenCLProgram, Span, TorchStream, WorkerSelector, run_function

if TYPE_CHECKING:
    import isthmus

Shape = tuple[int, ...]


class Worker(Protocol):
    """Runs the kernel on two buffers of one kind."""

    name: str
    queue: isthmus.Queue

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        """Runs the kernel, waits for it, and returns its start and end time."""


class OpenCLWorker:
    """pyopencl, with a work item for each ``BYTES_PER_ITEM`` bytes."""

    name = "OpenCL C, run by pyopencl on Isthmus' context and queue"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue
        self._program = OpenCLProgram(queue, kernels.OPENCL, ["ink"])

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        height, width, _ = shape
        items = (-(-3 * width // kernels.BYTES_PER_ITEM), height)
        return self._program.run("ink", items, (photo, result), (width, height, reach))


class CuPyWorker:
    """CuPy, with a thread for each byte."""

    name = "CUDA C, run by CuPy on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue
        self._program = CudaProgram(queue, kernels.CUDA, ["ink"])

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        height, width, _ = shape
        items = (3 * width, height)
        return self._program.run("ink", items, (photo, result), (width, height, reach))


class TorchWorker:
    """PyTorch, as a sequence of operations."""

    name = "PyTorch operations, on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue
        self._stream = TorchStream(queue)
        self._stream.warm_up(self._drawing((8, 8, 3), 1), (8, 8, 3), (8, 8, 3))

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        return self._stream.run(self._drawing(shape, reach), photo, result)

    def _drawing(self, shape: Shape, reach: int) -> Any:
        torch = self._stream.torch

        def draw(photo: Any, result: Any) -> None:
            kernels.draw_with_torch(torch, photo.view(shape), result.view(shape), reach)

        return draw


class FunctionWorker:
    """A Python function submitted to the queue, for the host and for simulated devices."""

    name = "a NumPy function, run by queue.submit"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        return run_function(self.queue, kernels.function(shape, reach), photo, result)


def choose(wanted: str) -> tuple[isthmus.Device, Worker, list[str]]:
    """The device of the filter, its worker, and the reasons if these are not the preferred ones."""
    return _SELECTOR.choose(wanted)


_SELECTOR: WorkerSelector[Worker] = WorkerSelector(
    OpenCLWorker, (CuPyWorker, TorchWorker), FunctionWorker
)
