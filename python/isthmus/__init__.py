# SPDX-License-Identifier: Apache-2.0
"""Isthmus: memory management for programs whose data live on a host and on its devices.

``Buffer`` is memory of one of three kinds (``"device"``, ``"shared"``, ``"host"``) on any device
that a driver offers, on a simulated device, or on the host alone. ``devices()`` lists the devices;
``isthmus.memory`` has the names that SYCL users know. Importing this package opens no driver and
does not import NumPy: both happen on first use.
"""

from __future__ import annotations

import copyreg as _copyreg
import os as _os
from typing import Any as _Any

from . import _core, low_level, memory
from ._absent_methods import add_absent_methods as _add_absent_methods
from ._asarray import array, asarray
from ._byte_count import ByteCount
from ._core import (
    AbandonedError,
    Array,
    Budget,
    Buffer,
    CallbackError,
    ClosedError,
    ConflictError,
    Context,
    DeadlockError,
    DependencyError,
    Device,
    DeviceLostError,
    DeviceNotFoundError,
    DriverError,
    DType,
    Error,
    Event,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    IpcHandle,
    OutOfRangeError,
    Pin,
    Platform,
    PortabilityWarning,
    Queue,
    ReadOnlyError,
    UnsupportedError,
    USMAllocationError,
    WaitTimeoutError,
    WrongContextError,
    __pyx_capi__,
    __version__,
    absent,
    allocated,
    broadcast_to,
    copy_nd,
    copy_ranges,
    copyto,
    current_device,
    current_queue,
    current_resource,
    default_pool,
    devices,
    empty,
    empty_like,
    expand_dims,
    flip,
    full,
    full_like,
    may_share_memory,
    moveaxis,
    ones,
    ones_like,
    open_ipc,
    parse_bytes,
    permute_dims,
    pin,
    platforms,
    reset_resource,
    reshape,
    scratch,
    set_resource,
    shares_memory,
    squeeze,
    tag,
    using,
    zeros,
    zeros_like,
)
from ._dtypes import (
    bfloat16,
    clongdouble,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    longdouble,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._dtypes import bool as bool  # noqa: A004
from ._numpy_functions import NumpyFunctions as _NumpyFunctions
from ._numpy_functions import add_methods as _add_methods
from ._operators import NumpyOperators as _NumpyOperators
from ._scalar import allow_scalar
from ._scatter import gather, scatter
from ._strict import set_strict, strict
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

# `bool` is excluded, so that `from isthmus import *` does not replace Python's.
__all__ = [
    "AbandonedError",
    "Array",
    "Budget",
    "Buffer",
    "BufferPool",
    "BufferRegistry",
    "BufferState",
    "ByteCount",
    "CallbackError",
    "ClosedError",
    "ConflictError",
    "Context",
    "DType",
    "DeadlockError",
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
    "PortabilityWarning",
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
    "allocated",
    "allow_scalar",
    "array",
    "asarray",
    "batches",
    "bfloat16",
    "broadcast_to",
    "clongdouble",
    "complex64",
    "complex128",
    "copy_nd",
    "copy_ranges",
    "copyto",
    "current_device",
    "current_queue",
    "current_resource",
    "default_pool",
    "devices",
    "empty",
    "empty_like",
    "expand_dims",
    "flip",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "full_like",
    "gather",
    "get_accelerator",
    "get_buffer_registry",
    "get_cmake_dir",
    "get_include",
    "get_library",
    "get_memory_pool",
    "int8",
    "int16",
    "int32",
    "int64",
    "longdouble",
    "low_level",
    "may_share_memory",
    "memory",
    "moveaxis",
    "ones",
    "ones_like",
    "open_ipc",
    "parse_bytes",
    "permute_dims",
    "pin",
    "pipeline",
    "platforms",
    "reset_resource",
    "reshape",
    "scatter",
    "scratch",
    "set_resource",
    "set_strict",
    "shares_memory",
    "squeeze",
    "strict",
    "synchronize",
    "tag",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "using",
    "zeros",
    "zeros_like",
]


_add_methods(_NumpyFunctions, Array)
_add_methods(_NumpyFunctions, Buffer)
_add_methods(_NumpyOperators, Array)
_add_absent_methods(Array)


def _reduce_array(array: Array) -> _Any:
    from ._pickle import reduce_array

    return reduce_array(array)


_copyreg.pickle(Array, _reduce_array)


def get_include() -> str:
    """The directory for the compiler's -I: contains ``isthmus/isthmus.h`` and ``isthmus.hpp``."""
    return _installed_dir("include", _os.path.join("isthmus", "isthmus.h"))


def get_library() -> str:
    """The path of the shared library that this process uses, ``libisthmus.so.0``."""
    return _core._library_path()


def get_cmake_dir() -> str:
    """The directory for CMake's ``isthmus_ROOT``: ``find_package(isthmus)`` then finds this
    package.
    """
    return _installed_dir(_os.path.join("lib", "cmake", "isthmus"), "isthmusConfig.cmake")


def _installed_dir(directory: str, marker: str) -> str:
    # An installed package contains the directory; in a build tree, it is beside the library or the
    # sources.
    package = _os.path.dirname(_os.path.abspath(__file__))
    source = _os.path.dirname(_os.path.dirname(_os.path.realpath(__file__)))
    library = _os.path.dirname(get_library())
    candidates = (
        _os.path.join(package, directory),
        _os.path.join(_os.path.dirname(source), directory),
        _os.path.join(_os.path.dirname(library), directory),
        library,
    )
    for candidate in candidates:
        if _os.path.exists(_os.path.join(candidate, marker)):
            return candidate
    raise FileNotFoundError(f"{marker} was not installed with {package}")


# Messages and pickles name the public module, not the native one.
for _public in map(globals().__getitem__, __all__):
    if isinstance(_public, type):
        _public.__module__ = __name__
