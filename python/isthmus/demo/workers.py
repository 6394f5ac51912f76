"""Ways to have a kernel of one's own work on Isthmus' memory, in the order of its queue."""

from __future__ import annotations

import ctypes
import time
import warnings
from typing import TYPE_CHECKING, Any, Protocol

import isthmus
from isthmus._optional import made_or_why_not
from isthmus.testing import open_device

from . import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

Shape = tuple[int, ...]
Span = tuple[float, float]  # seconds of time.perf_counter()


def span(event: isthmus.Event | None, began: float) -> Span:
    """Waits, and tells when it ran: by its device's clock if that has one, else by this side's."""
    assert event is not None
    event.wait()
    ended = time.perf_counter()
    times = event.times
    if times is None:
        return began, ended
    return ended - (times[2] - times[1]) * 1e-9, ended


class Worker(Protocol):
    """Runs the kernel on two buffers of one kind."""

    name: str
    queue: isthmus.Queue

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        """Waits until it has run, and tells when that was."""


class OpenCLWorker:
    """pyopencl on Isthmus' own context and queue: neither copies nor a second context."""

    name = "OpenCL C, run by pyopencl on Isthmus' context and queue"

    def __init__(self, queue: isthmus.Queue) -> None:
        import pyopencl as cl

        self.queue = queue
        self._cl_queue = cl.CommandQueue.from_int_ptr(queue.native_handle)
        context = cl.Context.from_int_ptr(queue.context.native_handle)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compilers that have something to say
            self._kernel = cl.Kernel(cl.Program(context, kernels.OPENCL).build(), "ink")
        self._set_pointer = _pointer_setter(queue.device, context.devices[0].platform.int_ptr)

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        """Isthmus does not know this kernel, so ``record`` tells it of what the kernel uses."""
        import numpy as np
        import pyopencl as cl

        height, width, _ = shape
        items = -(-3 * width // kernels.BYTES_PER_ITEM)
        for index, buffer in enumerate((photo, result)):
            status = self._set_pointer(self._kernel.int_ptr, index, buffer.ptr)
            if status != 0:
                raise RuntimeError(f"OpenCL refused {buffer!r} as a kernel's argument: {status}")
        for index, number in enumerate((width, height, reach)):
            self._kernel.set_arg(2 + index, np.int32(number))
        event = cl.enqueue_nd_range_kernel(self._cl_queue, self._kernel, (items, height), None)
        for buffer in (photo, result):
            buffer.record(self.queue)
        event.wait()
        return _opencl_span(event, time.perf_counter())


def _opencl_span(event: Any, ended: float) -> Span:
    return ended - (event.profile.end - event.profile.start) * 1e-9, ended


def _pointer_setter(device: isthmus.Device, platform: int) -> Any:
    """The driver's function that makes a USM address a kernel's argument; pyopencl has none."""
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


class CuPyWorker:
    """CuPy on Isthmus' own stream and memory, as arrays without a copy."""

    name = "CUDA C, run by CuPy on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        import cupy

        self.queue = queue
        self._cupy = cupy
        self._index = _index_of(queue.device)
        with cupy.cuda.Device(self._index):
            self._kernel = cupy.RawKernel(kernels.CUDA, "ink")
            self._kernel.compile()
        self._stream = cupy.cuda.ExternalStream(queue.native_handle, self._index)

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        """Isthmus does not know this kernel, so ``record`` tells it of what the kernel uses."""
        cuda, int32 = self._cupy.cuda, self._cupy.int32
        height, width, _ = shape
        blocks = (-(-3 * width // kernels.THREADS), height)
        with cuda.Device(self._index), self._stream:
            arrays = tuple(self._cupy.asarray(buffer) for buffer in (photo, result))
            began, ended = cuda.Event(), cuda.Event()
            began.record()
            numbers = (int32(width), int32(height), int32(reach))
            self._kernel(blocks, (kernels.THREADS,), arrays + numbers)
            ended.record()
            for buffer in (photo, result):
                buffer.record(self.queue)
            ended.synchronize()
            return _cuda_span(cuda.get_elapsed_time(began, ended))


class TorchWorker:
    """PyTorch on Isthmus' own stream and memory, as tensors without a copy."""

    name = "operations of PyTorch's, on Isthmus' stream and memory"

    def __init__(self, queue: isthmus.Queue) -> None:
        import torch

        if not torch.cuda.is_available():
            raise ImportError(f"PyTorch {torch.__version__} finds no CUDA device")
        self.queue = queue
        self._torch = torch
        self._device = torch.device("cuda", _index_of(queue.device))
        self._stream = torch.cuda.ExternalStream(queue.native_handle, self._device)
        with torch.cuda.stream(self._stream):  # PyTorch loads its kernels when they first run
            small = torch.zeros((8, 8, 3), dtype=torch.uint8, device=self._device)
            kernels.draw_with_torch(torch, small, small.clone(), 1)

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        """Isthmus does not know these kernels, so ``record`` tells it of what they use."""
        torch = self._torch
        with torch.cuda.stream(self._stream):
            source, target = (
                torch.as_tensor(buffer, device=self._device).view(shape)
                for buffer in (photo, result)
            )
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            kernels.draw_with_torch(torch, source, target, reach)
            ended.record()
            for buffer in (photo, result):
                buffer.record(self.queue)
            ended.synchronize()
            return _cuda_span(began.elapsed_time(ended))


def _index_of(device: isthmus.Device) -> int:
    return int(device.filter.rpartition(":")[2])


def _cuda_span(milliseconds: float) -> Span:
    ended = time.perf_counter()
    return ended - milliseconds * 1e-3, ended


class FunctionWorker:
    """A Python function given to the queue: the kernels of the host, and of simulated devices."""

    name = "a NumPy function, given to queue.submit"

    def __init__(self, queue: isthmus.Queue) -> None:
        self.queue = queue

    def run(self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int) -> Span:
        """Where functions cannot touch device memory, they get shared memory in its stead."""
        if photo.kind == "device" and "run_functions" not in self.queue.device.capabilities:
            return self._run_beside(photo, result, shape, reach)
        began = time.perf_counter()
        return span(self.queue.submit(kernels.function(shape, reach), photo, result), began)

    def _run_beside(
        self, photo: isthmus.Buffer, result: isthmus.Buffer, shape: Shape, reach: int
    ) -> Span:
        began = time.perf_counter()
        with (
            isthmus.Buffer(photo.nbytes, kind="shared", queue=self.queue) as source,
            isthmus.Buffer(photo.nbytes, kind="shared", queue=self.queue) as target,
        ):
            source.copy_from(photo)
            self.run(source, target, shape, reach)
            target.copy_to(result)
        return began, time.perf_counter()


def choose(wanted: str) -> tuple[isthmus.Device, Worker, list[str]]:
    """The device that the filter finds, who works on it, and notes on why it is not another one."""
    device = open_device(wanted)
    if device.backend == "cuda":
        return device, *_choose_on_cuda(isthmus.Queue(device))
    if device.backend != "opencl":
        return device, FunctionWorker(isthmus.Queue(device)), []
    try:
        return device, OpenCLWorker(isthmus.Queue(device)), []
    except ImportError:
        note = (
            f"{device.filter} is not used: a kernel for it needs pyopencl, which is not installed "
            "(pip install pyopencl, or 'isthmus[demo]'). The host takes its place."
        )
    device = isthmus.Device("host")
    return device, FunctionWorker(isthmus.Queue(device)), [note]


def _choose_on_cuda(queue: isthmus.Queue) -> tuple[Worker, list[str]]:
    ways: list[Callable[[isthmus.Queue], Worker]] = [CuPyWorker, TorchWorker]
    lacking = []
    for make in ways:
        made = made_or_why_not(make, queue)
        if not isinstance(made, str):
            return made, []
        lacking.append(made)
    note = (
        f"no kernel runs on {queue.device.filter} itself: one needs CuPy or PyTorch with CUDA "
        f"({'; '.join(lacking)}). A NumPy function on the host takes its place."
    )
    return FunctionWorker(queue), [note]
