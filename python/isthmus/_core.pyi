"""The native part of isthmus."""

from typing import overload


# Written by the target isthmus_stub of python/CMakeLists.txt: do not edit.
from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from os import PathLike
from typing import Any, SupportsIndex

from numpy.typing import NDArray
from typing_extensions import Self

from ._pointer import PointerInfo
from ._pressure import OomRequest, OomStageCounts, Snapshot, TagUsage, TrackedBlock
from .memory import Allocator

__version__: str
__pyx_capi__: dict[str, Any]

class Error(Exception):
    """Base of all errors that Isthmus raises for a failed operation."""

class InvalidArgumentError(Error, ValueError):
    """
    An argument has a value that is not allowed; the message names the value and the limit.
    """

class OutOfRangeError(Error, ValueError):
    """A range exceeds a buffer, an allocation or host memory."""

class USMAllocationError(Error, MemoryError):
    """
    No memory of that kind on that device; the message names the request and the free memory.
    `snapshot` describes how the memory of the exhausted pool was divided; None if no pool was
    involved.
    """

    snapshot: Snapshot | None

class UnsupportedError(Error, RuntimeError):
    """
    Not supported by this driver or device: see Device.capabilities and Device.limitations.
    """

class WrongContextError(Error, ValueError):
    """
    Objects of different contexts were combined, or a pointer is unknown to the context.
    """

class DeviceNotFoundError(Error, ValueError):
    """
    No device or platform matches the filter; the message lists those found.
    """

class ClosedError(Error, ValueError):
    """The buffer was freed or the queue was closed."""

class ReadOnlyError(Error, BufferError, ValueError):
    """A write to memory that is marked read-only."""

class DeviceLostError(Error, RuntimeError):
    """The device was lost, and the contents of its memory with it."""

class DriverError(Error, RuntimeError):
    """A driver call failed; the message names the call and its code."""

class WaitTimeoutError(Error, TimeoutError):
    """The timeout expired. The operation continues."""

class DependencyError(Error, RuntimeError):
    """An event that the operation waited for has failed, so it did not run."""

class AbandonedError(Error, RuntimeError):
    """A host event was dropped before it was completed."""

class CallbackError(Error, RuntimeError):
    """
    A function submitted to a queue did not run, a host event was completed by fail(), or a
    CustomResource returned memory that is not of its kind. An exception of a function is
    raised unchanged.
    """

class ForkedError(Error, RuntimeError):
    """
    Driver work in a forked child: start the child with the multiprocessing method 'spawn'.
    """

class InternalError(Error, RuntimeError):
    """A bug in Isthmus: please report it."""

class ConflictError(Error, RuntimeError):
    """
    Host and device both wrote the same part of a unified buffer: see
    UnifiedBuffer.resolve().
    """

class Platform:
    """
    One vendor's driver, or the host. Listed by platforms(). Immutable; safe to use from
    any thread.
    """

    @property
    def backend(self) -> str:
        """"host", "sim", "cuda", "opencl" or "sycl"."""

    @property
    def name(self) -> str:
        """The driver's name."""

    @property
    def vendor(self) -> str:
        """The driver's vendor."""

    @property
    def version(self) -> str:
        """The driver's version."""

    @property
    def library(self) -> str:
        """The driver file that was opened, or an empty string."""

    @property
    def devices(self) -> list[Device]:
        """Its devices."""

    def __repr__(self) -> str: ...

def platforms() -> list[Platform]:
    """Every platform found. Opens every driver on the first call."""

def devices(filter: str | None = None) -> list[Device]:
    """
    Every device that matches `filter`, the best one first; None: all of them. An empty list
    if there is none. Simulated devices are listed only if the environment variable
    ISTHMUS_SIM is set or the filter names them. Opens drivers on the first call. Raises
    ValueError for a malformed filter.
    """

def absent() -> list[tuple[str, str]]:
    """
    (backend, reason) of each driver that is absent or unusable. Opens every driver on the
    first call.
    """

class Device:
    """
    A device: Device(filter=None).

    `filter` is up to three of backend ("host", "sim", "cuda", "opencl", "sycl"),
    type ("cpu", "gpu", "accelerator") and number, in that order, joined by ':'; None:
    the current device. Opens the drivers that the filter allows. Raises
    DeviceNotFoundError, which lists the devices found.

    `with device:` makes it the current one of this thread and asyncio task; this nests.
    Devices are equal if they represent the same device. They are pickled by their filter
    and may be used from any thread.
    """

    def __init__(self, filter: str | Device | None = None) -> None: ...

    @staticmethod
    def from_sycl(obj: Any) -> Device:
        """
        Converts a dpctl object, or a capsule of one, which is not consumed: the result
        represents the same SYCL object. Raises TypeError for other objects, DeviceNotFoundError
        if there is no SYCL, ValueError for a sub-device and for a device without USM.
        """

    @staticmethod
    def from_handle(handle: int, backend: str) -> Device:
        """
        The device of a backend that has this driver handle (OpenCL: cl_device_id;
        SYCL: addressof_ref() of a dpctl.SyclDevice). It must be a live handle. Raises
        DeviceNotFoundError for a device that is not listed, and where devices have no
        handles.
        """

    @property
    def name(self) -> str:
        """The driver's name of the device."""

    @property
    def vendor(self) -> str:
        """Its vendor."""

    @property
    def driver_version(self) -> str:
        """Version of its driver."""

    @property
    def backend(self) -> str:
        """"host", "sim", "cuda", "opencl" or "sycl"."""

    @property
    def filter(self) -> str:
        """
        A filter string that identifies this device, for example "opencl:cpu:0".
        """

    @property
    def type(self) -> str:
        """"cpu", "gpu" or "accelerator"."""

    @property
    def platform(self) -> Platform:
        """The platform it belongs to."""

    @property
    def compute_units(self) -> int:
        """Number of its compute units."""

    @property
    def copy_engines(self) -> int:
        """Number of copies that it can execute concurrently with kernels."""

    @property
    def capabilities(self) -> frozenset[str]:
        """
        Names of its capabilities: the flags ISTHMUS_CAN_* of isthmus.h in lower case.
        """

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of memory it supports, of "device", "shared", "host"."""

    @property
    def total_memory(self) -> int:
        """Size of its memory, in bytes."""

    @property
    def max_allocation(self) -> int:
        """The largest single allocation, in bytes."""

    @property
    def base_alignment(self) -> int:
        """Alignment in bytes of an allocation that requests none."""

    @property
    def max_alignment(self) -> int:
        """The largest alignment that can be requested, in bytes."""

    @property
    def limitations(self) -> str:
        """
        Features that its driver lacks, with their substitutes, or an empty string.
        """

    @property
    def default_queue(self) -> Queue:
        """
        The default queue on its default context, shared by all threads; always the same one.
        """

    @property
    def default_context(self) -> Context:
        """The default context, which the devices of its platform share."""

    @property
    def native_handle(self) -> int:
        """
        The driver's handle as an integer (OpenCL: cl_device_id), 0 if the driver has none.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def memory_info(self) -> tuple[int, int]:
        """
        (free, total) bytes of its memory now. Raises UnsupportedError where the driver
        does not report it.
        """

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

class Context:
    """
    A context: Context(devices=None). USM belongs to a context, whose devices can access it.

    `devices`: a Device or filter string or a list of them, of one platform; None: the current
    device. This creates a new context; Device.default_context is used unless another context
    is named. Contexts are equal if they represent the same driver context, and may be used
    from any thread.
    """

    def __init__(self, devices: Device | str | list[Device] | None = None) -> None: ...

    @staticmethod
    def from_sycl(obj: Any) -> Context:
        """
        Converts a dpctl object, or a capsule of one, which is not consumed: the result
        represents the same SYCL object. Raises TypeError for other objects, DeviceNotFoundError
        if there is no SYCL, ValueError for a sub-device and for a device without USM.
        """

    def _get_capsule(self) -> Any:
        """
        For dpctl: a capsule of the SYCL object. Raises TypeError on other backends.
        """

    @staticmethod
    def from_handle(handle: int, device: Device | str, owner: object = None) -> Context:
        """
        Adopts a driver's context (OpenCL: cl_context; CUDA: the primary one) of `device`'s
        platform. It is kept alive by `owner` if passed, else by the driver's own reference
        count. Raises UnsupportedError where contexts have no handles.
        """

    def share_with(self, device: Device | str = 'opencl') -> Context:
        """
        The same driver context in another backend: a SYCL context on OpenCL as a context of
        `device`, so that memory of dpctl can be used by pyopencl and Isthmus without a copy
        (`Buffer.adopt`). Raises UnsupportedError for other backends and where the SYCL
        library exports no native handles, WrongContextError if `device` is not one of its
        devices.
        """

    @property
    def devices(self) -> list[Device]:
        """Its devices."""

    @property
    def native_handle(self) -> int:
        """
        The driver's handle as an integer (OpenCL: cl_context), 0 if the driver has none.
        Valid while this object exists.
        """

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class Event:
    """
    The completion of an operation. Event() creates a host event, which the program itself
    completes. If a host event is dropped before that, it fails with AbandonedError, so that
    no queue waits indefinitely. Safe to use from any thread.
    """

    def __init__(self) -> None: ...

    @staticmethod
    def from_sycl(obj: Any) -> Event:
        """
        Converts a dpctl object, or a capsule of one, which is not consumed: the result
        represents the same SYCL object. Raises TypeError for other objects, DeviceNotFoundError
        if there is no SYCL, ValueError for a sub-device and for a device without USM.
        """

    def _get_capsule(self) -> Any:
        """
        For dpctl: a capsule of the SYCL object. Raises TypeError on other backends.
        """

    def wait(self, timeout: float | None = None) -> None:
        """
        Waits until the operation has completed, for at most `timeout` seconds (None:
        indefinitely; 0 polls), and raises its error if it failed. Releases the interpreter's
        lock; Ctrl-C interrupts the wait, not the operation. Raises WaitTimeoutError.
        """

    @staticmethod
    def wait_for(events: Sequence[Event]) -> None:
        """
        Waits for all events, then raises the first failure, in the order of the sequence.
        """

    @property
    def done(self) -> bool:
        """
        Whether the operation has completed, successfully or not. Does not block.
        """

    @property
    def status(self) -> str:
        """"pending", "complete" or "failed"."""

    @property
    def error(self) -> BaseException | None:
        """The exception that wait() would raise, None if there is none (yet)."""

    @property
    def times(self) -> tuple[int, int, int] | None:
        """
        (submitted, started, ended) in nanoseconds of the device's clock; None before
        completion and where the driver does not record them.
        """

    def elapsed_since(self, earlier: Event) -> int:
        """
        Nanoseconds from the end of `earlier` to the end of this event, on their device's
        clock; negative if this event completed first. Both must be events of
        Queue.mark(), on queues of one device. Waits for both, and raises their errors.
        Raises UnsupportedError for events without times, InvalidArgumentError for those of
        two devices.
        """

    @property
    def native_handle(self) -> int:
        """
        The driver's handle as an integer (OpenCL: cl_event), 0 if the driver has none. Valid
        while this object exists.
        """

    def __repr__(self) -> str: ...

    def complete(self) -> None:
        """
        Completes a host event. Raises ValueError for an operation's event or a completed one.
        """

    def fail(self, message: str) -> None:
        """
        Completes a host event with a CallbackError. Operations that wait for it on a queue
        do not run and fail with DependencyError. Raises ValueError as complete() does.
        """

    def _notify(self, descriptor: int) -> None:
        """Writes 8 bytes to a copy of a file descriptor on completion."""

    def __await__(self) -> Generator[Any, None, None]:
        """
        `await event` in asyncio: like wait(), without blocking the loop or a thread. Any
        number of tasks may await the same event; cancelling one does not affect the
        operation.
        """

class Queue:
    """
    A queue: Queue(device=None, *, context=None). Its operations run one after the other.

    `device`: a Device, a filter string, or a Context, which means its first device; None:
    the current device. `context` None: the device's default one. Every call creates a new
    queue; Device.default_queue is the shared one. Raises DeviceNotFoundError, and
    WrongContextError for a device that is not in the context.

    `with queue:` makes it, and its device, the current one of this thread and asyncio task;
    this nests. Queues are equal if they represent the same driver queue, and may be used
    from any thread.
    """

    def __init__(self, device: Device | str | Context | None = None, *, context: Context | None = None) -> None: ...

    @staticmethod
    def from_sycl(obj: Any) -> Queue:
        """
        Converts a dpctl object, or a capsule of one, which is not consumed: the result
        represents the same SYCL object. Raises TypeError for other objects, DeviceNotFoundError
        if there is no SYCL, ValueError for a sub-device and for a device without USM.
        """

    def _get_capsule(self) -> Any:
        """
        For dpctl: a capsule of the SYCL object. Raises TypeError on other backends.
        """

    @staticmethod
    def from_handle(handle: int, device: Device | str, owner: object = None) -> Queue:
        """
        Adopts a driver's queue (OpenCL: cl_command_queue) of `device`'s platform. If it is
        out of order, every operation is enclosed by barriers. It is kept alive by `owner`
        if passed, else by the driver's own reference count. Raises UnsupportedError where
        queues have no handles.
        """

    @staticmethod
    def from_stream(stream: Any, device: Device | str | None = None) -> Queue:
        """
        Adopts a CUDA stream of another library, which it keeps alive: an object with
        __cuda_stream__ (cuda.core, a Queue), a stream of PyTorch or CuPy. `device` None:
        the device of the stream; for a default stream that does not report one, the current
        device if it is a CUDA device, else "cuda:0". Operations are ordered with external
        work on the stream. Raises TypeError for other objects, WrongContextError for a stream
        of another device.

        The per-thread default stream is the calling thread's. Its queue may be used on any
        thread: from other threads its operations go to the legacy default stream, which has
        the same order. Adopting it again on its thread returns the same queue.
        """

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

    @property
    def device(self) -> Device:
        """Its device."""

    @property
    def context(self) -> Context:
        """Its context."""

    @property
    def sycl_device(self) -> Device:
        """dpctl's name for `device`."""

    @property
    def sycl_context(self) -> Context:
        """dpctl's name for `context`."""

    @property
    def backend(self) -> str:
        """"host", "sim", "cuda", "opencl" or "sycl"."""

    @property
    def is_in_order(self) -> bool:
        """Always True."""

    @property
    def idle(self) -> bool:
        """Whether no operation that Isthmus submitted is pending."""

    @property
    def native_handle(self) -> int:
        """
        The driver's handle as an integer (OpenCL: cl_command_queue; SYCL: dpctl's reference),
        0 if the driver has none. Valid while this object exists. After it was read, Isthmus
        assumes that the queue may have external work.
        """

    def __cuda_stream__(self) -> tuple[int, int]:
        """
        (0, handle), for libraries that accept CUDA streams; counts as reading
        `native_handle`. Raises TypeError for a queue of another backend.
        """

    def wait(self, timeout: float | None = None) -> None:
        """
        Waits for all work submitted so far, for at most `timeout` seconds (None:
        indefinitely). Errors of operations are reported by their own events. Releases the
        interpreter's lock; Ctrl-C interrupts. Raises WaitTimeoutError.
        """

    def mark(self) -> Event:
        """
        An event that completes after all work submitted so far has completed, and records
        the time, for Event.elapsed_since.
        """

    def close(self) -> None:
        """
        Rejects further work with ClosedError; submitted work still runs. Never blocks. Raises
        ValueError for the default queue of a device, which cannot be closed.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def fence(self, after: Event | Sequence[Event] = ()) -> Event:
        """
        An event that completes after all work submitted so far, and all of `after`, has
        completed.
        """

    def submit(self, fn: Callable[..., object], *buffers: Buffer, after: Event | Sequence[Event] = ()) -> Event:
        """
        Runs fn(*views) in the queue's order, on a library thread, with a memoryview of the
        bytes of each buffer. Returns its event at once.

        The views, writable unless the buffer is read-only, are valid only during the call: a
        function that retains one, or an array created from it, fails with BufferError. An
        exception of `fn` is raised by event.wait(), as the same object; later work on the
        queue continues. `fn` must not wait for later work on the queue. It sees the
        contextvars of the caller. Buffers of device kind need the capability
        "run_functions" (UnsupportedError). When the interpreter ends, functions that have
        not begun fail with CallbackError, and running functions are waited for.
        """

    def copy(self, dst: object, src: object, nbytes: int | None = None, *, dst_offset: int = 0, src_offset: int = 0, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies bytes between any two endpoints on this queue; see Buffer.copy_from.
        """

    def copy_2d(self, dst: object, src: object, width: int, height: int, *, dst_pitch: int | None = None, src_pitch: int | None = None, dst_offset: int = 0, src_offset: int = 0, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies `height` rows of `width` bytes on this queue; see Buffer.copy_from_2d.
        """

    def fill(self, dst: object, value: object = 0, *, offset: int = 0, nbytes: int | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """Fills `dst` on this queue; see Buffer.fill."""

    def memcpy(self, dest: object, src: object, count: int) -> None:
        """
        dpctl's name for a blocking copy() of `count` bytes. Raises OutOfRangeError past
        either end.
        """

    def memcpy_async(self, dest: object, src: object, count: int, dEvents: Sequence[Event] | None = None) -> Event:
        """
        dpctl's name for copy(blocking=False), after the events `dEvents`. Source and
        destination are kept alive until it has completed.
        """

    def prefetch(self, buf: Buffer, count: int = 0) -> None:
        """
        Buffer.prefetch of the first `count` bytes; 0, or more than there are, means all.
        Blocks.
        """

    def mem_advise(self, buf: Buffer, count: int, advice: int) -> None:
        """
        Buffer.advise of the first `count` bytes; 0, or more than there are, means all. Blocks.
        """

def current_device() -> Device:
    """
    The device that `with device:` or `with queue:` set for this thread and asyncio task,
    else the default one: the environment variable ISTHMUS_DEVICE, else the best device with
    USM. Opens drivers on the first call. Raises DeviceNotFoundError.
    """

def current_queue() -> Queue:
    """
    The queue that `with queue:` set for this thread and asyncio task, else the
    default queue of the current device. Opens drivers on the first call. Raises
    DeviceNotFoundError.
    """

class Budget:
    """
    Limits the memory, in use and free, that several pools together hold of their drivers:
    Budget(limit, device=None, kind="device"), passed to PoolResource(..., budget=...).

    `limit` is in bytes, or text: "2GiB", or "80%" of the memory of `kind` that `device`
    has. A pool that would exceed the limit first releases its own free memory, then requests
    that the other pools release free memory, and finally raises USMAllocationError, which
    lists the bytes that each pool holds. Small and recently freed blocks in the caches of
    threads other than the requesting one do not count as free. Safe to use from any thread.
    """

    def __init__(self, limit: int | str, device: Device | str | None = None, kind: str = 'device') -> None: ...

    @property
    def limit_bytes(self) -> int:
        """The most bytes that its pools may hold together."""

    @property
    def held_bytes(self) -> int:
        """
        Bytes that its pools hold, and those of destroyed pools with blocks still in use.
        """

    @property
    def free_bytes(self) -> int:
        """Held bytes that no buffer, thread or size class uses."""

    @property
    def peak_held_bytes(self) -> int:
        """The maximum of held_bytes so far."""

    @property
    def pools(self) -> int:
        """Number of live pools."""

    @property
    def refusals(self) -> int:
        """Number of pool requests that did not fit at once."""

    @property
    def released_bytes(self) -> int:
        """
        Bytes that pools have released for other pools so
        far.
        """

    def __repr__(self) -> str: ...

class MemoryResource:
    """
    Allocates memory of one kind, in one context, on one device: the base of all resources.
    Used as Buffer(nbytes, resource=...); safe to use from any thread. It lives as long as its
    memory. To implement a resource, use CustomResource rather than a subclass.
    """

    @property
    def kind(self) -> str:
        """The kind of its memory."""

    @property
    def queue(self) -> Queue:
        """The queue of buffers that are created from it without a queue."""

    @property
    def device(self) -> Device:
        """The device that the resource allocates for."""

    @property
    def context(self) -> Context:
        """The context that its memory belongs to."""

    @property
    def held_bytes(self) -> int:
        """
        Bytes of the driver's memory that the resource holds; a provider holds none.
        """

    @property
    def free_bytes(self) -> int:
        """Held bytes that no buffer, thread or size class uses."""

    @property
    def maps(self) -> int:
        """
        How often the driver allocated memory for it, or mapped memory at another address.
        """

    @property
    def unmaps(self) -> int:
        """
        How often memory was returned to the driver, or unmapped from its address.
        """

    def verify(self) -> None:
        """
        Checks all records of this resource and its upstreams. Raises ValueError with the
        errors that a DebugResource detected, now or before, InternalError if a pool's
        records are inconsistent. Slow.
        """

    def trim(self, keep_bytes: int | str = 0) -> int:
        """
        Returns free memory to the driver while more than `keep_bytes` are held. The result
        is the number of bytes returned. Memory in thread caches counts as free.
        """

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

    def allocate(self, nbytes: int, alignment: int = 0, queue: Queue | None = None) -> Buffer:
        """
        Buffer(nbytes, kind=..., queue=queue, alignment=alignment, resource=self).
        `alignment` 0: the device's default. Raises ValueError if it is neither 0 nor a power
        of two.
        """

class ProviderResource(MemoryResource):
    """
    The driver's own allocator: ProviderResource(kind="device", device=None, context=None,
    write_combined=False).

    `device` None: the first device of `context`, else the current device; `context` None: the
    device's default one. `write_combined`, for kind "host": memory that bypasses the host's
    caches, for data that the host writes once, in order, and devices read. Reading it on the
    host takes some hundred times as long. Raises UnsupportedError for a kind that the device
    does not have, and for write-combined memory without the capability "write_combine".
    """

    def __init__(self, kind: str = 'device', device: Device | str | None = None, context: Context | None = None, *, write_combined: bool = False) -> None: ...

class PoolResource(MemoryResource):
    """
    Caches freed memory for later requests: PoolResource(kind="device", device=None,
    context=None, *, initial_bytes=0, growth_bytes=None, limit_bytes=None, checked=True,
    remap=True, soft_limit_bytes=None, budget=None, decay=None, wait=1.0,
    device_wait=False), or PoolResource(upstream, *, ...) with the same arguments except
    remap.

    `device` and `context` are those of ProviderResource. The pool requests `initial_bytes`
    from the driver at once, and later at least `growth_bytes` per request (None: 32 MiB, or
    1/128 of the held bytes if its memory can move). It never holds more than `limit_bytes`
    (None: no limit). Beyond `soft_limit_bytes` it returns all free memory before it grows,
    and then grows by no more than is needed. Sizes are integers or text: "64MiB", "2GiB",
    or "80%" of the device's memory or, for memory that resides on the host, of the host
    memory that the process may use. `budget`, a Budget, is shared with other pools. Free
    memory that was unused for `decay` seconds (None: never) is returned within twice that
    time: when the pool grows or is trimmed, or on an idle library thread if there is one. A
    request without memory waits for at most `wait` seconds (0: not at all; a year at most,
    because a wait without a limit may deadlock) for the work that uses freed memory, with the
    interpreter's lock released. With `device_wait=True` the queue first waits for such work
    on the device, so that the host need not.

    `checked=False` does not check for misuse of small blocks. If the device has the
    capability "remap", free memory is remapped to serve larger requests, unless
    remap=False. Requests up to 256 KiB take at most 1/8 more than their size; larger ones are
    rounded up to 64 KiB. Memory freed after work on a queue is reused at once on that queue,
    and elsewhere after the work has completed. Raises USMAllocationError if the driver has
    too little memory or a limit is reached, UnsupportedError as ProviderResource does.

    With `upstream`, for example a CustomResource, the pool obtains its memory from that
    instead of the driver, with its kind, device and context, and the memory does not move.
    UnsupportedError for an upstream that uses a pool, allocates memory of several kinds, or
    is monotonic.
    """

    @overload
    def __init__(self, kind: str = 'device', device: Device | str | None = None, context: Context | None = None, *, initial_bytes: int | str = 0, growth_bytes: int | str | None = None, limit_bytes: int | str | None = None, checked: bool = True, remap: bool = True, soft_limit_bytes: int | str | None = None, budget: Budget | None = None, decay: float | None = None, wait: float = 1.0, device_wait: bool = False) -> None: ...

    @overload
    def __init__(self, upstream: MemoryResource, *, initial_bytes: int | str = 0, growth_bytes: int | str | None = None, limit_bytes: int | str | None = None, checked: bool = True, soft_limit_bytes: int | str | None = None, budget: Budget | None = None, decay: float | None = None, wait: float = 1.0, device_wait: bool = False) -> None: ...

    @property
    def limit_bytes(self) -> int | None:
        """The most bytes that the pool may hold; None: no limit."""

    @property
    def soft_limit_bytes(self) -> int | None:
        """
        Before the pool grows beyond this size, it returns free memory; None: no such limit.
        """

    @property
    def budget(self) -> Budget | None:
        """The budget that the pool shares with other pools."""

    @property
    def decay(self) -> float | None:
        """
        Seconds after which unused free memory is returned to the driver; None: never.
        """

    @property
    def wait(self) -> float:
        """The most seconds that a request waits for freed memory."""

    @property
    def upstream(self) -> MemoryResource | None:
        """The resource that the pool obtains memory from; None: the driver."""

    def snapshot(self) -> Snapshot:
        """
        Describes how the pool's memory is divided now. Takes some milliseconds if the pool
        is very large.
        """

    @property
    def oom_stages(self) -> dict[str, OomStageCounts]:
        """
        For each out-of-memory stage, how often it was tried and how often it satisfied the
        request. In the order in which they are tried: "collect", "collect_idle", "grow",
        "trim", "budget", "device_wait", "callback", "wait".
        """

    def __repr__(self) -> str: ...

class AdaptorResource(MemoryResource):
    """
    Base of the resources over one upstream, which have its kind, device, context and queue.
    Memory that an adaptor allocates is returned to it, and through it to its upstream.
    """

    @property
    def upstream(self) -> MemoryResource:
        """The resource that this one obtains its memory from."""

class StatisticsScope:
    """
    Counts allocations from a StatisticsResource within `with resource.statistics() as s:`, by
    this thread or asyncio task and by tasks started within it, and the release of that
    memory, wherever and whenever it happens. Scopes nest: outer scopes include the counts of
    inner ones. May be read at any time, on any thread. A scope can be entered once.
    Allocations of native code count in the scopes that it entered through the C interface;
    Buffers created meanwhile count there if no Python scope is entered.
    """

    @property
    def current_bytes(self) -> int:
        """The requested bytes of live allocations."""

    @property
    def current_count(self) -> int:
        """Number of live allocations."""

    @property
    def peak_bytes(self) -> int:
        """The maximum of current_bytes so far."""

    @property
    def peak_count(self) -> int:
        """The maximum of current_count so far."""

    @property
    def total_bytes(self) -> int:
        """Bytes of all allocations so far."""

    @property
    def total_count(self) -> int:
        """Number of allocations so far."""

    def _net(self) -> tuple[int, int, int, int, int, int]:
        """
        The same counts, minus memory allocated outside of the scope and freed within it.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

class StatisticsResource(AdaptorResource):
    """
    Counts the allocations that go through it: StatisticsResource(upstream).

    Counts are exact, also with several threads. A Buffer counts until it is freed, even if
    its memory is returned later, after pending work has completed.
    """

    def __init__(self, upstream: MemoryResource) -> None: ...

    @property
    def current_bytes(self) -> int:
        """The requested bytes of live allocations."""

    @property
    def current_count(self) -> int:
        """Number of live allocations."""

    @property
    def peak_bytes(self) -> int:
        """The maximum of current_bytes so far."""

    @property
    def peak_count(self) -> int:
        """The maximum of current_count so far."""

    @property
    def total_bytes(self) -> int:
        """Bytes of all allocations so far."""

    @property
    def total_count(self) -> int:
        """Number of allocations so far."""

    def reset(self) -> None:
        """Sets the peaks to the current counts and the totals to 0."""

    def statistics(self) -> StatisticsScope:
        """Returns a scope to enter: `with resource.statistics() as s:`."""

class LimitResource(AdaptorResource):
    """
    Limits the bytes that are live at a time: LimitResource(upstream, limit_bytes).

    A request that would exceed the limit, in bytes as requested, raises USMAllocationError,
    which names the request, the limit and the bytes in use. The limit is an integer or text:
    "4GiB", or "80%" of the device's memory or, for memory that resides on the host, of
    the host memory that the process may use.
    """

    def __init__(self, upstream: MemoryResource, limit_bytes: int | str) -> None: ...

    @property
    def limit_bytes(self) -> int:
        """The maximum of in_use_bytes."""

    @property
    def in_use_bytes(self) -> int:
        """The requested bytes of live allocations."""

class FallbackResource(AdaptorResource):
    """
    Uses a second resource when the first has no memory: FallbackResource(first, second).

    The second must be of the same context (WrongContextError). It may be of another kind; the
    `kind` of a Buffer is that of its memory.
    """

    def __init__(self, first: MemoryResource, second: MemoryResource) -> None: ...

    @property
    def second(self) -> MemoryResource:
        """The resource that is used when `upstream` has no memory."""

class AlignedResource(AdaptorResource):
    """
    Aligns requests of at least `min_bytes` to `alignment`, a power of two, or to more if
    requested: AlignedResource(upstream, alignment, min_bytes=0). Both are integers or text:
    "4KiB".
    """

    def __init__(self, upstream: MemoryResource, alignment: int | str, min_bytes: int | str = 0) -> None: ...

class BinningResource(AdaptorResource):
    """
    Chooses a resource by size: BinningResource(upstream, {256: small, "64KiB": medium}).

    A request is served by the resource with the smallest size that it does not exceed, else
    by upstream. All must belong to one context (else WrongContextError), and may be of any
    kind.
    """

    def __init__(self, upstream: MemoryResource, bins: dict[int, MemoryResource] | dict[str, MemoryResource] | dict[int | str, MemoryResource]) -> None: ...

    @property
    def bins(self) -> dict[int, MemoryResource]:
        """A copy of the dictionary, with sizes in bytes."""

class PrefetchResource(AdaptorResource):
    """
    Requests that the driver move shared memory to the device when it is allocated:
    PrefetchResource(upstream).

    The request is submitted to the Buffer's queue. It is a hint: it does nothing for other
    kinds, nor on a device without the capability "prefetch", and errors of the driver are
    ignored.
    """

    def __init__(self, upstream: MemoryResource) -> None: ...

class LogResource(AdaptorResource):
    """
    Writes a row for each allocation, failure and free to a CSV file, in the columns of
    RMM's logs: LogResource(upstream, path).

    Thread,Time,Action,Pointer,Size,Stream. An existing file is truncated. Rows are written
    some thousands at a time, by flush(), with the last reference, and when the process
    exits. Raises InvalidArgumentError for a file that cannot be created, or that another
    log, of this process or another one, is writing to.
    """

    def __init__(self, upstream: MemoryResource, path: str | PathLike[str]) -> None: ...

    def flush(self) -> None:
        """
        Writes all rows up to the first free that is in progress on another thread. Raises
        DriverError, once, if rows were lost since the last call because the file could not
        be written.
        """

class CustomResource(MemoryResource):
    """
    A resource implemented in Python: CustomResource(allocator, kind="device", device=None,
    context=None).

    `allocator.allocate(nbytes, alignment, queue)` returns the address of memory of that kind,
    or raises MemoryError if it has none left. `allocator.deallocate(pointer, nbytes, queue)`
    releases it after all work on it has completed, and must not wait for work on a queue. Its
    exceptions go to sys.unraisablehook. Both are called on any thread, also concurrently, but
    not while the interpreter ends or in a forked child. Two methods are optional: `usage()`
    returns (held, free) bytes, and `trim(keep_bytes)` the bytes released. `device` and
    `context` are those of ProviderResource.

    Exceptions of allocate are raised by Buffer(). Exceptions of usage and trim are raised to
    the caller whose request called them. The result of allocate is checked: CallbackError for
    0, for an address that is not aligned, and for memory that is not of this kind and device
    as far as the driver can tell. It may return the address of a part of a Buffer, which then
    lives as long as the part. Buffers that these methods create come from the driver unless
    they name a resource.

    The allocator lives as long as the resource and its memory. An object that holds its own
    resource is never collected: make the allocator a separate object.
    """

    def __init__(self, allocator: Allocator, kind: str = 'device', device: Device | str | None = None, context: Context | None = None) -> None: ...

    @property
    def allocator(self) -> Allocator:
        """The object whose methods it calls."""

class FailureCallbackResource(AdaptorResource):
    """
    Calls a function when there is no memory: FailureCallbackResource(upstream, function).

    `function(nbytes)` is called on the requesting thread, with no lock held. It may free and
    allocate (from the driver unless a resource is named), and returns whether to try again.
    An exception that it raises fails the request. The function lives as long as the resource
    and its memory: a method of an object that holds the resource keeps both alive
    indefinitely.
    """

    def __init__(self, upstream: MemoryResource, function: Callable[[int], bool]) -> None: ...

class tag:
    """
    `with isthmus.tag("layer1"):` - allocations of this thread or asyncio task, and of tasks
    started within it, are reported under this name: by TrackingResource.live() and report(),
    and as a holder in the snapshot of an exhausted pool. The innermost tag applies. An object
    may be entered many times.
    """

    def __init__(self, name: str) -> None: ...

    @property
    def name(self) -> str:
        """The name as it was passed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def __repr__(self) -> str: ...

class TrackingResource(AdaptorResource):
    """
    Records every live block that was allocated through it: TrackingResource(upstream,
    frames=0, native_frames=0).

    Records the requested size, queue, tag, thread and order; with `frames` also that many of
    the innermost Python frames, with `native_frames` those of native code; at most 64 each. A
    free of an unknown block is rejected. Costs some ten nanoseconds an allocation without
    frames, however many blocks are live, and 64 to 256 bytes for each.
    """

    def __init__(self, upstream: MemoryResource, frames: int = 0, native_frames: int = 0) -> None: ...

    def live(self) -> list[TrackedBlock]:
        """
        The live blocks that were allocated since the last reset, the oldest first.
        """

    def usage_by_tag(self) -> dict[str, TagUsage]:
        """
        For each isthmus.tag that memory was allocated under, most live bytes first: the live
        bytes, their peak, and the total so far. Allocations without a tag are not counted.
        """

    def report(self) -> str:
        """
        A text about these blocks, grouped by stack and tag of their allocation, most bytes
        first.
        """

    def reset(self) -> None:
        """
        Blocks that are live now are no longer reported, but can still be freed. In the usage
        of tags the peaks are set to the live bytes, and the totals to 0.
        """

class MonotonicResource(AdaptorResource):
    """
    Allocates consecutive blocks from chunks of its upstream, and releases the chunks
    together: MonotonicResource(upstream, first_bytes=0).

    For memory that is allocated in steps and released together. The first chunk has
    `first_bytes` (0: 64 KiB). Each further chunk has twice the size of the previous one, or
    the size that the request needs. Freeing a Buffer returns nothing. A chunk is returned by
    release(), or when the resource is destroyed, once no Buffer lies in it and the work on it
    has completed. Raises UnsupportedError for an upstream that allocates memory of several
    kinds.

    As a context manager, it calls release() on exit.
    """

    def __init__(self, upstream: MemoryResource, first_bytes: int | str = 0) -> None: ...

    def release(self) -> None:
        """Releases all chunks: the next allocation comes from a new one."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

class FixedSizeResource(AdaptorResource):
    """
    Allocates blocks of one size from slabs of its upstream: FixedSizeResource(upstream,
    block_bytes, blocks=0).

    A slab has `blocks` blocks (0: 1 MiB of them, at least 8). A larger Buffer raises
    InvalidArgumentError: use a BinningResource to serve it from another resource. A block
    that is freed after work on a queue is reused at once on that queue, and elsewhere after
    the work has completed. Slabs that are entirely free are returned by trim(), and when a
    request of any resource would otherwise fail. Raises UnsupportedError for an upstream that
    allocates memory of several kinds.
    """

    def __init__(self, upstream: MemoryResource, block_bytes: int | str, blocks: int = 0) -> None: ...

    @property
    def block_bytes(self) -> int:
        """The size of the largest Buffer that the resource allocates."""

class ArenaResource(AdaptorResource):
    """
    Allocates from superblocks that threads do not share: ArenaResource(upstream,
    limit_bytes=0).

    Each thread has an arena for each queue. An arena without enough free memory obtains
    another superblock, of 1 MiB or the size that the request needs, and does not search other
    arenas; a PoolResource does, and is nearly always the better choice. Superblocks that
    are entirely free are returned by trim(), and before memory runs out. They hold at most
    `limit_bytes` (0: no limit). Raises UnsupportedError for an upstream that
    allocates memory of several kinds.
    """

    def __init__(self, upstream: MemoryResource, limit_bytes: int | str = 0) -> None: ...

class DebugResource(AdaptorResource):
    """
    Detects writes outside of blocks and to freed blocks: DebugResource(upstream,
    kept_bytes='16MiB').

    For programs under test. Each block lies between red zones of 64 bytes, or of its
    alignment if that is more. `kept_bytes` of freed blocks are poisoned, and retained for a
    while to detect such writes. An allocation waits for its queue, and memory is returned
    once nothing uses it. Detected writes are reported on the standard error stream, and
    raised by verify(). Raises UnsupportedError for an upstream that may allocate device
    memory, which the host cannot inspect.
    """

    def __init__(self, upstream: MemoryResource, kept_bytes: int | str = '16MiB') -> None: ...

def live(kind: str | None = None) -> tuple[int, int]:
    """
    (allocations, bytes) that are live in this process, of one kind (None: all). Memory of
    default pools counts by block in use, with its bytes as the pool rounds them. For other
    pools, all memory that they hold of the driver counts, in use or free. Memory whose
    release waits for work in flight counts.
    """

def query(pointer: int, *, context: Context | None = None) -> PointerInfo:
    """
    Returns information about an address, which may lie inside of a buffer: the whole
    block of a buffer belongs to it. For an address that the library does not know, the
    driver of `context` is queried, if that is passed; memory of other contexts is then
    unknown. Raises ValueError if `pointer` is not an address.
    """

class OomCallback:
    """
    An out-of-memory callback: OomCallback(function).

    Until it is closed or dropped, `function(request)`, with an OomRequest, is called before a
    request of any pool waits for memory or raises USMAllocationError, and before a request to
    the driver without a pool raises it. It is called on the requesting thread, by several
    threads at once if several request memory, after the callbacks that were created before,
    and after Python's garbage collection. It may allocate (from the driver unless a resource
    is named) and free, and is not called from within another such function. It must not take
    a lock that a thread may hold while it requests memory or closes the callback. It returns
    the approximate number of bytes that it freed, or None for 0. Its exceptions go to
    sys.unraisablehook.

    May be used as a context manager: `with OomCallback(cache.drop):`.
    """

    def __init__(self, function: Callable[[OomRequest], int | None]) -> None: ...

    def close(self) -> None:
        """
        Stops the calls: waits until calls in progress have returned, unless close() is
        called from within such a function. Ctrl-C ends the wait; a call may then still run.
        Closing twice does nothing. Dropping an OomCallback does not wait.
        """

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def __repr__(self) -> str: ...

class using:
    """
    `with isthmus.using(resource):` - `resource` serves buffers of its kind, context and
    device (host kind: any device) that name no resource, in this thread or asyncio task and
    in tasks started within it. Nests; other resources are unaffected. Functions that a
    resource calls (of an allocator, or a failure callback) run outside of any such scope.
    """

    def __init__(self, resource: MemoryResource) -> None: ...

    def __enter__(self) -> MemoryResource: ...

    def __exit__(self, *exc: object) -> None: ...

def set_resource(resource: MemoryResource) -> None:
    """
    From now on `resource` serves buffers of its kind, context and device (host kind: any
    device) that name no resource, in every thread; `using` takes precedence. A
    ProviderResource selects the driver's own memory, default_pool(kind, use='buffers')
    restores the initial state.
    """

def current_resource(kind: str = 'device', device: Device | str | None = None, queue: Queue | None = None) -> MemoryResource | None:
    """
    The resource that Buffer(nbytes, kind=kind, device=device, queue=queue) would use; None:
    the default pool.
    """

def _replay(resource: MemoryResource, queues: tuple[Queue, ...], events: Any, samples: Any | None) -> tuple[int, int, int]:
    """isthmus_resource_replay; returns (ns, maps, unmaps)."""

class Buffer:
    """
    One USM allocation: untyped bytes that a host and its devices share.

    Buffer(nbytes, *, kind="device", device=None, queue=None, alignment=0, resource=None)

    `nbytes` may be 0. `kind`: "device" (device only), "shared" (migrates to where it is
    used) or "host" (host memory that devices can access). `device` (a Device or filter
    string) or `queue`: the location of the memory; neither: the current queue. `alignment` in
    bytes: a power of two; 0 or less: the device's default. `resource`: the resource to
    allocate from; None: the current one (isthmus.using), else the default pool. If a resource
    is passed, its kind is the default. The bytes have no defined values at first.

    Raises ValueError for a negative size or a bad alignment or kind, USMAllocationError (a
    MemoryError) if there is no memory, whatever the size, UnsupportedError for a kind that
    the device does not have.

    buf[100:200] is a view that keeps `buf` alive. memoryview(buf) and numpy.asarray(buf)
    access shared and host kinds without a copy, after the work pending on the buffer has
    completed. Safe to use from any thread. Operations on one queue run in the order of their
    calls. An operation also waits for those on this buffer that were submitted to other
    queues before.
    """

    def __init__(self, nbytes: int, *, kind: str = 'device', device: Device | str | None = None, queue: Queue | None = None, alignment: int = 0, resource: MemoryResource | None = None) -> None: ...

    def __len__(self) -> int: ...

    def __getitem__(self, key: slice) -> Self:
        """A view of the bytes of a slice of step 1. The view keeps this buffer alive."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""

    @property
    def kind(self) -> str:
        """"device", "shared" or "host"."""

    @property
    def alignment(self) -> int:
        """
        Its alignment in bytes: the requested one or the device's default. Raises ClosedError
        if the buffer was freed.
        """

    @property
    def queue(self) -> Queue:
        """The queue whose order its operations follow."""

    @property
    def device(self) -> Device:
        """The device of its queue."""

    @property
    def context(self) -> Context:
        """The context that the memory belongs to."""

    @property
    def base(self) -> object:
        """
        The Buffer that this one is a view of, or the owner of adopted memory, which this
        buffer keeps alive; None if this buffer owns its memory.
        """

    @property
    def ptr(self) -> int:
        """
        Its address; 0 if it has 0 bytes. Raises ClosedError if the buffer was freed.
        """

    @property
    def read_only(self) -> bool:
        """Whether writes are rejected."""

    @property
    def freed(self) -> bool:
        """Whether the buffer, or one that contains it, was freed."""

    def wait(self, timeout: float | None = None) -> None:
        """
        Waits for the work pending on this memory, on any queue, for at most `timeout`
        seconds (None: indefinitely; 0 polls). Errors of operations are reported by their own
        events. Releases the interpreter's lock; Ctrl-C interrupts. Raises WaitTimeoutError,
        ClosedError, and DependencyError if a copy of a unified buffer that should have
        written some of the bytes failed and nothing has written them since.
        """

    def free(self) -> None:
        """
        Frees this buffer: using it, or its slices, afterwards raises ClosedError. The memory
        is returned after the last operation on it has completed and the last view of it (a
        NumPy array, a memoryview) was released. Never blocks. Freeing twice does nothing.
        Freeing a slice affects only the slice.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def on_queue(self, queue: Queue) -> Buffer:
        """
        A view of the same memory whose operations run on `queue`. It keeps this buffer
        alive. Raises WrongContextError for a queue of another context.
        """

    def record(self, queue_or_event: Queue | Event) -> None:
        """
        Declares that external work uses the memory. Until the event, or all work now on the
        queue, has completed, the memory is not released, and operations on other queues
        wait. Does not block.
        """

    @staticmethod
    def adopt(ptr: int, nbytes: int, *, kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, owner: object = None, read_only: bool = False) -> Buffer:
        """
        A buffer over memory of another owner, which `owner` keeps alive and frees.

        The address must be known to the context of `queue` (None: the current one), and
        device memory must belong to its device, else WrongContextError. All bytes must lie in
        one allocation, as far as the driver reports it, else OutOfRangeError. `kind` None:
        the kind that the driver reports. `device` without a queue: its default queue. On the
        host device any memory can be adopted with kind="host". `owner` is released after
        the buffer, its views and exports were released and the work on them has completed. An
        owner that refers to its own buffer is never freed.
        """

    def disown(self) -> tuple[int, object]:
        """
        Transfers the memory to another owner: returns (address, owner). `owner` is a capsule
        with an isthmus_owner_t: the memory is returned after the capsule was dropped and the
        work in flight has completed. This buffer is freed. Raises ValueError, and leaves the
        buffer unchanged, for 0 bytes and while slices, views or other buffers of the memory
        exist.
        """

    def __repr__(self) -> str: ...

    def copy_from(self, src: object, *, nbytes: int | None = None, offset: int = 0, src_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies bytes into this buffer.

        `src`: a Buffer of any kind and device, an object with the buffer protocol of any
        type and shape, contiguous in C or Fortran order (bytes, numpy.ndarray, ...), or
        one with __sycl_usm_array_interface__. `nbytes` None: all of `src` from
        `src_offset`. Offsets are in bytes. `queue` None: this buffer's. The copy is
        ordered after earlier work on the queue, after other work on the two buffers, and
        after the events `after`.

        With blocking=False it returns an Event at once, and source and destination are
        kept alive until the copy has completed. Raises OutOfRangeError past either end,
        ValueError for an object that is not contiguous, TypeError for one without bytes.
        Ctrl-C interrupts the wait, not the copy.
        """

    def copy_to(self, dst: object, *, nbytes: int | None = None, offset: int = 0, dst_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies bytes of this buffer into `dst`: copy_from in the other direction. `nbytes`
        None: all of this buffer from `offset`; later bytes of `dst` are unchanged.
        Raises ReadOnlyError for a destination that cannot be written.
        """

    def copy_from_2d(self, other: object, width: int, height: int, *, pitch: int | None = None, other_pitch: int | None = None, offset: int = 0, other_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies `height` rows of `width` bytes into this buffer. Rows begin `pitch` bytes apart
        in this buffer and `other_pitch` bytes apart in `other`; both are at least `width`,
        the default. Otherwise like copy_from.
        """

    def copy_to_2d(self, other: object, width: int, height: int, *, pitch: int | None = None, other_pitch: int | None = None, offset: int = 0, other_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies `height` rows of `width` bytes of this buffer into `other`: copy_from_2d in
        the other direction.
        """

    def fill(self, value: object = 0, *, offset: int = 0, nbytes: int | None = None, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Sets every byte to the integer `value` (0..255), or repeats a pattern: bytes, or a
        NumPy floating-point scalar, of 1, 2, 4, 8 or 16 bytes. `nbytes` (None: all from
        `offset`) must be a multiple of its size. Otherwise like copy_from.
        """

    def prefetch(self, *, offset: int = 0, nbytes: int | None = None, to_host: bool = False, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Requests that the driver move shared memory to the queue's device, or to the host.
        A hint. Raises UnsupportedError on devices without the capability "prefetch".
        """

    def advise(self, advice: int, *, offset: int = 0, nbytes: int | None = None, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Passes the driver its own advice number (OpenCL: cl_mem_advice_intel). Raises
        UnsupportedError on devices without the capability "advise".
        """

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """
        Version 1: bytes ("|u1") in C order; syclobj is the queue; the flag beside the
        address is True for read-only memory. Waits only for work that itself waits for the
        host. Work submitted to the queue from then on is ordered after all pending work,
        except external work on that queue. ClosedError if freed, or if there is pending work
        and the queue is closed.
        """

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """
        NumPy's interface, version 3, for shared and host kinds; waits for pending work.
        Buffers of device kind have no such attribute.
        """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """
        Numba's interface, version 3, for buffers on CUDA devices. `stream` is the queue's
        stream, which is ordered after all pending work and whose handle counts as exported
        from then on. Waits only for work that itself waits for the host. A consumer that uses
        the memory on another stream must call record(Queue.from_stream(stream)). ClosedError
        if freed; buffers on other devices have no such attribute.
        """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """
        A uint8 array over the bytes of shared and host kinds. Raises TypeError for device kind.
        """

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """
        A DLPack capsule of uint8, versioned if `max_version` is (1, 0) or more. The memory
        stays valid, even after free(), until the consumer releases it.

        On the CPU, (1, 0), for shared and host kinds: waits for pending work. On a CUDA
        device, without waiting: (2, n) for device kind, and if `dl_device` requests it for
        shared kind, which can also be (13, n); (3, n) for host kind. `stream`, as the array
        API defines it (None or 1: the legacy default stream, -1: no order), is ordered after
        pending work. Work on the stream counts as work on this buffer until the consumer has
        released the memory and that work has completed. In the default context of SYCL
        devices, if dpctl is imported, (14, n), kDLOneAPI, for device kind, and for all kinds
        on request: `stream` is a dpctl.SyclQueue or a Queue, and None waits for pending
        work.

        `copy` True: a copy. None: a copy for the CPU if that cannot access the memory and
        `dl_device` is (1, 0). Raises BufferError for devices that cannot use the memory,
        for a stream on a device without streams, and for read-only memory without a version.
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """
        (1, 0), kDLCPU, for shared and host kinds; (2, n), kDLCUDA, for device kind on CUDA
        devices; (14, n), kDLOneAPI, for device kind in the default contexts of SYCL, if
        dpctl is imported. Raises BufferError for device kind elsewhere.
        """

    @staticmethod
    def from_dlpack(obj: Any, *, queue: Queue | None = None) -> Buffer:
        """
        A buffer over the memory of a contiguous array that has __dlpack__, or of a capsule,
        without a copy. The memory is kept alive. CPU memory is of kind "host", on
        `queue`, None: the host device's. CUDA and SYCL memory is of the kind that the
        driver reports; the producer orders `queue` (None: the current one if it is on that
        device, else the device's default one) after its work. Raises BufferError for other
        devices and types, ValueError for an array that is not contiguous.
        """

    def tobytes(self) -> bytes:
        """A copy of all bytes. Waits for pending work on the buffer."""

    def __bytes__(self) -> bytes: ...

    def to_numpy(self) -> Any:
        """
        A new uint8 ndarray with a copy of all bytes, of any kind. Waits for pending work.
        """

    def _host_copy(self) -> Any:
        """A copy of all bytes, as an object with the buffer protocol."""

    def __copy__(self) -> Self:
        """
        Allocates memory of the same kind, alignment and queue, and copies the bytes.
        """

    def __deepcopy__(self, memo: Any) -> Self: ...

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """
        Pickles contents, kind, alignment and the device's filter. From protocol 5 on the
        contents are passed out of band if the pickler supports that.
        """

    def ipc_handle(self) -> IpcHandle:
        """
        A handle for another process of this machine, which opens it with isthmus.open_ipc().
        Waits for the work pending on the bytes: queues of the other process are not ordered
        with those here. Keep the buffer until the other processes have closed the handle: freed
        memory of a pool is reused while they can still access it. Raises UnsupportedError for a
        device without the capability "ipc", and for all but device memory that cannot move:
        memory of the driver's own allocator, or of PoolResource(remap=False).
        InvalidArgumentError for 0 bytes.
        """

class DType:
    """
    An element type: isthmus.bool, int8 .. int64, uint8 .. uint64, float16, bfloat16,
    float32, float64, longdouble, complex64, complex128, clongdouble.

    DType(x) is the type that `x` names: a DType, a NumPy dtype or scalar type, a name
    ("float32"), a typestr ("<f4"), or Python's bool, int, float or complex. There is
    one object per type. It equals everything that names the same type, and has NumPy's
    hash. Raises TypeError with the reason for other types.
    """

    def __init__(self, dtype: object | None) -> None: ...

    @property
    def name(self) -> str:
        """NumPy's name, and "longdouble" and "clongdouble" on every machine."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""

    @property
    def alignment(self) -> int:
        """Alignment of an element's address, in bytes."""

    @property
    def kind(self) -> str:
        """
        NumPy's letter: "b" bool, "i" and "u" integers, "f" floats, "c" complex.
        """

    @property
    def dtype(self) -> Any:
        """
        The equivalent numpy.dtype. NumPy reads this attribute: numpy.zeros(3,
        float32). AttributeError for bfloat16 if the package ml_dtypes is not
        installed.
        """

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

    def __reduce__(self) -> str:
        """Pickled by its name in this package."""

def default_pool(kind: str = 'device', device: Device | str | None = None, queue: Queue | None = None, *, use: str = 'arrays') -> PoolResource:
    """
    The pool that serves requests for that kind of memory on that device when no resource is
    named or current. It is created on first use, and shared by all languages. Memory that was
    unused for 10 s is returned to the driver; trim() returns free memory at once. `use`:
    "arrays" or "buffers", which have the same pool except on CUDA, where memory of
    buffers can be shared with other processes. Raises UnsupportedError for a kind that the
    device does not have.
    """

class scratch:
    """
    `with isthmus.scratch():` - arrays and buffers that this thread or asyncio task, and tasks
    started within it, allocate in the block are freed at its end, as by Buffer.free(): using
    them or their views afterwards raises ClosedError. Memory is returned after the last
    operation on it has completed and the last export (a NumPy array, a memoryview, DLPack)
    was released; the end of the block waits for neither. Buffers that are no longer
    referenced are freed at once, as usual. Scratch scopes nest; each frees only its own
    buffers. Buffers created elsewhere, for example by native code of a library, are not
    included. A scope can be entered once.
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

class allocated:
    """
    `with isthmus.allocated() as a:` counts the arrays and buffers that this thread or asyncio
    task, and tasks started within it, allocate in the block, from any resource, in bytes as
    requested. Scopes nest: outer scopes include the counts of inner ones. May be read at any
    time; nothing is counted after the end of a scope. A free counts when the buffer is freed
    or no longer referenced, though work in flight may hold the memory longer. A scope can be
    entered once. Allocations of a resource for other libraries are counted by its
    StatisticsResource.
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    @property
    def count(self) -> int:
        """Number of allocations so far."""

    @property
    def bytes(self) -> int:
        """Bytes of these allocations."""

    @property
    def frees(self) -> int:
        """Number of these that were freed, by any thread."""

    @property
    def freed_bytes(self) -> int:
        """Bytes of the freed allocations."""

    @property
    def live_bytes(self) -> int:
        """Bytes of the allocations that were not freed."""

    @property
    def peak_bytes(self) -> int:
        """The maximum of live_bytes so far."""

    @property
    def seconds(self) -> float:
        """Time spent in allocation, in seconds."""

    def __repr__(self) -> str: ...

class Array:
    """
    A typed N-dimensional array over a Buffer of any kind.

    Array(buffer, shape, dtype="float32", *, strides=None, offset=0)

    `shape`: an integer or a sequence of integers. `dtype`: any object that NumPy accepts as a
    bool, integer, float or complex type in native byte order. `strides` in bytes, multiples
    of the element size, which may be negative or 0; None: C order without gaps. `offset`:
    bytes from the buffer's start to the first element. Copies nothing and keeps the buffer
    alive. Once the buffer is freed, all operations raise ClosedError.

    Raises OutOfRangeError if an element lies outside the buffer, TypeError for other types,
    ValueError for negative numbers, strides that fit neither shape nor type and elements
    that are not aligned, OutOfRangeError past 63 bits.

    array[1:3, ::-2], array[..., 0] and array[None] are views. array[2, 1] of a 2-d array is
    an element, read after the last operation that writes to it has completed: of shared and
    host kinds, and of device kind inside isthmus.allow_scalar(). array[1:3] = 0 and
    array[...] = other copy, as isthmus.copyto does. memoryview(array) and
    numpy.asarray(array) access shared and host kinds without a copy, after the work pending
    on the buffer has completed. Other libraries access it through DLPack and the interfaces.
    Safe to use from any thread; operations on the elements are ordered as those on the
    buffer.

    Two arrays are equal if they are the same object. Elements are compared in copies, as in
    numpy.array_equal(one.to_numpy(), other.to_numpy()).

    The garbage collector does not traverse arrays: an instance of a subclass that refers to a
    view of itself, such as x.turned = x.T, exists until that reference is dropped explicitly.
    """

    def __iter__(self) -> Iterator[Any]:
        """Iterates over the first axis: views, or elements of an array of one dimension."""

    def __init__(self, buffer: Buffer, shape: int | Sequence[int], dtype: Any = 'float32', *, strides: Sequence[int] | None = None, offset: int = 0) -> None: ...

    def __bool__(self) -> bool: ...

    def __int__(self) -> int: ...

    def __float__(self) -> float: ...

    def __index__(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, key: Any) -> Any:
        """A view: by integers, slices of any step, None, ..., or a tuple of them.

        With an integer for each dimension, an element: a bool, int, float or complex. A view shares
        the buffer. Raises IndexError out of bounds, TypeError for other keys, and for an element of
        device kind outside allow_scalar().
        """

    def __buffer__(self, flags: int, /) -> memoryview: ...

    def __setitem__(self, key: Any, value: Any) -> None:
        """Like copyto() into the view, with casting "unsafe". Waits."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each dimension."""

    @property
    def dtype(self) -> Any:
        """The numpy.dtype of the elements. Imports NumPy."""

    @property
    def ndim(self) -> int:
        """Number of dimensions, at most 64."""

    @property
    def size(self) -> int:
        """Number of elements."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without gaps between them."""

    @property
    def offset(self) -> int:
        """Bytes from the buffer's start to the first element."""

    @property
    def base(self) -> Array | None:
        """
        The array that this view shares its memory with, which is not a view itself. The view
        keeps it alive.
        """

    @property
    def ptr(self) -> int:
        """
        The address of the first element. Raises ClosedError if the buffer was freed.
        """

    @property
    def buffer(self) -> Buffer:
        """The array's memory, which it keeps alive."""

    @property
    def kind(self) -> str:
        """"device", "shared" or "host"."""

    @property
    def queue(self) -> Queue:
        """The buffer's queue."""

    @property
    def device(self) -> Device:
        """The device of its queue."""

    @property
    def read_only(self) -> bool:
        """Whether writes are rejected."""

    def on_queue(self, queue: Queue) -> Array:
        """
        A view of all elements whose operations run on `queue`. Raises WrongContextError for
        a queue of another context.
        """

    def record(self, queue_or_event: Queue | Event) -> None:
        """Declares that external work uses the memory: see Buffer.record."""

    def free(self) -> None:
        """
        Frees this array: using it afterwards raises ClosedError, freeing it again does
        nothing. Its views, its exports (a NumPy array over it, a memoryview, DLPack) and a
        Buffer that is referenced elsewhere remain valid. The memory is returned after the
        last of them was released and the last operation on it has completed. Never blocks.
        """

    def unsafe_free(self) -> None:
        """Same as free(): its name in oneAPI.jl."""

    @property
    def freed(self) -> bool:
        """Whether the array, or all of its memory, was freed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    @property
    def is_device(self) -> bool:
        """Whether its kind is "device"."""

    @property
    def is_shared(self) -> bool:
        """Whether its kind is "shared"."""

    @property
    def is_host(self) -> bool:
        """Whether its kind is "host"."""

    @property
    def usm_type(self) -> str:
        """dpnp's name for `kind`."""

    @property
    def sycl_queue(self) -> Any:
        """
        dpnp's name for `queue`. If dpctl is imported, a queue of the SYCL backend is a
        dpctl.SyclQueue.
        """

    @property
    def sycl_device(self) -> Device:
        """dpnp's name for `device`."""

    @property
    def sycl_context(self) -> Context:
        """The context of its queue."""

    def _header(self) -> str:
        """One line that describes the array and its location."""

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

    def _repr_html_(self) -> str: ...

    @property
    def flags(self) -> _ArrayFlags:
        """c_contiguous, f_contiguous and writeable, as in NumPy."""

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie in C order without gaps."""

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """
        Version 1, like Buffer's, with the address of the first element. Strides are counted
        in elements and may be negative.
        """

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """
        NumPy's interface, version 3, for shared and host kinds, like Buffer's.
        """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """
        Numba's interface, version 3, for arrays on CUDA devices, like Buffer's.
        """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """
        An array over the memory of shared and host kinds. Raises TypeError for device kind.
        """

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """
        A DLPack capsule of its type, shape and strides, with the arguments, waits and errors
        of Buffer.__dlpack__. A copy has no gaps. Only a capsule with a version can have
        negative strides. Without one, or if the caller is a function of PyTorch, which ends
        the process for such strides, they raise BufferError: export a copy().
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """Like Buffer.__dlpack_device__."""

    @property
    def T(self) -> Array:
        """A view with the axes in reverse order."""

    @property
    def mT(self) -> Array:
        """
        A view with the last two axes swapped; ValueError for fewer than 2 dimensions.
        """

    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """
        A view with the axes in that order: integers or one sequence of integers; without
        arguments in reverse order. ValueError unless each axis is named once.
        """

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """
        A view with two axes swapped. Like all functions with axes it raises NumPy's AxisError.
        """

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """
        A view without the axes of size 1: all of them, or those in `axis` (ValueError for
        another size).
        """

    def reshape(self, *shape: int | Sequence[int], copy: bool | None = None) -> Array:
        """
        The same elements in another shape: integers or one sequence of integers, one of
        which may be -1. A view if the strides allow it. Otherwise, and always with
        copy=True, a copy in new memory of the same kind and queue, which waits; with
        copy=False a ValueError. Raises ValueError too if the numbers of elements differ.
        """

    def ravel(self) -> Array:
        """
        A view with one dimension. ValueError if the strides do not allow that: reshape(-1)
        copies then.
        """

    def view(self, dtype: Any = None) -> Array:
        """
        The same bytes as elements of another type. As in NumPy, a type of another size
        changes the last extent, whose elements must have no gaps. ValueError if the bytes
        are not a whole number of elements, and, unlike NumPy, if elements would not be
        aligned or strides not be multiples of the element size.
        """

    def item(self, *indices: Any) -> Any:
        """
        An element as a Python number: the one element of an array of size 1, otherwise the
        element with that index in C order, or with an integer for each dimension. Waits, and
        rejects device kind, as array[i] does. Raises IndexError out of bounds.
        """

    def tolist(self) -> Any:
        """
        A copy as nested lists of Python numbers, of any kind; a number for an array
        without dimensions. Waits for pending work.
        """

    def __complex__(self) -> complex: ...

    def to_numpy(self) -> Any:
        """
        A new ndarray of the same type and shape with a copy of the elements, of any kind.
        Waits for pending work.
        """

    def copy_from(self, src: object, *, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies the elements of an array of the same type and shape: an Array of any kind
        and device, a NumPy array or another with the buffer protocol, or one with
        __sycl_usm_array_interface__, __cuda_array_interface__ or __dlpack__; with any
        strides. Overlapping arrays are copied as if the source were copied to temporary
        memory first.

        `queue` None: this array's. Order, events and `blocking` are those of
        Buffer.copy_from. Raises TypeError for another type or an object that is not an
        array, ValueError for another shape; copyto converts and broadcasts.
        """

    def copy_to(self, dst: object, *, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies the elements into `dst`: copy_from in the other direction. Raises
        ReadOnlyError for a destination that cannot be written.
        """

    def fill(self, value: object = 0, *, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Sets every element to a number. Otherwise like copy_from. Raises OverflowError for
        an integer that does not fit, TypeError for a value of another kind, for example 1.5
        for integers, and ValueError for an array.
        """

    def astype(self, dtype: Any, *, casting: str = 'unsafe', copy: bool = True, kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None) -> Array:
        """
        A new array of the elements as another type, in C order, with this array's kind and
        queue unless others are named. copy=False: this array itself if nothing would change.
        Waits. Raises TypeError if `casting` does not allow the conversion; see
        isthmus.copyto.
        """

    def copy(self, *, kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None) -> Array:
        """
        A new array of the elements in C order, with this array's kind and queue unless
        others are named. Waits.
        """

    def to_device(self, device: Device | Queue | str, *, kind: str | None = None) -> Array:
        """
        The elements on that device, in memory of `kind` (None: this array's kind): this
        array itself if it is there already, else a copy, which waits.
        """

    def __copy__(self) -> Array: ...

    def __deepcopy__(self, memo: Any) -> Array: ...

class _ArrayFlags:
    """The type of Array.flags."""

    @property
    def c_contiguous(self) -> bool:
        """In C order without gaps."""

    @property
    def f_contiguous(self) -> bool:
        """In Fortran order without gaps."""

    @property
    def writeable(self) -> bool:
        """Whether the array can be written."""

    @property
    def contiguous(self) -> bool:
        """Same as c_contiguous."""

    @property
    def forc(self) -> bool:
        """In C or Fortran order without gaps."""

    @property
    def fnc(self) -> bool:
        """In Fortran order without gaps, and not in C order."""

    def __getitem__(self, name: str) -> bool:
        """
        A flag by its NumPy name, such as "C_CONTIGUOUS" or "C". Raises KeyError for
        others.
        """

    def __repr__(self) -> str: ...

def permute_dims(x: Array, axes: Sequence[int]) -> Array:
    """
    A view with the axes in that order. ValueError unless each axis is named once.
    """

def moveaxis(x: Array, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """
    A view with some axes moved to other positions. The remaining axes keep their order.
    """

def squeeze(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    """See Array.squeeze."""

def expand_dims(x: Array, *, axis: int | Sequence[int] = 0) -> Array:
    """A view with new axes of size 1 at these positions of the result."""

def flip(x: Array, *, axis: int | Sequence[int] | None = None) -> Array:
    """
    A view with the elements in reverse order along these axes; None: all axes.
    """

def broadcast_to(x: Array, shape: int | Sequence[int]) -> Array:
    """
    A read-only view of that shape, by NumPy's broadcasting rules. ValueError if the
    shapes are incompatible.
    """

def reshape(x: Array, shape: int | Sequence[int], *, copy: bool | None = None) -> Array:
    """See Array.reshape."""

_scalar_is_allowed: ContextVar[bool]

def copyto(dst: object, src: object, *, casting: str = 'same_kind', queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
    """
    Copies `src`, converted and broadcast by NumPy's rules, into `dst`.

    `dst`: an Array, or another array that Array.copy_to accepts. `src`: an object that
    Array.copy_from accepts, a number, or an object that `numpy.asarray` accepts, such as
    nested lists. `casting`: "no", "equiv", "safe", "same_kind" or "unsafe", as in
    numpy.can_cast; with "unsafe" also objects, text and dates, converted as by NumPy's
    astype. Overlapping arrays are copied as if the source were copied to temporary memory
    first. `queue`, `after` and `blocking` are those of Buffer.copy_from.

    Complex elements that become real cause a ComplexWarning. array[key] = src does the same
    with casting "unsafe", as NumPy does, except for text, dates and None (TypeError), and
    waits. Python numbers become elements as by float() or int(), so that 1j as a real
    number is a TypeError. An integer must fit (OverflowError). Raises TypeError for a
    conversion that `casting` does not allow, ValueError for shapes that do not fit,
    ReadOnlyError.
    """

def shares_memory(a: object, b: object) -> bool:
    """
    Whether two arrays have a byte of an element in common. Exact up to a bound on
    the work, above which it is True if their extents overlap. Accepts what copyto
    accepts as `dst`.
    """

def may_share_memory(a: object, b: object) -> bool:
    """
    Whether the extents of two arrays overlap, even if their elements do not.
    """

def empty(shape: int | Sequence[int], dtype: Any = 'float32', *, order: str = 'C', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """
    Creates an array in C order. The elements have no defined values at first.

    `shape`: an integer or a sequence of integers. `dtype`: as for DType. `order`: "C", or
    "F" for Fortran order. `kind`: "device", "shared" or "host"; None: that of
    `resource`, else "device". `device` or `queue`: the location of the memory; neither:
    the current queue. `resource`: the resource to allocate from; None: the current one
    (isthmus.using), else default_pool(kind), so that arrays created in a loop cause no
    driver calls. `fallback`, "shared" or "host": the kind to use when there is no
    memory left; the array's `kind` is then that of its memory. `alignment`: bytes, a power
    of two; 0: the device's default. `usm_type` and `sycl_queue` are aliases of `kind` and
    `queue`.

    Raises TypeError for a type that arrays do not support and for two names of one
    argument, ValueError for negative extents, more than 64 of them, a bad kind or
    alignment, USMAllocationError if there is no memory, also for any size past 63 bits,
    UnsupportedError for a kind that the device does not have. Safe to use from any
    thread.
    """

def zeros(shape: int | Sequence[int], dtype: Any = 'float32', *, order: str = 'C', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """
    Creates an array of zeros. Arguments and errors are those of empty(). Does not wait
    for the fill: uses of the array are ordered after it.
    """

def ones(shape: int | Sequence[int], dtype: Any = 'float32', *, order: str = 'C', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """Creates an array of ones, like zeros()."""

def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None, *, order: str = 'C', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """
    Creates an array filled with a number, like zeros(). `dtype` None: the type that NumPy
    chooses for the value. Raises OverflowError for an integer that does not fit, TypeError
    for a value of another kind, for example 1.5 for integers.
    """

def empty_like(prototype: Any, dtype: Any = None, *, shape: int | Sequence[int] | None = None, order: str = 'K', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """
    Creates an array like empty(), with the shape, dtype, kind and queue of `prototype`
    except for those that are passed. `prototype`: an Array, a Buffer, an array of dpnp,
    dpctl or CuPy, or a NumPy array or another object with shape and dtype, for which kind
    and queue are the defaults. `order`: "C", "F", "A" (Fortran order if the prototype
    is in that order), or "K", the order of its dimensions in memory.
    """

def zeros_like(prototype: Any, dtype: Any = None, *, shape: int | Sequence[int] | None = None, order: str = 'K', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """Like empty_like(), filled with zeros."""

def ones_like(prototype: Any, dtype: Any = None, *, shape: int | Sequence[int] | None = None, order: str = 'K', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """Like empty_like(), filled with ones."""

def full_like(prototype: Any, fill_value: Any, dtype: Any = None, *, shape: int | Sequence[int] | None = None, order: str = 'K', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """Like empty_like() and full(). `dtype` None: that of the prototype."""

def _array_from_interface(obj: object, whole: object = None) -> Array | None:
    """
    An array over the memory that __sycl_usm_array_interface__ or __cuda_array_interface__
    describes, as a part of the memory object `whole` unless that is None.
    """

def _array_from_dlpack(obj: object, queue: Queue | None = None) -> Array:
    """
    An array over the memory that __dlpack__ exports, as Buffer.from_dlpack does.
    """

def _require_sound_capsule(capsule: object) -> None:
    """
    Raises BufferError if a field of the capsule's DLPack tensor is not usable.
    """

def _dlpack_device_of(producer: object) -> tuple[int, int]:
    """
    Returns the result of the producer's __dlpack_device__. Raises BufferError if that is not
    a device.
    """

def _says_read_only(obj: object) -> bool:
    """
    Whether the buffer protocol or an interface of `obj` reports its memory as read-only.
    """

def _queue_for(queue: Queue | None, device: Device | str | None) -> Queue:
    """`queue`, else the default queue of `device`, else the current queue."""

class IpcHandle:
    """
    A handle of device memory, for another process: IpcHandle(handle, offset, nbytes), as
    Buffer.ipc_handle() returns it. Can be pickled; open_ipc() opens it in the other
    process.
    """

    def __init__(self, handle: bytes, offset: int, nbytes: int) -> None: ...

    @property
    def handle(self) -> bytes:
        """64 bytes: CUDA's CUipcMemHandle of the whole allocation."""

    @property
    def offset(self) -> int:
        """Offset of the memory's first byte within that allocation."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

def open_ipc(handle: IpcHandle, *, device: Device | str | None = None, queue: Queue | None = None) -> Buffer:
    """
    A Buffer on device memory of another process of this machine, which created the handle
    with Buffer.ipc_handle(). `device` or `queue` must be of the device that the memory is on;
    neither: the current queue. free(), the end of `with` or dropping the last reference
    closes the handle, which waits for all work on the device. A handle may be opened several
    times; operations on these buffers are ordered like those on one buffer. The processes
    must synchronize their uses of the memory by other means. Raises InvalidArgumentError for
    a handle of this process and for an object that is not a handle, OutOfRangeError if not
    all of the bytes exist, WrongContextError for memory of another device, UnsupportedError
    for a device without the capability "ipc".
    """

def copy_ranges(dst: object, src: object, ranges: object, *, nbytes: int | None = None, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
    """
    Copies many ranges of bytes between two endpoints as one operation.

    `ranges`: a two-dimensional array of integers, or a sequence of tuples. Each row is
    (offset in `dst`, offset in `src`, bytes), or the two offsets if `nbytes` is the size of
    every range. All are checked before anything is copied. The ranges are copied in no
    particular order. Raises InvalidArgumentError if two ranges write the same bytes, or one
    writes bytes that another reads. Otherwise like Buffer.copy_from. On CUDA one kernel
    copies all ranges.
    """

def copy_nd(dst: object, src: object, *, shape: Sequence[int] | None = None, itemsize: int | None = None, dst_strides: Sequence[int] | None = None, src_strides: Sequence[int] | None = None, dst_offset: int = 0, src_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
    """
    Copies an array whose elements need not be contiguous, of up to 8 dimensions.

    Arrays (numpy.ndarray and the like) have shape, strides and element size. A Buffer, and
    bytes, have the elements of the other side packed in C order. `shape`, `itemsize` (1)
    and strides, in bytes, are needed if neither side has them, and override those of the
    objects. Otherwise like Buffer.copy_from. Raises ValueError for arrays of different
    shapes and for negative strides, InvalidArgumentError if elements overlap in the
    destination.
    """

def _to_check(obj: object) -> Any:
    """
    Returns the objects whose array interface NumPy may read: a list of the items of a
    sequence, else `obj`. None for numbers, text, NumPy's own objects, and sequences of
    these.
    """

class _Memory(Buffer):
    """Base of the three classes of isthmus.memory."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""

    @property
    def size(self) -> int:
        """Its size in bytes."""

    @property
    def _pointer(self) -> int:
        """Its address."""

    @property
    def _queue(self) -> Queue:
        """Its queue."""

    @property
    def _context(self) -> Context:
        """The context the memory belongs to."""

    @property
    def sycl_queue(self) -> Queue:
        """Its queue."""

    @property
    def sycl_device(self) -> Device:
        """The device of its queue."""

    @property
    def sycl_context(self) -> Context:
        """The context the memory belongs to."""

    @property
    def reference_obj(self) -> object:
        """
        The foreign object that the memory first came from; None if it is Isthmus' own.
        """

    def get_usm_type(self, syclobj: Context | Queue | None = None) -> str:
        """
        "device", "shared" or "host"; "unknown" if the context does not know the memory.
        """

    def get_usm_type_enum(self, syclobj: Context | Queue | None = None) -> int:
        """The kind as a number: 1 device, 2 shared, 3 host, 0 unknown."""

    def __sizeof__(self) -> int: ...

    def copy_to_host(self, obj: object = None) -> Any:
        """
        Copies the bytes into `obj`, any writable contiguous buffer, and returns it. Later
        bytes of `obj` are unchanged, and a smaller `obj` is filled from the start of
        this memory. None: into a new uint8 ndarray. Blocks. Raises ReadOnlyError,
        ValueError if `obj` is not contiguous.
        """

    def copy_from_host(self, obj: object) -> None:
        """
        Copies all bytes of `obj`, a contiguous buffer of any type and shape, which may be
        read-only, to the start of this memory. Blocks. Raises OutOfRangeError (a
        ValueError) if it is longer, ValueError if it is not contiguous, TypeError if it is
        not a buffer.
        """

    def copy_from_device(self, obj: object) -> None:
        """
        Copies all bytes of another memory object, or of an object with
        __sycl_usm_array_interface__, of any context, to the start of this memory. Blocks.
        Raises OutOfRangeError (a ValueError) if it is longer.
        """

    def memset(self, val: int = 0) -> None:
        """
        Sets every byte to `val`, 0..255 (ValueError). Blocks, and releases the
        interpreter's lock.
        """

class MemoryUSMDevice(_Memory):
    """
    MemoryUSMDevice(other, *, alignment=0, queue=None, copy=False): memory of kind "device".

    `other` a number > 0: that many new bytes on `queue` (None: the current one),
    `alignment` a power of two, 0 or less: the device's own. `other` a memory object or
    anything with __sycl_usm_array_interface__: the same memory, kept alive, if it is of
    this kind, else ValueError; with copy=True a copy in new memory of this kind, on
    `queue` (None: that of `other`).

    Otherwise a Buffer. Raises ValueError for 0 or less, USMAllocationError if there is no
    memory.
    """

    def __init__(self, other: object, *, alignment: int = 0, queue: Queue | None = None, copy: bool = False) -> None: ...

class MemoryUSMShared(_Memory):
    """
    MemoryUSMShared(other, *, alignment=0, queue=None, copy=False): memory of kind "shared".

    `other` a number > 0: that many new bytes on `queue` (None: the current one),
    `alignment` a power of two, 0 or less: the device's own. `other` a memory object or
    anything with __sycl_usm_array_interface__: the same memory, kept alive, if it is of
    this kind, else ValueError; with copy=True a copy in new memory of this kind, on
    `queue` (None: that of `other`).

    Otherwise a Buffer. Raises ValueError for 0 or less, USMAllocationError if there is no
    memory.
    """

    def __init__(self, other: object, *, alignment: int = 0, queue: Queue | None = None, copy: bool = False) -> None: ...

class MemoryUSMHost(_Memory):
    """
    MemoryUSMHost(other, *, alignment=0, queue=None, copy=False): memory of kind "host".

    `other` a number > 0: that many new bytes on `queue` (None: the current one),
    `alignment` a power of two, 0 or less: the device's own. `other` a memory object or
    anything with __sycl_usm_array_interface__: the same memory, kept alive, if it is of
    this kind, else ValueError; with copy=True a copy in new memory of this kind, on
    `queue` (None: that of `other`).

    Otherwise a Buffer. Raises ValueError for 0 or less, USMAllocationError if there is no
    memory.
    """

    def __init__(self, other: object, *, alignment: int = 0, queue: Queue | None = None, copy: bool = False) -> None: ...

def as_usm_memory(obj: object) -> MemoryUSMDevice | MemoryUSMShared | MemoryUSMHost:
    """
    The memory of any object with __sycl_usm_array_interface__, without a copy, as the class
    of its kind. Raises ValueError for a dictionary with impossible values or a pointer that
    its context does not know, OutOfRangeError (a ValueError) past either end of the
    allocation, TypeError for entries of a wrong type.
    """

class Pin:
    """
    Pinned memory, from isthmus.pin() until release() or the end of `with`.
    """

    def release(self) -> None:
        """
        Waits for the copies of the memory that are in flight and unpins it, unless other
        pins overlap it. A second call does nothing. Dropping a Pin does the same without
        waiting: the array is kept alive until then.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    @property
    def nbytes(self) -> int:
        """
        Number of bytes that were pinned. ClosedError after release(), as for all properties
        below.
        """

    @property
    def ptr(self) -> int:
        """The address of the pinned bytes."""

    @property
    def is_registered(self) -> bool:
        """
        False if no registration was needed: the device copies the memory as fast without it,
        or other code has registered the memory.
        """

    @property
    def device(self) -> Device:
        """The device that the memory is pinned for."""

    def __repr__(self) -> str: ...

def pin(array: object, nbytes: int | None = None, *, device: Device | str | None = None, read_only: bool = False, owner: object = None) -> Pin:
    """
    Pins host memory for `device` (None: the current one), which from then on copies it at
    the speed of the bus, and asynchronously if requested. Returns a Pin, which keeps the
    memory alive.

    `array`: any contiguous object with the buffer protocol, or an address, with `nbytes` and
    optionally the `owner` that keeps it alive. Memory that needs no pinning (memory of host
    kind, or a device that works on host memory) is accepted too. Memory that overlaps pinned
    memory shares the registration. With `read_only`, or a read-only array, the memory is only
    read. Pinning takes 25 to 115 ms a GiB with CUDA, and unpinning as much: it pays off for
    memory that is copied several times. Raises InvalidArgumentError for device memory and for
    addresses that are not memory.
    """

class _UnifiedMemory:
    """The native part of isthmus.UnifiedBuffer."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, nbytes: int, queue: Queue | None, device: Device | str | None, options: tuple[int, ...], resource: Any) -> None: ...

    def _host(self, begin: int, end: int) -> NDArray[Any]: ...

    @property
    def host(self) -> NDArray[Any]:
        """
        The host copy as a NumPy array of `shape` and `dtype`, synchronized: waits for device
        writes. Later writes through it, and through arrays created from it, are detected.
        Raises ConflictError if both sides wrote the same bytes; ClosedError.
        """

    @property
    def __array_interface__(self) -> Any:
        """
        Not supported. NumPy reads it after an interrupted wait for the host copy, whose
        exception it dropped; the exception is then raised again.
        """

    @property
    def device(self) -> Any:
        """
        The device copy, synchronized: an Array, or on the host platform, where one memory
        serves as both copies, a NumPy array. Returns when the host may write again, without
        waiting for kernels. Work submitted to the buffer's queue from then on is ordered
        after the upload. Raises ConflictError if both sides wrote the same bytes;
        USMAllocationError; ClosedError.
        """

    def _device(self, begin: int, end: int, queue: Queue | None, is_written: bool) -> Any: ...

    def _read(self, begin: int, end: int) -> _HostMemory: ...

    def _begin_write(self, begin: int, end: int, keep_contents: bool) -> _HostMemory: ...

    def _end_write(self, begin: int, end: int, keep_contents: bool) -> None: ...

    def _to_device(self, begin: int, end: int, queue: Queue | None, blocking: bool) -> Event | None: ...

    def _to_host(self, begin: int, end: int, queue: Queue | None, blocking: bool) -> Event | None: ...

    def _mark(self, begin: int, end: int, device_wrote: bool) -> None: ...

    def _resolve(self, winner: int, begin: int, end: int) -> None: ...

    def _forget(self) -> None: ...

    def _state(self) -> int: ...

    def _dirty(self, of_device: bool) -> list[tuple[int, int]]: ...

    def _info(self) -> dict[str, Any]: ...

    def _free(self) -> None: ...

    @property
    def nbytes(self) -> int:
        """Bytes of one copy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements."""

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the elements."""

    @property
    def _queue(self) -> Queue: ...

class _HostMemory:
    """Bytes of a unified buffer's host copy."""

def _synchronize(buffers: Sequence[_UnifiedMemory], queue: Queue | None) -> None: ...

def _tracking_in_force() -> tuple[str, int, str]: ...

def sim_create(options: str | None = None) -> Device:
    """
    Creates a simulated device on a new platform; `options` as in ISTHMUS_SIM.
    """

def sim_configure(device: Device, options: str) -> None:
    """Changes the options that can change during the lifetime of the device."""

def sim_calls(device: Device, kind: str = 'any') -> int:
    """
    Number of driver calls of one kind so far: "allocate", "copy", ...; "any": all.
    """

def sim_state(device: Device) -> tuple[int, int, int]:
    """
    (virtual time in ns, bytes of device memory, bytes of other memory) of the device now.
    """

def _library_path() -> str:
    """The file that libisthmus was loaded from."""
