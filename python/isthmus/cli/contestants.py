# SPDX-License-Identifier: Apache-2.0
"""Isthmus and its peers as contestants: their functions to copy, to allocate and to wait."""

from __future__ import annotations

import contextlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import isthmus
from isthmus._optional import try_call

UPLOAD, DOWNLOAD, BETWEEN = "host memory -> buffer", "buffer -> host memory", "buffer -> buffer"
ALLOCATE, FENCE = "allocate and free", "fence and wait"
# Objects created with a size only, and dropped: memory of the current device's default pools.
DEFAULTS = ("Buffer(n)", "empty(n)", "MemoryUSMDevice(n)")
DIRECTIONS = (UPLOAD, DOWNLOAD, BETWEEN)

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One operation to measure. ``nbytes`` is 0 if it has no size."""

    what: str
    kind: Any  # a kind, or "" for an operation without memory
    nbytes: int


class Contestant(ABC):
    """Creates the function to time for a case; None if the contestant does not support the case."""

    name = ""

    def __init__(self, device: isthmus.Device) -> None:  # noqa: B027 (some have nothing to open)
        """Raises ImportError, or another exception with the reason, if the contestant is not
        available.
        """

    @abstractmethod
    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        """``source`` and ``destination`` are host memory, NumPy arrays of ``case.nbytes`` bytes."""

    def default(self, case: Case) -> Work | None:  # noqa: ARG002 (a peer has none)
        """As ``work``, for a case of ``DEFAULTS``."""
        return None


class Isthmus(Contestant):
    """Blocking calls on a new queue."""

    name = "isthmus"

    def __init__(self, device: isthmus.Device) -> None:
        self._queue = isthmus.Queue(device)

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        queue, kind, nbytes = self._queue, case.kind, case.nbytes
        if case.what == FENCE:
            return lambda: queue.fence().wait()
        if case.what == ALLOCATE:
            return lambda: isthmus.Buffer(nbytes, kind=kind, queue=queue)
        buffer = isthmus.Buffer(nbytes, kind=kind, queue=queue)
        buffer.fill(1)
        if case.what == UPLOAD:
            return lambda: buffer.copy_from(source)
        if case.what == DOWNLOAD:
            return lambda: buffer.copy_to(destination)
        other = isthmus.Buffer(nbytes, kind=kind, queue=queue)
        return lambda: other.copy_from(buffer)

    def default(self, case: Case) -> Work | None:
        nbytes = case.nbytes
        if case.what == "Buffer(n)":
            return lambda: isthmus.Buffer(nbytes)
        if case.what == "empty(n)":
            return lambda: isthmus.empty(nbytes, "u1")
        return lambda: isthmus.memory.MemoryUSMDevice(nbytes)


class NumPy(Contestant):
    """Host memory to host memory: the limit of the processor itself."""

    name = "NumPy"

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        import numpy as np

        if case.what == FENCE:
            return None
        if case.what == ALLOCATE:
            return lambda: np.empty(case.nbytes, np.uint8)
        return lambda: np.copyto(destination, source)

    def default(self, case: Case) -> Work | None:
        import numpy as np

        return lambda: np.empty(case.nbytes, np.uint8)


def import_dpctl() -> None:
    """Imports dpctl, if it is installed, after Isthmus has found the drivers that pip installed.

    dpctl lists the drivers only once, on its first use.
    """
    isthmus.devices()
    with contextlib.suppress(ImportError):
        importlib.import_module("dpctl").get_devices()


def dpctl_queue(device: isthmus.Device) -> Any:
    """A dpctl queue on the corresponding device, one with USM.

    The name alone is not enough: dpctl may list a driver without USM first.
    """
    dpctl = importlib.import_module("dpctl")
    for found in dpctl.get_devices():
        kind = found.device_type.name
        if kind == device.type and found.has_aspect_usm_device_allocations:
            return dpctl.SyclQueue(found)
    raise LookupError(f"dpctl finds no {device.type} device with USM")


class Dpctl(Contestant):
    """dpctl.memory on the corresponding device."""

    name = "dpctl"

    def __init__(self, device: isthmus.Device) -> None:
        memory = importlib.import_module("dpctl.memory")
        self._queue = dpctl_queue(device)
        self._classes = {
            "device": memory.MemoryUSMDevice,
            "shared": memory.MemoryUSMShared,
            "host": memory.MemoryUSMHost,
        }

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        queue, nbytes = self._queue, case.nbytes
        if case.what == FENCE:
            return lambda: queue.submit_barrier().wait()
        allocate = self._classes[case.kind]
        if case.what == ALLOCATE:
            return lambda: allocate(nbytes, queue=queue)
        memory = allocate(nbytes, queue=queue)
        memory.memset(1)
        if case.what == UPLOAD:
            return lambda: memory.copy_from_host(source)
        if case.what == DOWNLOAD:
            return lambda: memory.copy_to_host(destination)
        other = allocate(nbytes, queue=queue)
        return lambda: other.copy_from_device(memory)


class PyOpenCL(Contestant):
    """cl.Buffer, on the same context as Isthmus, for device memory only."""

    name = "pyopencl"

    def __init__(self, device: isthmus.Device) -> None:
        self._cl: Any = importlib.import_module("pyopencl")
        if device.backend != "opencl":
            raise LookupError(f"pyopencl has no {device.backend} devices")
        self._opened = isthmus.Queue(device)
        self._queue = self._cl.CommandQueue.from_int_ptr(self._opened.native_handle)
        self._context = self._cl.Context.from_int_ptr(self._opened.context.native_handle)

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        cl, queue = self._cl, self._queue
        if case.what == FENCE:
            return lambda: cl.enqueue_barrier(queue).wait()
        if case.kind != "device":
            return None

        def allocate() -> Any:
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, case.nbytes)

        if case.what == ALLOCATE:
            return allocate
        buffer = allocate()
        cl.enqueue_copy(queue, buffer, source)
        if case.what == UPLOAD:
            return lambda: cl.enqueue_copy(queue, buffer, source)
        if case.what == DOWNLOAD:
            return lambda: cl.enqueue_copy(queue, destination, buffer)
        other = allocate()
        return lambda: cl.enqueue_copy(queue, other, buffer).wait()


class CuPy(Contestant):
    """Device memory of the first CUDA device, from CuPy's pool."""

    name = "CuPy"

    def __init__(self, device: isthmus.Device) -> None:  # noqa: ARG002
        self._cupy: Any = importlib.import_module("cupy")
        self._cupy.cuda.runtime.getDeviceCount()  # raises if there is none

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        cupy = self._cupy
        if case.what == FENCE:
            return lambda: cupy.cuda.get_current_stream().synchronize()
        if case.kind != "device":
            return None
        if case.what == ALLOCATE:
            return lambda: cupy.empty(case.nbytes, cupy.uint8)
        array = cupy.asarray(source)
        if case.what == UPLOAD:
            return lambda: self._wait(array.set(source))
        if case.what == DOWNLOAD:
            return lambda: array.get(out=destination)
        other = cupy.empty_like(array)
        return lambda: self._wait(cupy.copyto(other, array))

    def _wait(self, _: object) -> None:
        self._cupy.cuda.get_current_stream().synchronize()


class PyTorch(Contestant):
    """Tensors on the GPU if PyTorch has one, else on the host."""

    name = "PyTorch"

    def __init__(self, device: isthmus.Device) -> None:  # noqa: ARG002
        self._torch: Any = importlib.import_module("torch")
        self._gpu: bool = self._torch.cuda.is_available()

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        torch = self._torch
        if case.kind != "device" or case.what == FENCE:
            return None

        def allocate() -> Any:
            device = "cuda" if self._gpu else "cpu"
            return torch.empty(case.nbytes, dtype=torch.uint8, device=device)

        if case.what == ALLOCATE:
            return allocate
        tensor = allocate().fill_(1)
        ways = {
            UPLOAD: (tensor, torch.from_numpy(source)),
            DOWNLOAD: (torch.from_numpy(destination), tensor),
            BETWEEN: (allocate(), tensor),
        }
        destination, source = ways[case.what]
        return lambda: self._copy(destination, source)

    def _copy(self, destination: Any, source: Any) -> None:
        destination.copy_(source)
        if self._gpu:
            self._torch.cuda.synchronize()


class RMM(Contestant):
    """DeviceBuffers from the driver's pool, as RMM recommends."""

    name = "RMM"

    def __init__(self, device: isthmus.Device) -> None:  # noqa: ARG002
        self._rmm: Any = importlib.import_module("rmm")
        self._memory: Any = self._rmm.mr.CudaAsyncMemoryResource()

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        stream = self._rmm.pylibrmm.stream.DEFAULT_STREAM
        if case.what == FENCE:
            return lambda: stream.synchronize()
        if case.kind != "device":
            return None

        def allocate() -> Any:
            return self._rmm.DeviceBuffer(size=case.nbytes, mr=self._memory)

        if case.what == ALLOCATE:
            return allocate
        buffer = allocate()
        buffer.copy_from_host(source)
        if case.what == UPLOAD:
            return lambda: buffer.copy_from_host(source)
        if case.what == DOWNLOAD:
            return lambda: buffer.copy_to_host(destination)
        other = allocate()
        return lambda: (other.copy_from_device(buffer), stream.synchronize())


class CudaCore(Contestant):
    """Buffers of cuda.core, from the driver's pool."""

    name = "cuda.core"

    def __init__(self, device: isthmus.Device) -> None:  # noqa: ARG002
        self._core: Any = importlib.import_module("cuda.core")
        own = self._core.Device()
        own.set_current()
        self._memory = own.memory_resource
        self._stream = own.create_stream()

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        stream, nbytes = self._stream, case.nbytes
        if case.what == FENCE:
            return lambda: stream.sync()
        if case.kind != "device":
            return None

        def allocate() -> Any:
            return self._memory.allocate(nbytes, stream=stream)

        if case.what == ALLOCATE:
            return lambda: allocate().close(stream)
        destination, source = allocate(), allocate()
        if case.what == UPLOAD:
            source = self._over(source)
        if case.what == DOWNLOAD:
            destination = self._over(destination)
        return lambda: (source.copy_to(destination, stream=stream), stream.sync())

    def _over(self, array: Any) -> Any:
        return self._core.Buffer.from_handle(array.ctypes.data, array.nbytes, owner=array)


_PEERS: tuple[type[Contestant], ...] = (NumPy, Dpctl, CuPy, PyTorch, PyOpenCL, RMM, CudaCore)


def gather(device: isthmus.Device) -> tuple[list[Contestant], dict[str, str]]:
    """Isthmus and the available peers; and the reasons for the unavailable ones."""
    contestants: list[Contestant] = [Isthmus(device)]
    absent: dict[str, str] = {}
    for peer in _PEERS:
        peer_or_reason = try_call(peer, device)
        if isinstance(peer_or_reason, str):
            absent[peer.name] = peer_or_reason
        else:
            contestants.append(peer_or_reason)
    return contestants, absent
