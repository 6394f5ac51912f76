# SPDX-License-Identifier: Apache-2.0
"""Isthmus and its peers as contestants: their functions to copy, to allocate and to wait.

All of them are measured warm: see ``first_use`` for the rest.
"""

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
ALLOCATE, FENCE = "allocate and free, without a pool", "fence and wait"
# An allocation from a pool that holds the memory already, and its free.
POOL = "allocate and free, from a pool"
# One element is written by the host, and the device copy updated; the peers copy the whole array.
UNIFIED = "unified buffer: write one element and update the device"
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
    # Whether its memory is the device's. Memory of the host is compared with host kind only.
    on_device = True

    def __init__(self, device: isthmus.Device) -> None:  # noqa: B027 (some have nothing to open)
        """Raises ImportError, or another exception with the reason, if the contestant is not
        available.
        """

    @abstractmethod
    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        """``source`` and ``destination`` are host memory, NumPy arrays of ``case.nbytes`` bytes."""

    def pool(self, case: Case) -> Work | None:  # noqa: ARG002 (most have none)
        """The function to time for a case of ``POOL``; None if there is no pool of the kind."""
        return None

    def default(self, case: Case) -> Work | None:
        """As ``work``, for a case of ``DEFAULTS``: what a peer's users write, its pool."""
        return self.pool(case)


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
            provider = isthmus.memory.ProviderResource(kind, queue.device, queue.context)
            return lambda: provider.allocate(nbytes, queue=queue)
        if case.what == UNIFIED:
            return self._write_one(nbytes)
        buffer = isthmus.Buffer(nbytes, kind=kind, queue=queue)
        buffer.fill(1)
        if case.what == UPLOAD:
            return lambda: buffer.copy_from(source)
        if case.what == DOWNLOAD:
            return lambda: buffer.copy_to(destination)
        other = isthmus.Buffer(nbytes, kind=kind, queue=queue)
        return lambda: other.copy_from(buffer)

    def _write_one(self, nbytes: int) -> Work:
        unified = isthmus.UnifiedBuffer(nbytes, "u1", queue=self._queue, separate=True)
        unified.host[:] = 1
        unified.sync_to_device()
        middle = nbytes // 2

        def write() -> None:
            unified.host[middle] = 2
            unified.sync_to_device()

        return write

    def pool(self, case: Case) -> Work | None:
        queue, nbytes = self._queue, case.nbytes
        pool = isthmus.default_pool(case.kind, queue=queue)
        return lambda: pool.allocate(nbytes, queue=queue)

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
    on_device = False

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        import numpy as np

        if case.what == FENCE:
            return None
        if case.what == ALLOCATE:
            return self.pool(case)
        return lambda: np.copyto(destination, source)

    def pool(self, case: Case) -> Work | None:
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

    def pool(self, case: Case) -> Work | None:
        """It has none: the memory comes from the driver."""
        queue, allocate = self._queue, self._classes[case.kind]
        return lambda: allocate(case.nbytes, queue=queue)


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

    def pool(self, case: Case) -> Work | None:
        if case.kind != "device":
            return None
        tools = importlib.import_module("pyopencl.tools")
        pool = tools.MemoryPool(tools.ImmediateAllocator(self._queue))
        return lambda: pool.allocate(case.nbytes)


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
            return lambda: cupy.cuda.Memory(case.nbytes)
        array = cupy.asarray(source)
        if case.what == UPLOAD:
            return lambda: self._wait(array.set(source))
        if case.what == DOWNLOAD:
            return lambda: array.get(out=destination)
        other = cupy.empty_like(array)
        return lambda: self._wait(cupy.copyto(other, array))

    def pool(self, case: Case) -> Work | None:
        cupy = self._cupy
        return (lambda: cupy.empty(case.nbytes, cupy.uint8)) if case.kind == "device" else None

    def _wait(self, _: object) -> None:
        self._cupy.cuda.get_current_stream().synchronize()


class PyTorch(Contestant):
    """Tensors on the GPU if PyTorch has one, else on the host."""

    name = "PyTorch"

    def __init__(self, device: isthmus.Device) -> None:  # noqa: ARG002
        self._torch: Any = importlib.import_module("torch")
        self.on_device: bool = self._torch.cuda.is_available()

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        torch = self._torch
        if case.kind != "device" or case.what in (FENCE, ALLOCATE):
            return None
        allocate = self._allocation(case)
        tensor = allocate().fill_(1)
        ways = {
            UPLOAD: (tensor, torch.from_numpy(source)),
            DOWNLOAD: (torch.from_numpy(destination), tensor),
            BETWEEN: (allocate(), tensor),
        }
        destination, source = ways[case.what]
        return lambda: self._copy(destination, source)

    def pool(self, case: Case) -> Work | None:
        return self._allocation(case) if case.kind == "device" else None

    def _allocation(self, case: Case) -> Callable[[], Any]:
        torch, device = self._torch, "cuda" if self.on_device else "cpu"
        return lambda: torch.empty(case.nbytes, dtype=torch.uint8, device=device)

    def _copy(self, destination: Any, source: Any) -> None:
        destination.copy_(source)
        if self.on_device:
            self._torch.cuda.synchronize()


class RMM(Contestant):
    """DeviceBuffers, from the driver's pool as RMM recommends, or from no pool."""

    name = "RMM"

    def __init__(self, device: isthmus.Device) -> None:  # noqa: ARG002
        self._rmm: Any = importlib.import_module("rmm")
        self._pool: Any = self._rmm.mr.CudaAsyncMemoryResource()
        self._memory: Any = self._rmm.mr.CudaMemoryResource()

    def work(self, case: Case, source: Any, destination: Any) -> Work | None:
        stream = self._rmm.pylibrmm.stream.DEFAULT_STREAM
        if case.what == FENCE:
            return lambda: stream.synchronize()
        if case.kind != "device":
            return None

        if case.what == ALLOCATE:
            return lambda: self._rmm.DeviceBuffer(size=case.nbytes, mr=self._memory)
        allocate = self._allocation(case)
        buffer = allocate()
        buffer.copy_from_host(source)
        if case.what == UPLOAD:
            return lambda: buffer.copy_from_host(source)
        if case.what == DOWNLOAD:
            return lambda: buffer.copy_to_host(destination)
        other = allocate()
        return lambda: (other.copy_from_device(buffer), stream.synchronize())

    def pool(self, case: Case) -> Work | None:
        return self._allocation(case) if case.kind == "device" else None

    def _allocation(self, case: Case) -> Callable[[], Any]:
        return lambda: self._rmm.DeviceBuffer(size=case.nbytes, mr=self._pool)


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
        if case.kind != "device" or case.what == ALLOCATE:
            return None
        target = self._over(destination) if case.what == DOWNLOAD else self._allocate(nbytes)
        origin = self._over(source) if case.what == UPLOAD else self._allocate(nbytes)
        return lambda: (origin.copy_to(target, stream=stream), stream.sync())

    def pool(self, case: Case) -> Work | None:
        if case.kind != "device":
            return None
        return lambda: self._allocate(case.nbytes).close(self._stream)

    def _allocate(self, nbytes: int) -> Any:
        return self._memory.allocate(nbytes, stream=self._stream)

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
