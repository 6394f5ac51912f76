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
from ._pressure import ReclaimRequest, RungCounts, Snapshot, TagUsage, TrackedBlock
from .memory import Allocator

__version__: str
__pyx_capi__: dict[str, Any]

class Error(Exception):
    """Base of all errors that Isthmus raises for a failed operation."""

class InvalidArgumentError(Error, ValueError):
    """
    A value outside what its description allows; the message names the value and the limit.
    """

class OutOfRangeError(Error, ValueError):
    """Past either end of a buffer, an allocation or host memory."""

class USMAllocationError(Error, MemoryError):
    """
    No memory of that kind on that device; the message tells what was asked for and what is left. `snapshot` tells how the memory of the pool was divided that had none; None if none was asked.
    """

    snapshot: Snapshot | None

class UnsupportedError(Error, RuntimeError):
    """
    This driver or device cannot do it: see Device.capabilities and Device.lacks.
    """

class WrongContextError(Error, ValueError):
    """
    Objects of different contexts met, or a pointer is unknown to the context.
    """

class DeviceNotFoundError(Error, ValueError):
    """
    No device or platform fits the filter; the message lists those there are.
    """

class ClosedError(Error, ValueError):
    """The buffer was freed or the queue was closed."""

class ReadOnlyError(Error, BufferError, ValueError):
    """A write to memory that is marked read-only."""

class DeviceLostError(Error, RuntimeError):
    """The device is gone, and its memory with it."""

class DriverError(Error, RuntimeError):
    """The driver refused; the message names its call and its code."""

class WaitTimeoutError(Error, TimeoutError):
    """The time given ran out. The operation goes on."""

class DependencyError(Error, RuntimeError):
    """An event that the operation waited for had failed, so it did not run."""

class AbandonedError(Error, RuntimeError):
    """A host event was dropped before it was completed."""

class CallbackError(Error, RuntimeError):
    """
    A function given to a queue did not run, a host event was made to fail, or what a resource of your own gave was no memory of its kind. A function's own exception is raised as it is.
    """

class ForkedError(Error, RuntimeError):
    """
    Driver work in a forked child: start it with the multiprocessing method 'spawn'.
    """

class InternalError(Error, RuntimeError):
    """A fault of Isthmus: please report it."""

class ConflictError(Error, RuntimeError):
    """
    Host and device both wrote the same part of a unified buffer: see UnifiedBuffer.resolve().
    """

class Platform:
    """
    One vendor's driver, or the host. Found by platforms(); immutable, safe to use from any thread.
    """

    @property
    def backend(self) -> str:
        """"host", "sim", "cuda", "opencl" or "sycl"."""

    @property
    def name(self) -> str:
        """The driver's name for itself."""

    @property
    def vendor(self) -> str:
        """Who made the driver."""

    @property
    def version(self) -> str:
        """The driver's version."""

    @property
    def library(self) -> str:
        """The driver's file as it was opened, or an empty string."""

    @property
    def devices(self) -> list[Device]:
        """Its devices."""

    def __repr__(self) -> str: ...

def platforms() -> list[Platform]:
    """Every platform found. Opens every driver on the first call."""

def devices(filter: str | None = None) -> list[Device]:
    """
    Every device that fits `filter`, the best one first; None: all of them. A filter that
    nothing fits gives an empty list. Simulated devices are listed only if the environment
    variable ISTHMUS_SIM is set or the filter names them. Opens drivers on the first call.
    Raises ValueError for what is no filter.
    """

def absent() -> list[tuple[str, str]]:
    """
    (back-end, reason) of each driver that was looked for and cannot be used. Opens every
    driver on the first call.
    """

class Device:
    """
    A device: Device(filter=None).

    `filter` is up to three of back-end ("host", "sim", "cuda", "opencl", "sycl"), type ("cpu",
    "gpu", "accelerator") and number, in that order, joined by ':'; None: the current
    device. Opens the drivers that the filter allows. Raises DeviceNotFoundError with a list
    of what there is.

    `with device:` makes it the current one of this thread and asyncio task; this nests.
    Devices compare by what they stand for, pickle by their filter and may be used from any
    thread.
    """

    def __init__(self, filter: str | Device | None = None) -> None: ...

    @staticmethod
    def from_sycl(given: Any) -> Device:
        """
        For an object of dpctl's or a capsule of one, which is not used up: the same object
        of SYCL's. Raises TypeError for others, DeviceNotFoundError where there is no SYCL,
        ValueError for a part of a device and for one without USM.
        """

    @staticmethod
    def from_handle(handle: int, backend: str) -> Device:
        """
        The device of a back-end whose handle of the driver's that is (OpenCL:
        cl_device_id; SYCL: addressof_ref() of a dpctl.SyclDevice). It must be a live
        handle. Raises DeviceNotFoundError for a device that is not listed, and where
        devices have no handles.
        """

    @property
    def name(self) -> str:
        """The driver's name for it."""

    @property
    def vendor(self) -> str:
        """Who made it."""

    @property
    def driver_version(self) -> str:
        """Version of its driver."""

    @property
    def backend(self) -> str:
        """"host", "sim", "cuda", "opencl" or "sycl"."""

    @property
    def filter(self) -> str:
        """A filter string that finds this device again, as "opencl:cpu:0"."""

    @property
    def type(self) -> str:
        """"cpu", "gpu" or "accelerator"."""

    @property
    def platform(self) -> Platform:
        """The platform it belongs to."""

    @property
    def compute_units(self) -> int:
        """How many it has."""

    @property
    def copy_engines(self) -> int:
        """How many copies it makes at the same time, beside computing."""

    @property
    def capabilities(self) -> frozenset[str]:
        """
        Names of what it can do: the flags ISTHMUS_CAN_* of isthmus.h in lower case.
        """

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of memory it offers, of "device", "shared", "host"."""

    @property
    def total_memory(self) -> int:
        """Its memory, in bytes."""

    @property
    def max_allocation(self) -> int:
        """The largest single allocation, in bytes."""

    @property
    def base_alignment(self) -> int:
        """Alignment in bytes of an allocation that asks for none."""

    @property
    def max_alignment(self) -> int:
        """The largest alignment that can be asked for, in bytes."""

    @property
    def lacks(self) -> str:
        """What its driver lacks and what stands in for it, or an empty string."""

    @property
    def default_queue(self) -> Queue:
        """
        Its queue on its default context, shared by all threads; always the same one.
        """

    @property
    def default_context(self) -> Context:
        """The context that its platform's devices share by default."""

    @property
    def native_handle(self) -> int:
        """
        The driver's handle as an integer (OpenCL: cl_device_id), 0 where it has none.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def memory_info(self) -> tuple[int, int]:
        """
        (free, total) bytes of its memory now. Raises UnsupportedError where the driver does
        not tell.
        """

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

class Context:
    """
    A context: Context(devices=None). USM belongs to one; its devices reach its memory.

    `devices`: a Device or filter string or a list of them, of one platform; None: the
    current device. This makes a new context; Device.default_context gives the one that is
    used unless another is named. Contexts compare by what they stand for and may be used
    from any thread.
    """

    def __init__(self, devices: Device | str | list[Device] | None = None) -> None: ...

    @staticmethod
    def from_sycl(given: Any) -> Context:
        """
        For an object of dpctl's or a capsule of one, which is not used up: the same object
        of SYCL's. Raises TypeError for others, DeviceNotFoundError where there is no SYCL,
        ValueError for a part of a device and for one without USM.
        """

    def _get_capsule(self) -> Any:
        """
        For dpctl: a capsule of SYCL's own object. Raises TypeError on other back-ends.
        """

    @staticmethod
    def from_handle(handle: int, device: Device | str, owner: object = None) -> Context:
        """
        Adopts a driver's context (OpenCL: cl_context; CUDA: the primary one) of `device`'s platform. It is kept
        alive by `owner` if given, else by the driver's own reference count. Raises
        UnsupportedError where contexts have no handles.
        """

    def share_with(self, device: Device | str = 'opencl') -> Context:
        """
        The same driver context in another back-end: one of SYCL's on OpenCL as a context of
        `device`'s, so that memory of dpctl's is pyopencl's and ours too, without a copy
        (`Buffer.adopt`). Raises UnsupportedError for other back-ends and where SYCL's library
        gives no native handles, WrongContextError where `device` is none of its devices.
        """

    @property
    def devices(self) -> list[Device]:
        """Its devices."""

    @property
    def native_handle(self) -> int:
        """
        The driver's handle as an integer (OpenCL: cl_context), 0 where it has none; valid
        while this object lives.
        """

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class Event:
    """
    Tells when an operation has ended and how. Event() makes a host event, which the program
    itself completes; if it is dropped before, it fails with AbandonedError, so that no
    queue waits for ever. Safe to use from any thread.
    """

    def __init__(self) -> None: ...

    @staticmethod
    def from_sycl(given: Any) -> Event:
        """
        For an object of dpctl's or a capsule of one, which is not used up: the same object
        of SYCL's. Raises TypeError for others, DeviceNotFoundError where there is no SYCL,
        ValueError for a part of a device and for one without USM.
        """

    def _get_capsule(self) -> Any:
        """
        For dpctl: a capsule of SYCL's own object. Raises TypeError on other back-ends.
        """

    def wait(self, timeout: float | None = None) -> None:
        """
        Waits until the operation has ended, for `timeout` seconds at most (None: for ever;
        0 polls), and raises the error it ended with. Lets other threads run; Ctrl-C
        interrupts the wait, not the operation. Raises WaitTimeoutError.
        """

    @staticmethod
    def wait_for(events: Sequence[Event]) -> None:
        """
        Waits for all of them, then raises the first failure there was, in their order.
        """

    @property
    def done(self) -> bool:
        """Whether it has completed, well or not. Does not block."""

    @property
    def status(self) -> str:
        """"pending", "complete" or "failed"."""

    @property
    def error(self) -> BaseException | None:
        """The exception that wait() would raise, None if there is none (yet)."""

    @property
    def times(self) -> tuple[int, int, int] | None:
        """
        (submitted, started, ended) in nanoseconds of the device's clock; None where the
        driver keeps none and before completion.
        """

    def elapsed_since(self, earlier: Event) -> int:
        """
        Nanoseconds from the end of `earlier` to this one's, on their device's clock, below 0
        where it was the other way: of two of Queue.mark(), of queues of one device. Waits for
        both, and raises what they ended with. Raises UnsupportedError for events without
        times, InvalidArgumentError for those of two devices.
        """

    @property
    def native_handle(self) -> int:
        """
        The driver's handle as an integer (OpenCL: cl_event), 0 where it has none; valid
        while this object lives.
        """

    def __repr__(self) -> str: ...

    def complete(self) -> None:
        """
        Completes a host event. Raises ValueError for an operation's event or a completed one.
        """

    def fail(self, message: str) -> None:
        """
        Completes a host event with a CallbackError; what waits for it on a queue does not
        run and fails with DependencyError. Raises ValueError as complete() does.
        """

    def _notify(self, descriptor: int) -> None:
        """Writes 8 bytes to a copy of a file descriptor on completion."""

    def __await__(self) -> Generator[Any, None, None]:
        """
        `await event` in asyncio: as wait(), without blocking the loop or a thread. Any
        number of tasks may await the same event; cancelling one does not touch the
        operation.
        """

class Queue:
    """
    A queue: Queue(device=None, *, context=None). Its operations run one after the other.

    `device`: a Device, a filter string, or a Context, whose first device is taken; None:
    the current device. `context` None: the device's default one. Every call makes a new
    queue; Device.default_queue is the shared one. Raises DeviceNotFoundError, and
    WrongContextError for a device that is not of the context.

    `with queue:` makes it, and its device, the current one of this thread and asyncio task;
    this nests. Queues compare by what they stand for and may be used from any thread.
    """

    def __init__(self, device: Device | str | Context | None = None, *, context: Context | None = None) -> None: ...

    @staticmethod
    def from_sycl(given: Any) -> Queue:
        """
        For an object of dpctl's or a capsule of one, which is not used up: the same object
        of SYCL's. Raises TypeError for others, DeviceNotFoundError where there is no SYCL,
        ValueError for a part of a device and for one without USM.
        """

    def _get_capsule(self) -> Any:
        """
        For dpctl: a capsule of SYCL's own object. Raises TypeError on other back-ends.
        """

    @staticmethod
    def from_handle(handle: int, device: Device | str, owner: object = None) -> Queue:
        """
        Adopts a driver's queue (OpenCL: cl_command_queue) of `device`'s platform. Where it
        is out of order, operations stand behind barriers. It is kept alive by `owner` if
        given, else by the driver's own reference count. Raises UnsupportedError where queues
        have no handles.
        """

    @staticmethod
    def from_stream(stream: Any, device: Device | str | None = None) -> Queue:
        """
        Adopts a CUDA stream of another library's, which it keeps alive: an object with
        __cuda_stream__ (cuda.core, a Queue), a stream of PyTorch or CuPy. `device` None: the
        one that the stream is of; of a default stream that does not tell, the current device
        if it is one of CUDA's, else "cuda:0". Work that others put on the stream is taken
        into account. Raises TypeError for other objects, WrongContextError for a stream of
        another device.

        The per-thread default stream is the calling thread's, whose queue may be used on any
        thread: from others its operations go to the legacy default stream, which is the same
        order. Adopted again on its thread it is the same queue.
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
        """dpctl's name of `device`."""

    @property
    def sycl_context(self) -> Context:
        """dpctl's name of `context`."""

    @property
    def backend(self) -> str:
        """"host", "sim", "cuda", "opencl" or "sycl"."""

    @property
    def is_in_order(self) -> bool:
        """Always True."""

    @property
    def idle(self) -> bool:
        """Whether nothing that Isthmus submitted is pending."""

    @property
    def native_handle(self) -> int:
        """
        The driver's handle as an integer (OpenCL: cl_command_queue; SYCL: dpctl's reference),
        0 where it has none;
        valid while this object lives. Once it was asked for, Isthmus takes into account
        that the queue may have work which it does not know.
        """

    def __cuda_stream__(self) -> tuple[int, int]:
        """
        (0, handle), for libraries that take CUDA streams; counts as asking for
        `native_handle`. Raises TypeError for a queue of another back-end.
        """

    def wait(self, timeout: float | None = None) -> None:
        """
        Waits for all that was submitted so far, for `timeout` seconds at most (None: for
        ever). Errors of operations are told by their own events. Lets other threads run;
        Ctrl-C interrupts. Raises WaitTimeoutError.
        """

    def fence(self, after: Event | Sequence[Event] = ()) -> Event:
        """
        An event that completes when all submitted so far, and all of `after`, has.
        """

    def mark(self) -> Event:
        """
        An event that completes when all submitted so far has, and knows when: for
        Event.elapsed_since.
        """

    def submit(self, fn: Callable[..., object], *buffers: Buffer, after: Event | Sequence[Event] = ()) -> Event:
        """
        Runs fn(*views) in the queue's order, on a thread of Isthmus, with a memoryview of
        bytes of each buffer; returns its event at once.

        The views, writable unless the buffer is read-only, are valid only during the call: a
        function that keeps one, or an array made of it, fails with BufferError. What `fn`
        raises is raised by event.wait(), the same object; work behind it on the queue goes
        on. `fn` must not wait for what is behind it on the queue. It sees the contextvars of
        the caller. Buffers of device kind need the capability "run_functions"
        (UnsupportedError). When the interpreter ends, functions that have not begun fail
        with CallbackError; those that run are waited for.
        """

    def close(self) -> None:
        """
        Refuses further work with ClosedError; what is submitted still runs. Never blocks.
        Raises ValueError for the default queue of a device, which cannot be closed.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def copy(self, dst: object, src: object, nbytes: int | None = None, *, dst_offset: int = 0, src_offset: int = 0, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies bytes between any two places on this queue; see Buffer.copy_from.
        """

    def copy_2d(self, dst: object, src: object, width: int, height: int, *, dst_pitch: int | None = None, src_pitch: int | None = None, dst_offset: int = 0, src_offset: int = 0, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies `height` rows of `width` bytes on this queue; see Buffer.copy_from_2d.
        """

    def fill(self, dst: object, value: object = 0, *, offset: int = 0, nbytes: int | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """Fills `dst` on this queue; see Buffer.fill."""

    def memcpy(self, dest: object, src: object, count: int) -> None:
        """
        dpctl's name of copy(): `count` bytes, blocking; past either end is OutOfRangeError.
        """

    def memcpy_async(self, dest: object, src: object, count: int, dEvents: Sequence[Event] | None = None) -> Event:
        """
        dpctl's name of copy(blocking=False), after the events `dEvents`. Source and
        destination live until it has ended.
        """

    def prefetch(self, buf: Buffer, count: int = 0) -> None:
        """
        Buffer.prefetch of the first `count` bytes; 0, or more than there are: all. Blocks.
        """

    def mem_advise(self, buf: Buffer, count: int, advice: int) -> None:
        """
        Buffer.advise of the first `count` bytes; 0, or more than there are: all. Blocks.
        """

def current_device() -> Device:
    """
    The device that `with device:` or `with queue:` set for this thread and asyncio task,
    else the default one: the environment variable ISTHMUS_DEVICE, else the best with USM.
    Opens drivers on the first call. Raises DeviceNotFoundError.
    """

def current_queue() -> Queue:
    """
    The queue that `with queue:` set for this thread and asyncio task, else the
    default queue of the current device. Opens drivers on the first call. Raises
    DeviceNotFoundError.
    """

class Budget:
    """
    Bytes that several pools may have of their drivers' memory together, in use and free alike:
    Budget(limit, device=None, kind="device"), given to PoolResource(..., budget=...).

    `limit` is in bytes, or text: "2GiB", or "80%" of the memory of `kind` that `device` has.
    A pool that would go over it gives back its own free memory, then asks the others for
    theirs, and then raises USMAllocationError with who holds what. What threads other than
    the asking one keep of small and recent blocks is not free. Safe to use from any thread.
    """

    def __init__(self, limit: int | str, device: Device | str | None = None, kind: str = 'device') -> None: ...

    @property
    def limit_bytes(self) -> int:
        """Bytes that its pools may hold together."""

    @property
    def held_bytes(self) -> int:
        """
        Bytes that its pools hold, and those of pools that have gone with blocks in use.
        """

    @property
    def free_bytes(self) -> int:
        """Bytes of these that no buffer, thread or size class has."""

    @property
    def peak_held_bytes(self) -> int:
        """The most that was held so far."""

    @property
    def pools(self) -> int:
        """Pools that live."""

    @property
    def refusals(self) -> int:
        """Times that a pool asked for what did not fit at once."""

    @property
    def reclaimed_bytes(self) -> int:
        """Bytes that pools gave back for others so far."""

    def __repr__(self) -> str: ...

class MemoryResource:
    """
    Hands out memory of one kind, in one context, on one device: what all resources have in
    common. Used as Buffer(nbytes, resource=...); safe to use from any thread. It lives as
    long as what was made of it. One of your own is a CustomResource, not a subclass.
    """

    @property
    def kind(self) -> str:
        """The kind of its memory."""

    @property
    def queue(self) -> Queue:
        """The queue of buffers that are made of it without one being named."""

    @property
    def device(self) -> Device:
        """The device it allocates for."""

    @property
    def context(self) -> Context:
        """The context its memory belongs to."""

    def allocate(self, nbytes: int, alignment: int = 0, queue: Queue | None = None) -> Buffer:
        """
        Buffer(nbytes, kind=..., queue=queue, alignment=alignment, resource=self). `alignment`
        0: the device's own; ValueError for what is neither that nor a power of two.
        """

    @property
    def held_bytes(self) -> int:
        """Bytes that it keeps of the driver's; a provider keeps none."""

    @property
    def free_bytes(self) -> int:
        """Bytes of these that no buffer, thread or size class has."""

    @property
    def maps(self) -> int:
        """
        Times that the driver gave it memory, or mapped some where it was needed.
        """

    @property
    def unmaps(self) -> int:
        """Times that the driver got some back, or took some from where it was."""

    def verify(self) -> None:
        """
        Looks at all that it, and what it stands on, know of themselves. Raises ValueError with
        what a DebugResource found, now or before, InternalError where a pool's records
        contradict one another. Takes long.
        """

    def trim(self, keep_bytes: int | str = 0) -> int:
        """
        Gives what is free back to the driver while more than `keep_bytes` are held; the
        bytes given back. What threads keep for themselves is free too.
        """

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class ProviderResource(MemoryResource):
    """
    The driver's own allocator: ProviderResource(kind="device", device=None,
    context=None, write_combined=False).

    `device` None: the first of `context`, else the current one; `context` None: the
    device's default one. `write_combined`, of kind "host": past the host's caches, for what
    the host writes once, in order, and devices read; to read it takes the host some hundred
    times as long. Raises UnsupportedError for a kind that the device has not, and for
    write-combined memory without the capability "write_combine".
    """

    def __init__(self, kind: str = 'device', device: Device | str | None = None, context: Context | None = None, *, write_combined: bool = False) -> None: ...

class PoolResource(MemoryResource):
    """
    Keeps what is freed for what comes next: PoolResource(kind="device", device=None,
    context=None, *, initial_bytes=0, growth_bytes=None, limit_bytes=None, checked=True,
    remap=True, soft_limit_bytes=None, budget=None, decay=None, wait=1.0,
    device_wait=False), or PoolResource(upstream, *, ...) with the same but for remap.

    `device` and `context` as for ProviderResource. `initial_bytes` are asked of the driver
    at once, at least `growth_bytes` (None: 32 MiB, or 1/128 of what it holds if its memory
    can move) at a time later, and never more than `limit_bytes` in all (None: no limit).
    Beyond `soft_limit_bytes` all that is free goes back before the pool grows, and then by
    no more than is needed. Sizes are integers or text: "64MiB", "2GiB", or "80%" of the
    device's memory or, for memory that lies in the host's, of what the process may have of
    that. `budget`, a Budget, is shared with other pools. What is free and was not needed for
    `decay` seconds (None: never) goes back within twice that time: as the pool grows or is
    trimmed, or on a thread of the library that is idle, if there is one already. A request
    that finds nothing waits for `wait` seconds at most (0: not at all; a year at most, as a
    wait without an end may deadlock) for work that freed memory lies behind, and lets other
    threads run meanwhile. With `device_wait=True` its queue waits for such work first, on the
    device, and the host does not.
    `checked=False` does not look for misuse of small blocks. Where the device has the
    capability "remap", free memory moves to where a larger request needs it; not with
    `remap=False`. Requests up to 256 KiB take at most 1/8 more than they ask for, larger
    ones are rounded up to 64 KiB. Memory freed behind work on a queue is reused at once on
    that queue, elsewhere when that work has ended. Raises USMAllocationError where the
    driver has too little or a limit is met, UnsupportedError as ProviderResource.

    Over `upstream`, a CustomResource say, the pool has its memory from that in place of the
    driver, of its kind, device and context, and it does not move. UnsupportedError for one
    that stands on a pool, gives memory of several kinds, or is monotonic.
    """

    @overload
    def __init__(self, kind: str = 'device', device: Device | str | None = None, context: Context | None = None, *, initial_bytes: int | str = 0, growth_bytes: int | str | None = None, limit_bytes: int | str | None = None, checked: bool = True, remap: bool = True, soft_limit_bytes: int | str | None = None, budget: Budget | None = None, decay: float | None = None, wait: float = 1.0, device_wait: bool = False) -> None: ...

    @overload
    def __init__(self, upstream: MemoryResource, *, initial_bytes: int | str = 0, growth_bytes: int | str | None = None, limit_bytes: int | str | None = None, checked: bool = True, soft_limit_bytes: int | str | None = None, budget: Budget | None = None, decay: float | None = None, wait: float = 1.0, device_wait: bool = False) -> None: ...

    @property
    def limit_bytes(self) -> int | None:
        """The most it may hold; None: no limit."""

    @property
    def soft_limit_bytes(self) -> int | None:
        """Beyond it free memory goes back before it grows; None: no such limit."""

    @property
    def budget(self) -> Budget | None:
        """What it shares with other pools."""

    @property
    def decay(self) -> float | None:
        """
        Seconds after which free memory that was not needed goes back; None: never.
        """

    @property
    def wait(self) -> float:
        """Seconds that a request waits for freed memory at most."""

    @property
    def upstream(self) -> MemoryResource | None:
        """What it stands on; None: the driver."""

    def snapshot(self) -> Snapshot:
        """
        How its memory is divided now. Takes some milliseconds where it holds very much.
        """

    @property
    def rungs(self) -> dict[str, RungCounts]:
        """
        How often it came to each rung that a request with no memory climbs, in their
        order ("settle", "grow", "trim", "budget", "reclaim", "wait"), and how
        often the request was met there.
        """

    def __repr__(self) -> str: ...

class AdaptorResource(MemoryResource):
    """
    A resource over another, whose kind, device, context and queue it has: what the classes
    below have in common. What it hands out goes back to it, and through it to what it stands
    on.
    """

    @property
    def upstream(self) -> MemoryResource:
        """What it stands on."""

class StatisticsScope:
    """
    What was allocated from a StatisticsResource within `with resource.statistics() as s:`, by
    this thread or asyncio task and by tasks that it starts meanwhile, and that memory's end,
    wherever and whenever it comes. Scopes nest; what an inner one counts, the outer ones
    count too. May be read at any time, on any thread. Entered once. What native code allocates
    itself counts in the scopes that it is in by the C interface; Buffers made meanwhile count
    there where no scope of Python's is entered.
    """

    @property
    def current_bytes(self) -> int:
        """Bytes live now, as requested."""

    @property
    def current_count(self) -> int:
        """Allocations live now."""

    @property
    def peak_bytes(self) -> int:
        """The most bytes live at a time."""

    @property
    def peak_count(self) -> int:
        """The most allocations live at a time."""

    @property
    def total_bytes(self) -> int:
        """Bytes of all allocations so far."""

    @property
    def total_count(self) -> int:
        """Allocations so far."""

    def _net(self) -> tuple[int, int, int, int, int, int]:
        """
        The same counts less memory from outside of the scope that was freed within it.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

class StatisticsResource(AdaptorResource):
    """
    Counts what goes through it: StatisticsResource(upstream).

    Counts are exact, with threads too. Buffers count until they are freed, also where their
    memory goes back later, when the work on it has ended.
    """

    def __init__(self, upstream: MemoryResource) -> None: ...

    @property
    def current_bytes(self) -> int:
        """Bytes live now, as requested."""

    @property
    def current_count(self) -> int:
        """Allocations live now."""

    @property
    def peak_bytes(self) -> int:
        """The most bytes live at a time."""

    @property
    def peak_count(self) -> int:
        """The most allocations live at a time."""

    @property
    def total_bytes(self) -> int:
        """Bytes of all allocations so far."""

    @property
    def total_count(self) -> int:
        """Allocations so far."""

    def reset(self) -> None:
        """The peaks become what is live now, the totals 0."""

    def statistics(self) -> StatisticsScope:
        """A scope, to be entered: `with resource.statistics() as s:`."""

class LimitResource(AdaptorResource):
    """
    Bounds what is live at a time: LimitResource(upstream, limit_bytes).

    What would exceed it, as requested, raises USMAllocationError, which names the request,
    the limit and what is in use. An integer, or text: "4GiB", or "80%" of the device's
    memory or, for memory that lies in the host's, of what the process may have of that.
    """

    def __init__(self, upstream: MemoryResource, limit_bytes: int | str) -> None: ...

    @property
    def limit_bytes(self) -> int:
        """The most bytes that are live at a time."""

    @property
    def in_use_bytes(self) -> int:
        """Bytes live now."""

class FallbackResource(AdaptorResource):
    """
    Asks a second resource where the first has no memory: FallbackResource(first, second).

    The second is of the same context; where it is of another kind, a Buffer tells the kind
    that it has. Raises WrongContextError.
    """

    def __init__(self, first: MemoryResource, second: MemoryResource) -> None: ...

    @property
    def second(self) -> MemoryResource:
        """What is asked where `upstream` has none."""

class AlignedResource(AdaptorResource):
    """
    Aligns requests of at least `from_bytes` to `alignment`, a power of two, or to more where
    they ask for it: AlignedResource(upstream, alignment, from_bytes=0). Both are integers or
    text: "4KiB".
    """

    def __init__(self, upstream: MemoryResource, alignment: int | str, from_bytes: int | str = 0) -> None: ...

class BinningResource(AdaptorResource):
    """
    Chooses by size: BinningResource(upstream, {256: small, "64KiB": medium}).

    Each request goes to the resource of the smallest number of bytes that it does not exceed,
    else to upstream. All are of one context (else WrongContextError), of any kinds.
    """

    def __init__(self, upstream: MemoryResource, bins: dict[int, MemoryResource] | dict[str, MemoryResource] | dict[int | str, MemoryResource]) -> None: ...

    @property
    def bins(self) -> dict[int, MemoryResource]:
        """A copy of what it was given, by bytes."""

class PrefetchResource(AdaptorResource):
    """
    Asks the driver to move shared memory to the device as it is allocated:
    PrefetchResource(upstream).

    On the Buffer's queue. A hint: it does nothing for other kinds, nor on a device without the
    capability "prefetch", and what the driver says to it is no error.
    """

    def __init__(self, upstream: MemoryResource) -> None: ...

class LogResource(AdaptorResource):
    """
    Writes a row of each allocation, failure and free to a CSV file, in the columns of RMM's
    logs: LogResource(upstream, path).

    Thread,Time,Action,Pointer,Size,Stream. A file that is there is emptied. Rows are written
    some thousands at a time, by flush(), with the last reference, and when the process exits.
    Raises InvalidArgumentError for a file that cannot be made, or that another log is being
    written to, of this process or another one.
    """

    def __init__(self, upstream: MemoryResource, path: str | PathLike[str]) -> None: ...

    def flush(self) -> None:
        """
        Writes all rows up to the first free that is under way on another thread. Raises
        DriverError, once, where rows were lost since the last time, because the file took no
        more.
        """

class CustomResource(MemoryResource):
    """
    A resource of your own: CustomResource(allocator, kind="device", device=None,
    context=None).

    `allocator.allocate(nbytes, alignment, queue)` returns the address of memory of that kind,
    or raises: MemoryError where it has none left. `allocator.deallocate(pointer, nbytes,
    queue)` takes it back, when no work uses it any more; what it raises goes to
    sys.unraisablehook. It must not wait for work on a queue. Both are called on any thread,
    several at a time; neither while the interpreter ends, nor in a forked child. Where the
    allocator has them, `usage()` returns (held, free) bytes and `trim(keep_bytes)` the bytes
    given back. `device` and `context` as for ProviderResource.

    What allocate raises is raised by Buffer(), and what usage and trim raise by who asks.
    What it returns is checked: CallbackError for 0, for an address that is not aligned, for
    memory that is not of this kind and device as far as the driver can tell. It may return
    the address of a part of a Buffer, which then lives as long as the part. Buffers that these
    methods make come from the driver where no resource is named.

    The allocator lives as long as the resource and its memory. An object that holds a resource
    of itself is never collected: let the allocator be an object of its own.
    """

    def __init__(self, allocator: Allocator, kind: str = 'device', device: Device | str | None = None, context: Context | None = None) -> None: ...

    @property
    def allocator(self) -> Allocator:
        """The object that it calls."""

class FailureCallbackResource(AdaptorResource):
    """
    Asks a function where there is no memory: FailureCallbackResource(upstream, function).

    `function(nbytes)` is called on the thread that asked, with no lock held; it may free and
    allocate (from the driver where no resource is named), and returns whether to try again.
    What it raises ends the request. It lives as long as the resource and its memory: a method
    of an object that holds the resource keeps both for ever.
    """

    def __init__(self, upstream: MemoryResource, function: Callable[[int], bool]) -> None: ...

class tag:
    """
    `with isthmus.tag("layer1"):` - what is allocated by this thread or asyncio task, and by
    tasks that it starts meanwhile, is told by this name: by TrackingResource.live() and
    report(), and as a holder in the snapshot of a pool that has no memory left. The innermost
    counts. An object may be entered many times.
    """

    def __init__(self, name: str) -> None: ...

    @property
    def name(self) -> str:
        """As it was given."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def __repr__(self) -> str: ...

class TrackingResource(AdaptorResource):
    """
    Knows every live block that went through it: TrackingResource(upstream, frames=0,
    native_frames=0).

    Its size as requested, queue, tag, thread and order, and with `frames` the innermost frames
    of Python's that it was allocated in, with `native_frames` those of native code; at most 64
    each. A free of what it does not know is refused. Some ten nanoseconds an allocation
    without frames, however many blocks are live, and 64 to 256 bytes for each.
    """

    def __init__(self, upstream: MemoryResource, frames: int = 0, native_frames: int = 0) -> None: ...

    def live(self) -> list[TrackedBlock]:
        """What is live and was allocated since the last reset, the oldest first."""

    def usage_by_tag(self) -> dict[str, TagUsage]:
        """
        Of each isthmus.tag that memory was allocated under, most live bytes first: what is
        live under it, the most that was, and all so far. What was allocated under none is not
        counted.
        """

    def report(self) -> str:
        """
        A text about these, grouped by the stack and the tag that they were allocated in, most
        bytes first.
        """

    def reset(self) -> None:
        """
        What is live now is told of no more; its free is known still. Of the usage of tags the
        peaks become what is live, the totals 0.
        """

class MonotonicResource(AdaptorResource):
    """
    Cuts memory off chunks of upstream's, one piece behind the other, and gives the chunks back
    together: MonotonicResource(upstream, first_bytes=0).

    For what is allocated bit by bit and ends at once. The first chunk has `first_bytes` (0:
    64 KiB), each further one twice those of the one before, or what the request needs. A
    Buffer's free gives nothing back; a chunk goes back by release(), or with the resource,
    once no Buffer lies in it and the work on it has ended. Raises UnsupportedError for an
    upstream that gives memory of several kinds.

    A context manager, which releases.
    """

    def __init__(self, upstream: MemoryResource, first_bytes: int | str = 0) -> None: ...

    def release(self) -> None:
        """Lets all chunks go: what is allocated next comes from a new one."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

class FixedSizeResource(AdaptorResource):
    """
    Blocks of one size, cut from slabs of upstream's: FixedSizeResource(upstream, block_bytes,
    blocks=0).

    A slab has `blocks` of them (0: as many as make a MiB, at least 8). A larger Buffer is an
    InvalidArgumentError: let a BinningResource send it elsewhere. Freed behind work on a
    queue, a block is reused there at once, elsewhere when that work has ended. Slabs that are
    free as a whole go back by trim(), and where a request of any resource would fail without
    them. Raises UnsupportedError for an upstream that gives memory of several kinds.
    """

    def __init__(self, upstream: MemoryResource, block_bytes: int | str, blocks: int = 0) -> None: ...

    @property
    def block_bytes(self) -> int:
        """The largest Buffer that it gives."""

class ArenaResource(AdaptorResource):
    """
    Memory cut from superblocks that threads do not share: ArenaResource(upstream,
    limit_bytes=0).

    Each thread has an arena for each queue. Where that has no room it takes another superblock,
    of a MiB or of what the request needs, and looks into no other arena; a PoolResource, which
    does, is the better choice nearly always. Superblocks that are free as a whole go back by
    trim(), and before memory runs short; they hold at most `limit_bytes` (0: what upstream has).
    Raises UnsupportedError for an upstream that gives memory of several kinds.
    """

    def __init__(self, upstream: MemoryResource, limit_bytes: int | str = 0) -> None: ...

class DebugResource(AdaptorResource):
    """
    Finds writes beside blocks and to freed ones: DebugResource(upstream, kept_bytes='16MiB').

    For programs under test. Each block lies between red zones of 64 bytes, or of its
    alignment if that is more, and `kept_bytes` of freed blocks are poisoned and kept for a
    while. An allocation waits for its queue, and memory goes back when nothing uses it. What
    is found is told on the standard error stream, and raised by verify(). Raises
    UnsupportedError for an upstream that may give device memory, which the host cannot look
    at.
    """

    def __init__(self, upstream: MemoryResource, kept_bytes: int | str = '16MiB') -> None: ...

def live(kind: str | None = None) -> tuple[int, int]:
    """
    (allocations, bytes) that live in this process, of one kind (None: all). Memory of default
    pools counts by the block in use, with its bytes as the pool rounds them; of other pools
    what they hold of the driver's counts, in use or free. Memory whose free waits for work in
    flight counts.
    """

def query(pointer: int, *, context: Context | None = None) -> PointerInfo:
    """
    What is known of an address, an inner one too: all of a buffer's block is that buffer's.
    What the library does not know the driver of `context` is asked for, if one is given, and
    memory of other contexts is then unknown. Raises ValueError for what is no address.
    """

class Reclaimer:
    """
    A function that is asked to give memory up when there is none: Reclaimer(function).

    From here until it is closed or dropped `function(request)`, a ReclaimRequest, is called
    before a request of any pool waits for memory or raises USMAllocationError, and before one
    that goes to the driver without a pool raises it: on the thread that asks, by several
    threads at once if several do, behind those that were made before, and behind Python's
    garbage collection. It may allocate (from the driver where no resource is named) and free,
    and is not called from inside another such function; it must not take a lock that a thread
    may hold which asks for memory, or closes it. It returns about how many bytes it gave up,
    None for 0. What it raises goes to sys.unraisablehook.

    A context manager: `with Reclaimer(cache.drop):`.
    """

    def __init__(self, function: Callable[[ReclaimRequest], int | None]) -> None: ...

    def close(self) -> None:
        """
        It is not called any more: waits until its calls have ended, but not from inside such
        a function. Ctrl-C ends the wait: a call may then still run. Does nothing if it is
        closed. One that is dropped waits for nothing.
        """

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def __repr__(self) -> str: ...

class using:
    """
    `with isthmus.using(resource):` - buffers of its kind, context and device (of host kind:
    of any) for which no resource is named come from it, in this thread or asyncio task and in
    tasks that it starts meanwhile. Nests; other resources stay as they are. Functions that a
    resource calls, an allocator's or a failure callback, are in none.
    """

    def __init__(self, resource: MemoryResource) -> None: ...

    def __enter__(self) -> MemoryResource: ...

    def __exit__(self, *exc: object) -> None: ...

def set_resource(resource: MemoryResource) -> None:
    """
    From here on buffers of its kind, context and device (of host kind: of any) for which no
    resource is named come from it, in every thread; `using` goes before. A
    ProviderResource: the driver's own memory; default_pool(kind, use='buffers'): as at
    first.
    """

def current_resource(kind: str = 'device', device: Device | str | None = None, queue: Queue | None = None) -> MemoryResource | None:
    """
    What Buffer(nbytes, kind=kind, device=device, queue=queue) would come from; None: the
    default pool.
    """

def _replay(resource: MemoryResource, queues: tuple[Queue, ...], events: Any, samples: Any | None) -> tuple[int, int, int]:
    """isthmus_resource_replay; (ns, maps, unmaps)."""

def _torch_number(resource: MemoryResource | None) -> int:
    """Which set of functions has its memory there."""

def _torch_following() -> int:
    """Functions whose memory comes from what _torch_follow says last."""

def _torch_follow(number: int, device: int, resource: MemoryResource | None) -> None:
    """From here on it serves that device; None: a pool of its own."""

def _torch_functions(number: int) -> dict[str, int]:
    """Their addresses, by the names of PyTorch's setters."""

def _torch_usage(number: int, device: int) -> dict[str, Any]:
    """The fields of isthmus.torch.Stats."""

def _device_pool(device: int) -> PoolResource:
    """Of the CUDA device of that number, where frameworks name no resource."""

class _BareBlock:
    """Memory that goes back with this object, behind what is on its queue."""

    def __init__(self, resource: MemoryResource, queue: Queue, nbytes: int) -> None: ...

    @property
    def ptr(self) -> int:
        """Its address."""

class Buffer:
    """
    One USM allocation: untyped bytes that a host and its devices share.

    Buffer(nbytes, *, kind="device", device=None, queue=None, alignment=0, resource=None)

    `nbytes` may be 0. `kind`: "device" (device only), "shared" (moves to where it is
    used) or "host" (host memory that devices reach). `device` (a Device or filter string)
    or `queue` tell where; neither: the current queue. `alignment` in bytes: a power of two,
    0 or less: the device's own. `resource`: where the memory comes from, None: the current
    one (isthmus.using), else the driver; its kind is then the default. What the bytes hold at
    first is not defined.

    Raises ValueError for a negative size or a bad alignment or kind, USMAllocationError (a
    MemoryError) without memory, whatever the size, UnsupportedError for a kind the device has
    not.

    buf[100:200] is a view that keeps `buf` alive. memoryview(buf) and numpy.asarray(buf)
    see shared and host kinds without a copy, once pending work on it has ended. Safe to use
    from any thread; operations on one queue run in the order of their calls, and an
    operation also waits for those on this buffer that other queues were given before.
    """

    def __init__(self, nbytes: int, *, kind: str = 'device', device: Device | str | None = None, queue: Queue | None = None, alignment: int = 0, resource: MemoryResource | None = None) -> None: ...

    def __len__(self) -> int: ...

    def __getitem__(self, key: slice) -> Self:
        """A view of the bytes of a slice of step 1. It keeps this buffer alive."""

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
        Alignment in bytes that was asked for, or the device's own. ClosedError if freed.
        """

    @property
    def queue(self) -> Queue:
        """The queue in whose order its operations are."""

    @property
    def device(self) -> Device:
        """The device of its queue."""

    @property
    def context(self) -> Context:
        """The context the memory belongs to."""

    @property
    def base(self) -> object:
        """
        The Buffer it is a part or another view of, or the owner of adopted memory; None for
        memory of its own. It is kept alive.
        """

    @property
    def ptr(self) -> int:
        """Its address, 0 for no bytes. ClosedError if freed."""

    @property
    def read_only(self) -> bool:
        """Whether writes to it are refused."""

    @property
    def freed(self) -> bool:
        """Whether it, or what it is part of, was freed."""

    def wait(self, timeout: float | None = None) -> None:
        """
        Waits for what is pending on this memory, on any queue, for `timeout` seconds at most
        (None: for ever; 0 polls). Errors of operations are told by their own events. Lets
        other threads run; Ctrl-C interrupts. Raises WaitTimeoutError, ClosedError, and
        DependencyError where a unified buffer's copy that was to fill some of the bytes has
        failed and nothing has filled them since.
        """

    def free(self) -> None:
        """
        Makes this buffer dead at once: further use, of its slices too, raises ClosedError.
        The memory goes back when the last operation on it has ended and the last view of it
        (a NumPy array, a memoryview) is gone. Never blocks; freeing twice does nothing.
        Freeing a slice affects only the slice.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def on_queue(self, queue: Queue) -> Buffer:
        """
        The same memory, with operations that go to `queue`, of the same context
        (WrongContextError). It keeps this buffer alive.
        """

    def record(self, queue_or_event: Queue | Event) -> None:
        """
        Tells that work which Isthmus does not know uses the memory: until the event, or all
        that is on the queue now, has completed it is not given back, and operations on
        other queues wait. Does not block.
        """

    @staticmethod
    def adopt(ptr: int, nbytes: int, *, kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, owner: object = None, read_only: bool = False) -> Buffer:
        """
        A buffer over memory of somebody else's, which `owner` keeps alive and frees.

        The address must be known to the context of `queue` (None: the current one) and device
        memory be its device's, else WrongContextError, and all bytes lie in one allocation
        where the driver tells, else OutOfRangeError. `kind` None: as the driver tells.
        `device` without a queue: its default one. On the host device any memory can be
        adopted with kind="host". `owner` is dropped when the buffer, what is made of it
        and the work on it have ended; an owner that refers to its own buffer is never freed.
        """

    def disown(self) -> tuple[int, object]:
        """
        Gives the memory to a foreign owner: (address, owner). It goes back when `owner`, a
        capsule with an isthmus_owner_t, is dropped, and not before the work in flight on it
        has ended. This buffer is dead afterwards. Raises ValueError for 0 bytes and while
        slices, views or other buffers of the memory live: the buffer then stays as it was.
        """

    def __repr__(self) -> str: ...

    def copy_from(self, src: object, *, nbytes: int | None = None, offset: int = 0, src_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies bytes into this buffer.

        `src`: a Buffer of any kind and device, an object with the buffer protocol of any
        type and shape, contiguous in C or Fortran order (bytes, numpy.ndarray, ...), or one
        with __sycl_usm_array_interface__. `nbytes` None: all of `src` from `src_offset`.
        Offsets are bytes. `queue` None: this buffer's; the copy runs behind what the queue
        has, behind other work on the two buffers and behind the events `after`.

        With blocking=False it returns an Event at once, and source and destination live
        until the copy has ended. Raises OutOfRangeError past either end, ValueError for what
        is not contiguous, TypeError for what holds no bytes. Ctrl-C interrupts the wait, not
        the copy.
        """

    def copy_to(self, dst: object, *, nbytes: int | None = None, offset: int = 0, dst_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies bytes of this buffer into `dst`: as copy_from, the other way. `nbytes` None:
        all of this buffer from `offset`; what `dst` has beyond that is left as it is.
        Raises ReadOnlyError for a destination that cannot be written.
        """

    def copy_from_2d(self, other: object, width: int, height: int, *, pitch: int | None = None, other_pitch: int | None = None, offset: int = 0, other_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies `height` rows of `width` bytes into this buffer. Rows begin `pitch` bytes
        apart here and `other_pitch` there, at least `width`, None: `width`. All else as in
        copy_from.
        """

    def copy_to_2d(self, other: object, width: int, height: int, *, pitch: int | None = None, other_pitch: int | None = None, offset: int = 0, other_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies `height` rows of `width` bytes of this buffer into `other`: as copy_from_2d,
        the other way.
        """

    def fill(self, value: object = 0, *, offset: int = 0, nbytes: int | None = None, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Sets every byte to the integer `value` (0..255), or repeats a pattern: bytes, or a
        NumPy floating-point scalar, of 1, 2, 4, 8 or 16 bytes, of which `nbytes` (None: all
        from `offset`) is a multiple. All else as in copy_from.
        """

    def prefetch(self, *, offset: int = 0, nbytes: int | None = None, to_host: bool = False, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Asks the driver to move shared memory to the queue's device, or to the host: a hint.
        Raises UnsupportedError on devices without the capability "prefetch".
        """

    def advise(self, advice: int, *, offset: int = 0, nbytes: int | None = None, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Gives the driver its own advice number (OpenCL: cl_mem_advice_intel). Raises
        UnsupportedError on devices without the capability "advise".
        """

    def ipc_handle(self) -> IpcHandle:
        """
        For another process of this machine, which opens it with isthmus.open_ipc(). Waits for
        what is pending on the bytes: no queue there is in order with those here. Keep the
        buffer until the others have closed it: freed memory of a pool goes to others while
        they still see it. Raises UnsupportedError for a device without the capability "ipc",
        and for all but device memory that cannot move: of the driver's own allocator, or of
        PoolResource(remap=False). InvalidArgumentError for 0 bytes.
        """

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """
        Version 1: bytes ("|u1") in C order; syclobj is the queue; the flag beside the
        address is True for read-only memory. Waits for nothing but what waits for the host:
        what is put to the queue from then on comes behind all pending work but others' own on
        that queue. ClosedError if freed, or if there is such work and the queue is closed.
        """

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """
        NumPy's interface, version 3, of shared and host kinds; waits for pending work.
        Buffers of device kind have no such attribute.
        """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """
        Numba's interface, version 3, of buffers on CUDA devices; `stream` is the queue's,
        which goes on behind all pending work and whose handle counts as lent from then on.
        Waits for nothing but what waits for the host. Who works on the memory on
        another stream must tell: record(Queue.from_stream(stream)). ClosedError if freed;
        buffers on other devices have no such attribute.
        """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """
        A uint8 array over the bytes of shared and host kinds. Raises TypeError for device kind.
        """

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """
        A DLPack capsule of uint8, versioned if `max_version` is (1, 0) or more. The memory
        stays until the consumer gives it back, through free().

        On the CPU, (1, 0), for shared and host kinds: waits for pending work. On a CUDA
        device, (2, n), for its device kind, and if `dl_device` asks for it for shared kind,
        (13, n) too, and host kind, (3, n): waits for nothing. `stream`, as the array API
        has it (None or 1: the legacy default stream, -1: no order), goes on behind pending
        work, and what is on it counts as work on this buffer until the consumer has given
        the memory back and that has ended. In the default context of SYCL's devices, where
        dpctl is imported, (14, n), kDLOneAPI, for its device kind and for all if asked for:
        `stream` is a dpctl.SyclQueue or a Queue, and None waits for pending work.

        `copy` True: a copy. None: one for the CPU where that cannot touch the memory, if
        `dl_device` is (1, 0). Raises BufferError for devices that cannot use the memory,
        for streams where there are none, and for read-only memory without a version.
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """
        (1, 0), kDLCPU, of shared and host kinds; (2, n), kDLCUDA, of device kind on CUDA
        devices; (14, n), kDLOneAPI, of device kind in SYCL's default contexts, where dpctl
        is imported. Raises BufferError for device kind elsewhere.
        """

    @staticmethod
    def from_dlpack(obj: Any, *, queue: Queue | None = None) -> Buffer:
        """
        A buffer over the memory of a contiguous array that has __dlpack__, or of a capsule,
        without a copy; it is kept alive. Memory of the CPU's is of kind "host", on `queue`,
        None: the host device's. Memory of CUDA's and SYCL's is of the kind that the driver
        tells; the producer has `queue` (None: the current one if it is on that device, else
        the device's default one) go on behind its work. Raises BufferError for other devices
        and types, ValueError for what is not contiguous.
        """

    def tobytes(self) -> bytes:
        """A copy of all bytes. Waits for pending work on the buffer."""

    def __bytes__(self) -> bytes: ...

    def to_numpy(self) -> Any:
        """
        A fresh uint8 ndarray with a copy of all bytes, of any kind. Waits for pending work.
        """

    def _host_copy(self) -> Any:
        """A copy of all bytes with the buffer protocol."""

    def __copy__(self) -> Self:
        """New memory of the same kind, alignment and queue with the same bytes."""

    def __deepcopy__(self, memo: Any) -> Self: ...

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """
        Pickles contents, kind, alignment and the device's filter; from protocol 5 on the
        contents go out of band where the pickler takes them.
        """

class DType:
    """
    A type of elements: isthmus.bool, int8 .. int64, uint8 .. uint64, float16, bfloat16,
    float32, float64, longdouble, complex64, complex128, clongdouble.

    DType(x) is the one that `x` names: a DType, a NumPy dtype or scalar type, a name
    ("float32"), a typestr ("<f4"), or Python's bool, int, float or complex. There is one
    object of each; it equals all that names the same type, and has NumPy's hash. Raises
    TypeError with the reason for other types.
    """

    def __init__(self, dtype: object | None) -> None: ...

    @property
    def name(self) -> str:
        """As NumPy has it, and "longdouble" and "clongdouble" on every machine."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""

    @property
    def alignment(self) -> int:
        """Bytes, of which an element's address is a multiple."""

    @property
    def kind(self) -> str:
        """
        NumPy's letter: "b" bool, "i" and "u" integers, "f" floats, "c" complex.
        """

    @property
    def dtype(self) -> Any:
        """
        The same as a numpy.dtype, for which NumPy asks by itself: numpy.zeros(3, float32).
        AttributeError for bfloat16 where the package ml_dtypes is not installed.
        """

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

    def __reduce__(self) -> str:
        """Pickled by its name in this package."""

def default_pool(kind: str = 'device', device: Device | str | None = None, queue: Queue | None = None, *, use: str = 'arrays') -> PoolResource:
    """
    The pool that memory of that kind on that device comes from where no resource is named
    and none is current. Made when it is first needed, one for all languages. Memory that was
    not needed for 10 s goes back to the driver; trim() gives back at once what is free. use:
    what it is for, "arrays" or "buffers", which have the same pool except on CUDA, where
    that of buffers can be shared with other processes. UnsupportedError for a kind that the
    device has not.
    """

class scratch:
    """
    `with isthmus.scratch():` - the arrays and buffers that this thread or asyncio task, and
    tasks that it starts meanwhile, allocate within go back where they came from at its end,
    as by Buffer.free(): those that are still referred to, and their views, raise ClosedError
    when they are used. Memory goes when the last operation on it has ended and the last
    export (a NumPy array, a memoryview, DLPack) is gone; the end waits for neither. What
    nobody refers to goes back at once, as ever. Scratches nest; each frees its own. A buffer
    made elsewhere, as by a library in native code, is not in it. Entered once.
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

class allocated:
    """
    `with isthmus.allocated() as a:` counts the arrays and buffers that this thread or asyncio
    task, and tasks that it starts meanwhile, allocate within, from any resource: bytes as
    requested. Counts nest: what an inner one counts the outer ones count too. May be read at
    any time; nothing is counted after its end. A free counts when the buffer is freed or
    nobody refers to it any more, though work in flight may hold the memory longer. Entered
    once. What a resource hands out to others is in its StatisticsResource.
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    @property
    def count(self) -> int:
        """Allocations so far."""

    @property
    def bytes(self) -> int:
        """Bytes of these."""

    @property
    def frees(self) -> int:
        """How many of these were freed, by whomever."""

    @property
    def freed_bytes(self) -> int:
        """Bytes of the freed ones."""

    @property
    def live_bytes(self) -> int:
        """Bytes of those that are not freed."""

    @property
    def peak_bytes(self) -> int:
        """The most of them at a time."""

    @property
    def seconds(self) -> float:
        """Time spent in allocation."""

    def __repr__(self) -> str: ...

class Array:
    """
    A typed N-dimensional array over a Buffer of any kind.

    Array(buffer, shape, dtype="float32", *, strides=None, offset=0)

    `shape`: an integer or a sequence of them. `dtype`: what NumPy takes for a bool, integer,
    float or complex type in this machine's order of bytes. `strides` in bytes, multiples of
    the element's size, which may be negative or 0; None: C order without gaps. `offset`:
    bytes from the buffer's start to the first element. Copies nothing and keeps the buffer
    alive; nothing works on it any more once that is freed (ClosedError).

    Raises OutOfRangeError where an element lies outside the buffer, TypeError for other types,
    ValueError for negative numbers, strides that fit neither shape nor type and elements that
    are not aligned, OutOfRangeError past 63 bits.

    array[1:3, ::-2], array[..., 0] and array[None] are views, array[2, 1] of a 2-d array is
    an element: read once the last operation that writes to it has ended, of shared and host
    kinds; of device kind inside isthmus.allow_scalar(). array[1:3] = 0 and array[...] = other
    copy, as isthmus.copyto does. memoryview(array) and numpy.asarray(array) see shared and
    host kinds without a copy, once pending work on the buffer has ended; other libraries take
    it by DLPack and the interfaces. It is safe to use from any thread; operations on the
    elements are the buffer's.

    Two arrays are equal where they are one object: elements are compared in copies, as in
    numpy.array_equal(one.to_numpy(), other.to_numpy()).

    The garbage collector does not look into arrays: a subclass's instance that keeps a view of
    itself, as made.turned = made.T, stays till the reference is dropped by hand.
    """

    def __iter__(self) -> Iterator[Any]:
        """Over the first axis: views, or elements of an array of one dimension."""

    def __init__(self, buffer: Buffer, shape: int | Sequence[int], dtype: Any = 'float32', *, strides: Sequence[int] | None = None, offset: int = 0) -> None: ...

    def __bool__(self) -> bool: ...

    def __int__(self) -> int: ...

    def __float__(self) -> float: ...

    def __index__(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, key: Any) -> Any:
        """A view: by integers, slices of any step, None, ..., or a tuple of them.

        By an integer for each dimension an element: a bool, int, float or complex. It shares the
        buffer. Raises IndexError out of bounds, TypeError for other keys, and for an element of
        device kind outside allow_scalar().
        """

    def __buffer__(self, flags: int, /) -> memoryview: ...

    def __setitem__(self, key: Any, value: Any) -> None:
        """As copyto() into the view with casting "unsafe". Waits."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each dimension."""

    @property
    def dtype(self) -> Any:
        """The elements' numpy.dtype. Imports NumPy."""

    @property
    def ndim(self) -> int:
        """How many dimensions it has, 64 at most."""

    @property
    def size(self) -> int:
        """All its elements."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without what lies between them."""

    @property
    def offset(self) -> int:
        """Bytes from the buffer's start to the first element."""

    @property
    def base(self) -> Array | None:
        """
        Of a view the array that it is a view of, which is none itself and is kept alive.
        """

    @property
    def ptr(self) -> int:
        """The first element's address. ClosedError if the buffer is freed."""

    @property
    def buffer(self) -> Buffer:
        """The memory, which it keeps alive."""

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
        """Whether writes to it are refused."""

    def on_queue(self, queue: Queue) -> Array:
        """
        A view of all elements, with operations that go to `queue`, of the same context
        (WrongContextError).
        """

    def record(self, queue_or_event: Queue | Event) -> None:
        """
        Tells that work which Isthmus does not know uses the memory: as Buffer.record.
        """

    def free(self) -> None:
        """
        Ends this array at once: further use of it raises ClosedError, freeing it again does
        nothing. Its views go on, as do exports (a NumPy array over it, a memoryview, DLPack)
        and a Buffer that is referred to by itself; the memory goes back when the last of
        them is gone and the last operation on it has ended. Never blocks.
        """

    def unsafe_free(self) -> None:
        """As free(): oneAPI.jl's name of it."""

    @property
    def freed(self) -> bool:
        """Whether it was freed, or all of its memory was."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    @property
    def is_device(self) -> bool:
        """Whether it is of kind "device"."""

    @property
    def is_shared(self) -> bool:
        """Whether it is of kind "shared"."""

    @property
    def is_host(self) -> bool:
        """Whether it is of kind "host"."""

    @property
    def usm_type(self) -> str:
        """dpnp's name of `kind`."""

    @property
    def sycl_queue(self) -> Any:
        """
        dpnp's name of `queue`. While dpctl is imported a queue of SYCL's is a SyclQueue.
        """

    @property
    def sycl_device(self) -> Device:
        """dpnp's name of `device`."""

    @property
    def sycl_context(self) -> Context:
        """The context of its queue."""

    def _header(self) -> str:
        """What it is and where, in a line."""

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

    def _repr_html_(self) -> str: ...

    @property
    def flags(self) -> _ArrayFlags:
        """c_contiguous, f_contiguous and writeable, as NumPy's."""

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie in C order without gaps."""

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """
        Version 1, as Buffer's, of the first element's address; strides count elements, and are
        negative where the array runs backwards.
        """

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's interface, version 3, of shared and host kinds, as Buffer's."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Numba's interface, version 3, of arrays on CUDA devices, as Buffer's."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """
        An array over the memory of shared and host kinds. Raises TypeError for device kind.
        """

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """
        A DLPack capsule of its type, shape and strides, with Buffer.__dlpack__'s arguments,
        waits and errors. A copy has no gaps. Strides may be negative in a capsule with a
        version: without one, and where a function of PyTorch's calls, which ends the process
        on them, BufferError: give it a copy().
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """As Buffer.__dlpack_device__."""

    @property
    def T(self) -> Array:
        """A view with the axes in reverse order."""

    @property
    def mT(self) -> Array:
        """A view with the last two axes swapped; ValueError below 2 dimensions."""

    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """
        A view with the axes in that order: integers or one sequence of them; in reverse
        order without. ValueError unless each axis is named once.
        """

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """
        A view with two axes swapped. Raises NumPy's AxisError, as all that take axes.
        """

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """
        A view without the axes of size 1: all, or those named (ValueError for another size).
        """

    def reshape(self, *shape: int | Sequence[int], copy: bool | None = None) -> Array:
        """
        The same elements in another shape: integers or one sequence of them, one of which
        may be -1. A view wherever the strides allow it. Else, and always with copy=True, a
        copy in new memory of the same kind and queue, which waits; with copy=False a
        ValueError. ValueError too where the numbers of elements differ.
        """

    def ravel(self) -> Array:
        """
        A view of one dimension. ValueError where the strides allow none: reshape(-1) copies
        then.
        """

    def view(self, dtype: Any = None) -> Array:
        """
        The same bytes as elements of another type. As in NumPy, one of another size changes
        the last extent, whose elements must have no gaps. ValueError where the bytes do not
        come out even, and where elements would not be aligned or their strides no multiples
        of their size, which NumPy allows.
        """

    def item(self, *indices: Any) -> Any:
        """
        An element as a Python number: of an array of one element that one, else by its place
        in C order or by an integer for each dimension. Waits, and refuses device kind, as
        array[i] does. IndexError out of bounds.
        """

    def tolist(self) -> Any:
        """
        A copy as nested lists of Python numbers, of any kind; a number for no dimensions.
        Waits for pending work.
        """

    def __complex__(self) -> complex: ...

    def to_numpy(self) -> Any:
        """
        A fresh ndarray of the same type and shape with a copy of the elements, of any kind.
        Waits for pending work.
        """

    def copy_from(self, src: object, *, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies the elements of an array of the same type and shape: an Array of any kind
        and device, a NumPy array or another with the buffer protocol, or one with
        __sycl_usm_array_interface__, __cuda_array_interface__ or __dlpack__; of any strides.
        Overlapping arrays are copied as if the source had been set aside first.

        `queue` None: this array's. Order, events and `blocking` as in Buffer.copy_from.
        Raises TypeError for another type or no array, ValueError for another shape; copyto
        converts and broadcasts.
        """

    def copy_to(self, dst: object, *, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Copies the elements into `dst`: as copy_from, the other way. Raises ReadOnlyError for
        a destination that cannot be written.
        """

    def fill(self, value: object = 0, *, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
        """
        Sets every element to a number. All else as in copy_from. Raises OverflowError for an
        integer that does not fit, TypeError for a value of another kind, as 1.5 for integers,
        and ValueError for an array.
        """

    def astype(self, dtype: Any, *, casting: str = 'unsafe', copy: bool = True, kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None) -> Array:
        """
        A new array of the elements as another type, in C order; of this array's kind and
        queue, or those named. copy=False: this array itself if that is no other. Waits.
        TypeError for what `casting` does not allow; see isthmus.copyto.
        """

    def copy(self, *, kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None) -> Array:
        """
        A new array of the elements in C order; of this array's kind and queue, or those
        named. Waits.
        """

    def to_device(self, device: Device | Queue | str, *, kind: str | None = None) -> Array:
        """
        The elements on that device, in memory of this array's kind or the one named: this
        array itself if they are, else a copy, which waits.
        """

    def __copy__(self) -> Array: ...

    def __deepcopy__(self, memo: Any) -> Array: ...

class _ArrayFlags:
    """What Array.flags tells."""

    @property
    def c_contiguous(self) -> bool:
        """In C order without gaps."""

    @property
    def f_contiguous(self) -> bool:
        """In Fortran order without gaps."""

    @property
    def writeable(self) -> bool:
        """Whether writes to it are taken."""

    @property
    def contiguous(self) -> bool:
        """As c_contiguous."""

    @property
    def forc(self) -> bool:
        """In either order without gaps."""

    @property
    def fnc(self) -> bool:
        """In Fortran order alone."""

    def __getitem__(self, name: str) -> bool:
        """
        By NumPy's names, "C_CONTIGUOUS" or "C" and so on. KeyError for others.
        """

    def __repr__(self) -> str: ...

def permute_dims(x: Array, axes: Sequence[int]) -> Array:
    """
    A view with the axes in that order. ValueError unless each axis is named once.
    """

def moveaxis(x: Array, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """A view with some axes at other places, the others in their order."""

def squeeze(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    """As Array.squeeze."""

def expand_dims(x: Array, *, axis: int | Sequence[int] = 0) -> Array:
    """A view with axes of size 1 more, which have these places in it."""

def flip(x: Array, *, axis: int | Sequence[int] | None = None) -> Array:
    """A view that runs backwards along these axes, None: along all."""

def broadcast_to(x: Array, shape: int | Sequence[int]) -> Array:
    """
    A read-only view of that shape, by NumPy's rules of broadcasting. ValueError where
    the shapes do not fit.
    """

def reshape(x: Array, shape: int | Sequence[int], *, copy: bool | None = None) -> Array:
    """As Array.reshape."""

_scalar_is_allowed: ContextVar[bool]

def copyto(dst: object, src: object, *, casting: str = 'same_kind', queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
    """
    Copies `src`, converted and broadcast by NumPy's rules, into `dst`.

    `dst`: an Array, or another that Array.copy_to takes. `src`: what Array.copy_from takes,
    a number, or what NumPy makes an array of, as nested lists. `casting`: "no", "equiv",
    "safe", "same_kind" or "unsafe", as numpy.can_cast has them; with "unsafe" also
    objects, text and dates, converted as by NumPy's astype. Overlapping arrays are
    copied as if the source had been set aside first. `queue`, `after` and `blocking` as in
    Buffer.copy_from.

    Complex elements that become real warn (ComplexWarning). array[key] = src does the same
    with casting "unsafe", as NumPy does, but for text, dates and None (TypeError), and
    waits: Python's numbers become elements as by
    float() or int(), so that 1j is no real one (TypeError). An integer must fit
    (OverflowError). Raises TypeError for a change of type that `casting`
    does not allow, ValueError for shapes that do not fit, ReadOnlyError.
    """

def shares_memory(a: object, b: object) -> bool:
    """
    Whether two arrays have a byte of an element in common: exact up to a bound on the
    work, above which True where their extents meet. Takes what copyto takes as `dst`.
    """

def may_share_memory(a: object, b: object) -> bool:
    """Whether the extents of two arrays meet, though their elements may not."""

def empty(shape: int | Sequence[int], dtype: Any = 'float32', *, order: str = 'C', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """
    A new array in C order; what its elements are at first is not defined.

    `shape`: an integer or a sequence of them. `dtype`: as for DType. `order`: "C", or "F"
    with the first dimension's elements side by side. `kind` "device", "shared" or
    "host"; None: that of `resource`, else "device". `device` or `queue`: where; neither:
    the current queue. `resource`: where the memory comes from; None: the current one
    (isthmus.using), else default_pool(kind), so that arrays made in a loop ask the driver
    for nothing. `fallback`, "shared" or "host": the kind where that has no memory left;
    `kind` of the array tells which it has. `alignment` in bytes: a power of two; 0: the
    device's own. `usm_type` and
    `sycl_queue` are other names of `kind` and `queue`.

    Raises TypeError for a type that no array has and for two names of one argument,
    ValueError for negative extents, more than 64 of them, a bad kind or alignment,
    USMAllocationError without memory, as for any size past 63 bits, UnsupportedError for a
    kind that the device has not. Safe to use from any thread.
    """

def zeros(shape: int | Sequence[int], dtype: Any = 'float32', *, order: str = 'C', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """
    A new array of zeros: the arguments and errors of empty(). Does not wait for the fill,
    behind which all that uses the array comes.
    """

def ones(shape: int | Sequence[int], dtype: Any = 'float32', *, order: str = 'C', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """A new array of ones: as zeros()."""

def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None, *, order: str = 'C', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """
    A new array of that value, a number: as zeros(). `dtype` None: the value's, as NumPy has
    it. Raises OverflowError for an integer that does not fit, TypeError for a value of
    another kind, as 1.5 for integers.
    """

def empty_like(prototype: Any, dtype: Any = None, *, shape: int | Sequence[int] | None = None, order: str = 'K', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """
    A new array as empty() makes it, with the shape, dtype, kind and queue of `prototype` but
    for those that are given: an Array, a Buffer, an array of dpnp, dpctl or CuPy, or a NumPy
    array or another with shape and dtype, which has the default kind and queue. `order`: "C",
    "F", "A" (Fortran's if
    the prototype is in that order), or "K", the order of its dimensions in memory.
    """

def zeros_like(prototype: Any, dtype: Any = None, *, shape: int | Sequence[int] | None = None, order: str = 'K', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """Zeros, as empty_like() and zeros()."""

def ones_like(prototype: Any, dtype: Any = None, *, shape: int | Sequence[int] | None = None, order: str = 'K', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """Ones, as empty_like() and zeros()."""

def full_like(prototype: Any, fill_value: Any, dtype: Any = None, *, shape: int | Sequence[int] | None = None, order: str = 'K', kind: str | None = None, device: Device | str | None = None, queue: Queue | None = None, resource: MemoryResource | None = None, fallback: str | None = None, alignment: int = 0, usm_type: str | None = None, sycl_queue: Queue | None = None) -> Array:
    """
    That value, as empty_like() and full(), but of the prototype's dtype where none is given.
    """

def _array_from_interface(obj: object, whole: object = None) -> Array | None:
    """
    An array over what __sycl_usm_array_interface__ or __cuda_array_interface__ tells, a
    part of the memory object `whole` if that is given.
    """

def _array_from_dlpack(obj: object, queue: Queue | None = None) -> Array:
    """An array over the memory that __dlpack__ lends, as Buffer.from_dlpack."""

def _require_sound_capsule(capsule: object) -> None:
    """BufferError where a field of DLPack's tensor in it cannot be used."""

def _dlpack_device_of(producer: object) -> tuple[int, int]:
    """What its __dlpack_device__ gives; BufferError where that is no device."""

def _says_read_only(obj: object) -> bool:
    """
    Whether the buffer protocol or an interface of `obj` says that its memory is
    read-only.
    """

def _queue_for(queue: Queue | None, device: Device | str | None) -> Queue:
    """The queue, else the default one of the device, else the current one."""

class IpcHandle:
    """
    Device memory, for another process: IpcHandle(handle, offset, nbytes), as
    Buffer.ipc_handle() gives it. Can be pickled; open_ipc() opens it there.
    """

    def __init__(self, handle: bytes, offset: int, nbytes: int) -> None: ...

    @property
    def handle(self) -> bytes:
        """64 bytes, CUDA's CUipcMemHandle of the whole allocation."""

    @property
    def offset(self) -> int:
        """Of the memory's first byte within that allocation."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

def open_ipc(handle: IpcHandle, *, device: Device | str | None = None, queue: Queue | None = None) -> Buffer:
    """
    A Buffer on device memory that another process of this machine has and gave the handle of,
    with Buffer.ipc_handle(). `device` or `queue` must be of the same device as there; neither:
    the current queue. free(), the end of `with` or of the last reference closes the handle,
    which waits for all work on the device. May be opened several times; the buffers' operations
    are ordered as those of one. What the processes do with the memory they tell one another by
    means of their own. Raises InvalidArgumentError for a handle of this very process and for
    what is none, OutOfRangeError if not all of the bytes are there, WrongContextError for
    memory of another device, UnsupportedError for a device without the capability "ipc".
    """

def copy_ranges(dst: object, src: object, ranges: object, *, nbytes: int | None = None, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
    """
    Copies many ranges of bytes between two places as one operation.

    `ranges`: a two-dimensional array of integers, or a sequence of tuples, each row (offset
    in `dst`, offset in `src`, bytes), or the two offsets where `nbytes` gives the bytes of
    all. All are checked before anything moves, and they move in no order: where two write
    the same bytes, or one writes what another reads, that is InvalidArgumentError. All else
    as in Buffer.copy_from; on CUDA one kernel moves them all.
    """

def copy_nd(dst: object, src: object, *, shape: Sequence[int] | None = None, itemsize: int | None = None, dst_strides: Sequence[int] | None = None, src_strides: Sequence[int] | None = None, dst_offset: int = 0, src_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | None:
    """
    Copies an array whose elements may lie apart, of up to 8 dimensions.

    Arrays (numpy.ndarray and the like) tell shape, strides and size of an element; a Buffer,
    and bytes, have the elements of the other side packed in C order. `shape`, `itemsize` (1)
    and strides, in bytes, say it where neither does, or otherwise. All else as in
    Buffer.copy_from. Raises ValueError for arrays of different shapes and for dimensions that
    run backwards, InvalidArgumentError where elements overlap in the destination.
    """

def _to_check(obj: object) -> Any:
    """
    Of what NumPy may read an interface: a list of the items of a sequence, else `obj`.
    None of numbers, text, NumPy's own objects, and sequences of these.
    """

class _Memory(Buffer):
    """What the three classes of isthmus.memory share."""

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
        The foreign object that the memory first came from, None if it is Isthmus' own.
        """

    def get_usm_type(self, syclobj: Context | Queue | None = None) -> str:
        """
        "device", "shared" or "host"; "unknown" in a context that does not know the memory.
        """

    def get_usm_type_enum(self, syclobj: Context | Queue | None = None) -> int:
        """The kind as a number: 1 device, 2 shared, 3 host, 0 unknown."""

    def __sizeof__(self) -> int: ...

    def copy_to_host(self, obj: object = None) -> Any:
        """
        Copies the bytes into `obj`, any writable contiguous buffer, and returns it; what it
        has beyond is left as it is, and a smaller one is filled from the beginning. None:
        into a new uint8 ndarray. Blocks. Raises ReadOnlyError, ValueError for what is not
        contiguous.
        """

    def copy_from_host(self, obj: object) -> None:
        """
        Copies all bytes of `obj`, a contiguous buffer of any type and shape, read-only ones
        included, to the beginning of this memory. Blocks. Raises OutOfRangeError (a
        ValueError) if it is longer, ValueError if it is not contiguous, TypeError if it is
        no buffer.
        """

    def copy_from_device(self, obj: object) -> None:
        """
        Copies all bytes of another memory object, or of one with
        __sycl_usm_array_interface__, of any context, to the beginning of this memory.
        Blocks. Raises OutOfRangeError (a ValueError) if it is longer.
        """

    def memset(self, val: int = 0) -> None:
        """
        Sets every byte to `val`, 0..255 (ValueError). Blocks and lets other threads run.
        """

class MemoryUSMDevice(_Memory):
    """
    MemoryUSMDevice(other, *, alignment=0, queue=None, copy=False): memory of kind "device".

    `other` a number > 0: that many new bytes on `queue` (None: the current one),
    `alignment` a power of two, 0 or less: the device's own. `other` a memory object or
    anything with __sycl_usm_array_interface__: the same memory, kept alive, if it is of
    this kind, else ValueError; with copy=True a copy in new memory of this kind, on
    `queue` (None: the one of `other`).

    A Buffer in all else. Raises ValueError for 0 or less, USMAllocationError without
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
    `queue` (None: the one of `other`).

    A Buffer in all else. Raises ValueError for 0 or less, USMAllocationError without
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
    `queue` (None: the one of `other`).

    A Buffer in all else. Raises ValueError for 0 or less, USMAllocationError without
    memory.
    """

    def __init__(self, other: object, *, alignment: int = 0, queue: Queue | None = None, copy: bool = False) -> None: ...

def as_usm_memory(obj: object) -> MemoryUSMDevice | MemoryUSMShared | MemoryUSMHost:
    """
    The memory of any object with __sycl_usm_array_interface__, without a copy, as the class
    that fits its kind. Raises ValueError for a dictionary whose values cannot be or a
    pointer that its context does not know, OutOfRangeError (a ValueError) past either end
    of the allocation, TypeError for entries of a wrong type.
    """

def _make_dpctl_classes(theirs: Any, queue: Any, allocation_error: type, alignment_error: type, prepare: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, Any, Any]:
    """
    The classes of isthmus.compat.dpctl.memory, for dpctl's module of memory and its
    class of queues.
    """

def _forget_dpctl_queues() -> None:
    """For isthmus.compat.dpctl.memory: what it prepared is asked for again."""

def _as_dpctl_memory(obj: object) -> Any:
    """isthmus.compat.dpctl.memory.as_usm_memory."""

class Pin:
    """
    Memory that is pinned, as isthmus.pin() gives it, till release() or the end of `with`.
    """

    def release(self) -> None:
        """
        Waits for the copies of the memory that are in flight and gives it back to its owner,
        unless others pin it too. Twice does nothing. A Pin that is dropped does the same, but
        waits for nothing: the array lives as long as that takes.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    @property
    def nbytes(self) -> int:
        """Bytes that were pinned; ClosedError after release(), as for all below."""

    @property
    def ptr(self) -> int:
        """Their address."""

    @property
    def is_registered(self) -> bool:
        """
        False where nothing had to be done: the device copies the memory as well as it
        is, or others have registered it.
        """

    @property
    def device(self) -> Device:
        """The device that it is pinned for."""

    def __repr__(self) -> str: ...

def pin(array: object, nbytes: int | None = None, *, device: Device | str | None = None, read_only: bool = False, owner: object = None) -> Pin:
    """
    Pins memory of the host's for `device` (None: the current one), which copies it from then
    on as fast as the bus goes, and asynchronously where asked: a Pin, which keeps it alive.

    `array`: any contiguous object with the buffer protocol, or an address, with `nbytes` and,
    if wanted, the `owner` that keeps it. Where nothing is to be done (memory of host kind, a
    device that works on the host's memory) it succeeds too. What overlaps memory that is
    pinned already shares it. `read_only`, or an array that is: memory that is only read.
    Pinning takes 25 to 115 ms a GiB with CUDA, and as much to undo: worth it for what is
    copied several times. Raises InvalidArgumentError for device memory or what is none.
    """

class _UnifiedMemory:
    """The native part of isthmus.UnifiedBuffer."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, nbytes: int, queue: Queue | None, device: Device | str | None, options: tuple[int, ...], resource: Any) -> None: ...

    def _host(self, begin: int, end: int) -> NDArray[Any]: ...

    @property
    def host(self) -> NDArray[Any]:
        """
        The host copy as a NumPy array of `shape` and `dtype`, brought up to date: waits for
        what the device wrote. Writes through it, and through what is made of it, are found
        whenever they come. ConflictError where both sides wrote the same; ClosedError.
        """

    @property
    def __array_interface__(self) -> Any:
        """
        There is none: NumPy asks for it after a wait for the host copy that was interrupted,
        whose exception it dropped, and then gets that again.
        """

    @property
    def device(self) -> Any:
        """
        The device copy, brought up to date: an Array, or on the host platform, where one
        memory serves as both copies, a NumPy array. Returns when the host may write again,
        without waiting for kernels. What is put on the buffer's queue from then on sees it.
        ConflictError where both sides wrote the same; USMAllocationError; ClosedError.
        """

    def _device(self, begin: int, end: int, queue: Queue | None, is_written: bool) -> Any: ...

    def _read(self, begin: int, end: int) -> _HostMemory: ...

    def _begin_write(self, begin: int, end: int, keeps: bool) -> _HostMemory: ...

    def _end_write(self, begin: int, end: int, kept: bool) -> None: ...

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
        """NumPy's dtype of an element."""

    @property
    def _queue(self) -> Queue: ...

class _HostMemory:
    """Bytes of a unified buffer's host copy."""

def _synchronize(buffers: Sequence[_UnifiedMemory], queue: Queue | None) -> None: ...

def _tracking_in_force() -> tuple[str, int, str]: ...

def sim_create(options: str | None = None) -> Device:
    """
    A new simulated device of a platform of its own; `options` as in ISTHMUS_SIM.
    """

def sim_configure(device: Device, options: str) -> None:
    """Changes the options that may change while the device lives."""

def sim_calls(device: Device, kind: str = 'any') -> int:
    """
    Driver calls of one kind made so far: "allocate", "copy", ...; "any": all.
    """

def sim_state(device: Device) -> tuple[int, int, int]:
    """
    (virtual time in ns, bytes of device memory, bytes of other memory) of the device now.
    """

def _library_path() -> str:
    """Where libisthmus was loaded from."""
