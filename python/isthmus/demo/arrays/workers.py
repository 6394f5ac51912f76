"""Who measures the patches: the kernel in OpenCL C, in CUDA C, as tensors, as a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from isthmus.demo.launch import (
    CudaProgram,
    OpenCLProgram,
    Program,
    Span,
    TorchStream,
    Ways,
    memory_of,
    run_function,
)

from . import kernels
from .patches import BYTES, SIDE

if TYPE_CHECKING:
    import isthmus


class Worker(Protocol):
    """Works on arrays of the device's, in the order of its queue; waits until it has run."""

    name: str
    queue: isthmus.Queue

    def contrast(self, patches: isthmus.Array, result: isthmus.Array) -> Span:
        """Of each of the patches, which are bytes, a number into ``result``."""


class _ProgramWorker:
    name: str

    def __init__(self, program: Program) -> None:
        self.queue = program.queue
        self._program = program

    def contrast(self, patches: isthmus.Array, result: isthmus.Array) -> Span:
        memory = (memory_of(patches), memory_of(result))
        return self._program.run("contrast", (result.size, 1), memory, (SIDE, result.size))


class OpenCLWorker(_ProgramWorker):
    """pyopencl, a work item for each patch."""

    name = "OpenCL C, run by pyopencl on Isthmus' context and queue"

    def __init__(self, queue: isthmus.Queue) -> None:
        super().__init__(OpenCLProgram(queue, kernels.OPENCL, ["contrast"]))


class CuPyWorker(_ProgramWorker):
    """CuPy, a thread for each patch."""

    name = "CUDA C, run by CuPy on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        super().__init__(CudaProgram(queue, kernels.CUDA, ["contrast"]))


class TorchWorker:
    """PyTorch, an operation after the other."""

    name = "operations of PyTorch's, on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue
        self._stream = TorchStream(queue)
        self._stream.warm_up(self._measure, (8 * BYTES,), (8 * 4,))

    def _measure(self, patches: Any, result: Any) -> None:
        kernels.measure_with_torch(self._stream.torch, patches, result)

    def contrast(self, patches: isthmus.Array, result: isthmus.Array) -> Span:
        return self._stream.run(self._measure, memory_of(patches), memory_of(result))


class FunctionWorker:
    """NumPy, given to the queue."""

    name = "a NumPy function, given to queue.submit"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue

    def contrast(self, patches: isthmus.Array, result: isthmus.Array) -> Span:
        memory = (memory_of(patches), memory_of(result))
        return run_function(self.queue, kernels.function, *memory)


def choose(wanted: str) -> tuple[isthmus.Device, Worker, list[str]]:
    """The device that the filter finds, who works on it, and notes on why it is not another one."""
    return _WAYS.choose(wanted)


_WAYS: Ways[Worker] = Ways(OpenCLWorker, (CuPyWorker, TorchWorker), FunctionWorker)
