# SPDX-License-Identifier: Apache-2.0
"""Ways to run user-defined kernels on memory of Isthmus, in the order of its queue."""

from __future__ import annotations

import ctypes
import time
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import isthmus
from isthmus._optional import try_call
from isthmus.testing import open_device

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Span = tuple[float, float]  # seconds of time.perf_counter()
Items = tuple[int, int]  # of work, along x and y
_THREADS = 256  # CUDA threads in a block, along x


def span(event: isthmus.Event | None, began: float) -> Span:
    """Waits for ``event`` and returns the start and end time of its operation.

    The times are those of the device's clock if it has one, otherwise of the host's.
    """
    assert event is not None
    event.wait()
    ended = time.perf_counter()
    times = event.times
    if times is None:
        return began, ended
    return ended - (times[2] - times[1]) * 1e-9, ended


def memory_of(array: isthmus.Array) -> isthmus.Buffer:
    """The part of its buffer that a contiguous array occupies."""
    return array.buffer[array.offset : array.offset + array.nbytes]


class Program(Protocol):
    """Kernels by name, compiled for the device of a queue."""

    queue: isthmus.Queue

    def run(
        self, name: str, items: Items, buffers: Sequence[isthmus.Buffer], numbers: Sequence[int]
    ) -> Span:
        """Runs the kernel, waits for it, and returns its start and end time.

        These kernels are external work, so the buffers that they use are declared by ``record``.
        """


class OpenCLProgram:
    """pyopencl on Isthmus' context and queue, without copies or a second context."""

    def __init__(self, queue: isthmus.Queue, source: str, names: Sequence[str]) -> None:
        import pyopencl as cl

        self.queue = queue
        self._cl_queue = cl.CommandQueue.from_int_ptr(queue.native_handle)
        context = cl.Context.from_int_ptr(queue.context.native_handle)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ignores compiler output
            program = cl.Program(context, source).build()
        self._kernels = {name: cl.Kernel(program, name) for name in names}
        self._set_pointer = _pointer_setter(queue.device, context.devices[0].platform.int_ptr)

    def run(
        self, name: str, items: Items, buffers: Sequence[isthmus.Buffer], numbers: Sequence[int]
    ) -> Span:
        import numpy as np
        import pyopencl as cl

        kernel = self._kernels[name]
        for index, buffer in enumerate(buffers):
            status = self._set_pointer(kernel.int_ptr, index, buffer.ptr)
            if status != 0:
                raise RuntimeError(f"OpenCL rejected {buffer!r} as a kernel argument: {status}")
        for index, number in enumerate(numbers):
            kernel.set_arg(len(buffers) + index, np.int32(number))
        event = cl.enqueue_nd_range_kernel(self._cl_queue, kernel, items, None)
        for buffer in buffers:
            buffer.record(self.queue)
        event.wait()
        ended = time.perf_counter()
        return ended - (event.profile.end - event.profile.start) * 1e-9, ended


def _pointer_setter(device: isthmus.Device, platform: int) -> Any:
    """The driver's function that sets a USM address as a kernel argument; pyopencl lacks such a
    function.
    """
    library = ctypes.CDLL(device.platform.library)
    signature = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p)
    if "usm" not in device.capabilities:
        return signature(("clSetKernelArgSVMPointer", library))
    find = library.clGetExtensionFunctionAddressForPlatform
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
    address = find(platform, b"clSetKernelArgMemPointerINTEL")
    if not address:
        raise isthmus.UnsupportedError(f"{device.filter} has no clSetKernelArgMemPointerINTEL")
    return signature(address)


class CudaProgram:
    """CuPy on Isthmus' stream, with CuPy arrays over its memory, without a copy."""

    def __init__(self, queue: isthmus.Queue, source: str, names: Sequence[str]) -> None:
        import cupy

        self.queue = queue
        self._cupy = cupy
        self._index = _index_of(queue.device)
        self._kernels = {}
        with cupy.cuda.Device(self._index):
            for name in names:
                self._kernels[name] = cupy.RawKernel(source, name)
                self._kernels[name].compile()
        self._stream = cupy.cuda.ExternalStream(queue.native_handle, self._index)

    def run(
        self, name: str, items: Items, buffers: Sequence[isthmus.Buffer], numbers: Sequence[int]
    ) -> Span:
        cuda = self._cupy.cuda
        blocks = (-(-items[0] // _THREADS), items[1])
        with cuda.Device(self._index), self._stream:
            arrays = tuple(self._cupy.asarray(buffer) for buffer in buffers)
            began, ended = cuda.Event(), cuda.Event()
            began.record()
            self._kernels[name](
                blocks, (_THREADS,), arrays + tuple(self._cupy.int32(number) for number in numbers)
            )
            ended.record()
            for buffer in buffers:
                buffer.record(self.queue)
            ended.synchronize()
            return _cuda_span(cuda.get_elapsed_time(began, ended))


class TorchStream:
    """PyTorch on Isthmus' stream, with tensors over its memory, without a copy."""

    def __init__(self, queue: isthmus.Queue) -> None:
        import torch

        if not torch.cuda.is_available():
            raise ImportError(f"PyTorch {torch.__version__} finds no CUDA device")
        self.queue = queue
        self.torch = torch
        self.device = torch.device("cuda", _index_of(queue.device))
        self._stream = torch.cuda.ExternalStream(queue.native_handle, self.device)

    def warm_up(self, work: Callable[..., None], *shapes: tuple[int, ...]) -> None:
        """Runs ``work`` on small tensors of zeros, because PyTorch loads kernels on first use."""
        with self.torch.cuda.stream(self._stream):
            work(*(self.torch.zeros(s, dtype=self.torch.uint8, device=self.device) for s in shapes))

    def run(self, work: Callable[..., None], *buffers: isthmus.Buffer) -> Span:
        """Runs ``work`` on flat tensors of bytes; ``record`` declares the use of the buffers."""
        torch = self.torch
        with torch.cuda.stream(self._stream):
            tensors = [torch.as_tensor(buffer, device=self.device) for buffer in buffers]
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            work(*tensors)
            ended.record()
            for buffer in buffers:
                buffer.record(self.queue)
            ended.synchronize()
            return _cuda_span(began.elapsed_time(ended))


def _index_of(device: isthmus.Device) -> int:
    return int(device.filter.rpartition(":")[2])


def _cuda_span(milliseconds: float) -> Span:
    ended = time.perf_counter()
    return ended - milliseconds * 1e-3, ended


def run_function(
    queue: isthmus.Queue, function: Callable[..., None], *buffers: isthmus.Buffer
) -> Span:
    """Runs ``function`` on memoryviews of the buffers; the function writes to the last one.

    If functions cannot access device memory, they receive shared memory with its contents instead.
    """
    began = time.perf_counter()
    if buffers[0].kind != "device" or "run_functions" in queue.device.capabilities:
        return span(queue.submit(function, *buffers), began)
    with ExitStack() as stack:
        arguments = []
        for buffer in buffers:
            shared = isthmus.Buffer(buffer.nbytes, kind="shared", queue=queue)
            arguments.append(stack.enter_context(shared))
            shared.copy_from(buffer)
        span(queue.submit(function, *arguments), began)
        arguments[-1].copy_to(buffers[-1])
    return began, time.perf_counter()


Worker = TypeVar("Worker")


@dataclass(frozen=True)
class WorkerSelector(Generic[Worker]):
    """Selects the worker for a device: OpenCL, the first usable one for CUDA, or a function."""

    opencl: Callable[[isthmus.Queue], Worker]
    cuda: tuple[Callable[[isthmus.Queue], Worker], ...]
    function: Callable[[isthmus.Queue], Worker]

    def choose(self, wanted: str) -> tuple[isthmus.Device, Worker, list[str]]:
        """The device of the filter, its worker, and the reasons if these are not the best ones."""
        device = open_device(wanted)
        if device.backend == "cuda":
            return device, *self._choose_on_cuda(isthmus.Queue(device))
        if device.backend != "opencl":
            return device, self.function(isthmus.Queue(device)), []
        try:
            return device, self.opencl(isthmus.Queue(device)), []
        except ImportError:
            note = (
                f"{device.filter} is not used: a kernel for it needs pyopencl, which is not "
                "installed (pip install pyopencl, or 'isthmus[demo]'). The host device is used."
            )
        device = isthmus.Device("host")
        return device, self.function(isthmus.Queue(device)), [note]

    def _choose_on_cuda(self, queue: isthmus.Queue) -> tuple[Worker, list[str]]:
        reasons = []
        for worker_class in self.cuda:
            worker_or_reason = try_call(worker_class, queue)
            if not isinstance(worker_or_reason, str):
                return worker_or_reason, []
            reasons.append(worker_or_reason)
        note = (
            f"no kernel runs on {queue.device.filter} itself: one needs CuPy or PyTorch with CUDA "
            f"({'; '.join(reasons)}). A NumPy function on the host is used."
        )
        return self.function(queue), [note]
