# SPDX-License-Identifier: Apache-2.0
"""The workers that measure the patches: OpenCL C, CUDA C, PyTorch, a Python function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

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
from .patches import BYTES, SIDE

if TYPE_CHECKING:
    import isthmus


class Worker(Protocol):
    """Processes device arrays, in the order of its queue; its calls block until completion."""

    name: str
    queue: isthmus.Queue

    def contrast(self, patches: isthmus.Array, result: isthmus.Array) -> Span:
        """Writes the contrast of each patch (of bytes) to ``result``; returns the start and end
        time.
        """


class _ProgramWorker:
    name: str

    def __init__(self, program: Program) -> None:
        self.queue = program.queue
        self._program = program

    def contrast(self, patches: isthmus.Array, result: isthmus.Array) -> Span:
        memory = (memory_of(patches), memory_of(result))
        return self._program.run("contrast", (result.size, 1), memory, (SIDE, result.size))


class OpenCLWorker(_ProgramWorker):
    """pyopencl, with a work item for each patch."""

    name = "OpenCL C, run by pyopencl on Isthmus' context and queue"

    def __init__(self, queue: isthmus.Queue) -> None:
        super().__init__(OpenCLProgram(queue, kernels.OPENCL, ["contrast"]))


class CuPyWorker(_ProgramWorker):
    """CuPy, with a thread for each patch."""

    name = "CUDA C, run by CuPy on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        super().__init__(CudaProgram(queue, kernels.CUDA, ["contrast"]))


class TorchWorker:
    """PyTorch, as a sequence of operations."""

    name = "PyTorch operations, on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue
        self._stream = TorchStream(queue)
        self._stream.warm_up(self._measure, (8 * BYTES,), (8 * 4,))

    def _measure(self, patches: Any, result: Any) -> None:
        kernels.measure_with_torch(self._stream.torch, patches, result)

    def contrast(self, patches: isthmus.Array, result: isthmus.Array) -> Span:
        return self._stream.run(self._measure, memory_of(patches), memory_of(result))


class FunctionWorker:
    """A NumPy function, submitted to the queue."""

    name = "a NumPy function, run by queue.submit"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue

    def contrast(self, patches: isthmus.Array, result: isthmus.Array) -> Span:
        memory = (memory_of(patches), memory_of(result))
        return run_function(self.queue, kernels.function, *memory)


def choose(wanted: str) -> tuple[isthmus.Device, Worker, list[str]]:
    """The device of the filter, its worker, and the reasons if these are not the preferred ones."""
    return _SELECTOR.choose(wanted)


_SELECTOR: WorkerSelector[Worker] = WorkerSelector(
    OpenCLWorker, (CuPyWorker, TorchWorker), FunctionWorker
)
