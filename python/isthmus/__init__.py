"""Isthmus: one memory layer for programs whose data live on both sides of a bus.

``Buffer`` is memory of one of three kinds (``"device"``, ``"shared"``, ``"host"``) on any device
that a driver offers, on a simulated one, or on the host alone. ``devices()`` lists what there is;
``isthmus.memory`` has the names that SYCL users know. Drivers are opened when devices are first
asked for, NumPy is imported when an array is.
"""

from __future__ import annotations

import os as _os

from . import _core, low_level, memory
from ._core import (
    AbandonedError,
    Array,
    Budget,
    Buffer,
    CallbackError,
    ClosedError,
    ConflictError,
    Context,
    DependencyError,
    Device,
    DeviceLostError,
    DeviceNotFoundError,
    DriverError,
    Error,
    Event,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    IpcHandle,
    OutOfRangeError,
    Pin,
    Platform,
    Queue,
    ReadOnlyError,
    UnsupportedError,
    USMAllocationError,
    WaitTimeoutError,
    WrongContextError,
    __pyx_capi__,
    __version__,
    absent,
    copy_nd,
    copy_ranges,
    current_device,
    current_queue,
    current_resource,
    devices,
    open_ipc,
    pin,
    platforms,
    set_resource,
    tag,
    using,
)
from ._scatter import gather, scatter
from .unified import (
    BufferPool,
    BufferRegistry,
    BufferState,
    DirtyRanges,
    MemoryInfo,
    TransferStatistics,
    UnifiedBuffer,
    UnifiedPart,
    UnknownBufferError,
    batches,
    get_accelerator,
    get_buffer_registry,
    get_memory_pool,
    pipeline,
    synchronize,
)

SyclQueue = Queue
from_dlpack = Buffer.from_dlpack

__all__ = [
    "AbandonedError",
    "Array",
    "Budget",
    "Buffer",
    "BufferPool",
    "BufferRegistry",
    "BufferState",
    "CallbackError",
    "ClosedError",
    "ConflictError",
    "Context",
    "DependencyError",
    "Device",
    "DeviceLostError",
    "DeviceNotFoundError",
    "DirtyRanges",
    "DriverError",
    "Error",
    "Event",
    "ForkedError",
    "InternalError",
    "InvalidArgumentError",
    "IpcHandle",
    "MemoryInfo",
    "OutOfRangeError",
    "Pin",
    "Platform",
    "Queue",
    "ReadOnlyError",
    "SyclQueue",
    "TransferStatistics",
    "USMAllocationError",
    "UnifiedBuffer",
    "UnifiedPart",
    "UnknownBufferError",
    "UnsupportedError",
    "WaitTimeoutError",
    "WrongContextError",
    "__pyx_capi__",
    "__version__",
    "absent",
    "batches",
    "copy_nd",
    "copy_ranges",
    "current_device",
    "current_queue",
    "current_resource",
    "devices",
    "from_dlpack",
    "gather",
    "get_accelerator",
    "get_buffer_registry",
    "get_cmake_dir",
    "get_include",
    "get_library",
    "get_memory_pool",
    "low_level",
    "memory",
    "open_ipc",
    "pin",
    "pipeline",
    "platforms",
    "scatter",
    "set_resource",
    "synchronize",
    "tag",
    "using",
]

# Messages and pickles name the public places, not the native module.
for _public in list(vars().values()):
    if isinstance(_public, type):
        _public.__module__ = __name__


def get_include() -> str:
    """Directory for the compiler's -I: it holds ``isthmus/isthmus.h`` and ``isthmus.hpp``."""
    return _beside("include", _os.path.join("isthmus", "isthmus.h"))


def get_library() -> str:
    """Path of the shared library that this process uses, ``libisthmus.so.0``."""
    return _core._library_path()


def get_cmake_dir() -> str:
    """Directory for CMake's ``isthmus_ROOT``, so that ``find_package(isthmus)`` finds this one."""
    return _beside(_os.path.join("lib", "cmake", "isthmus"), "isthmusConfig.cmake")


def _beside(directory: str, holds: str) -> str:
    # An installed package has it inside, a build tree beside the library or the sources.
    package = _os.path.dirname(_os.path.abspath(__file__))
    source = _os.path.dirname(_os.path.dirname(_os.path.realpath(__file__)))
    library = _os.path.dirname(get_library())
    places = (
        _os.path.join(package, directory),
        _os.path.join(_os.path.dirname(source), directory),
        _os.path.join(_os.path.dirname(library), directory),
        library,
    )
    for place in places:
        if _os.path.exists(_os.path.join(place, holds)):
            return place
    raise FileNotFoundError(f"{holds} was not installed with {package}")
