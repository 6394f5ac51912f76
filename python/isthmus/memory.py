# SPDX-License-Identifier: Apache-2.0
"""USM memory under the names of ``dpctl.memory``, memory resources, and allocation counts.

Resources compose: for example a ``StatisticsResource`` over a ``LimitResource`` over a
``PoolResource``, or over a ``CustomResource``, which calls an ``Allocator`` of the program.

The three memory classes are Buffers with dpctl's constructors, properties and methods. They differ
in some points: ``copy_from_host`` accepts any type and shape, errors name the value and the limit,
memory can be sliced, and the flag in ``__sycl_usm_array_interface__`` means read-only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ._core import (
    AdaptorResource,
    AlignedResource,
    ArenaResource,
    BinningResource,
    CustomResource,
    DebugResource,
    FailureCallbackResource,
    FallbackResource,
    FixedSizeResource,
    LimitResource,
    LogResource,
    MemoryResource,
    MemoryUSMDevice,
    MemoryUSMHost,
    MemoryUSMShared,
    MonotonicResource,
    OomCallback,
    PoolResource,
    PrefetchResource,
    ProviderResource,
    StatisticsResource,
    StatisticsScope,
    TrackingResource,
    USMAllocationError,
    as_usm_memory,
    live,
    query,
)
from ._pointer import PointerInfo
from ._pressure import OomRequest, OomStageCounts, Snapshot, TagHolder, TagUsage, TrackedBlock

if TYPE_CHECKING:
    from ._core import Queue

__all__ = [
    "AdaptorResource",
    "AlignedResource",
    "Allocator",
    "ArenaResource",
    "BinningResource",
    "CustomResource",
    "DebugResource",
    "FailureCallbackResource",
    "FallbackResource",
    "FixedSizeResource",
    "LimitResource",
    "LogResource",
    "MemoryResource",
    "MemoryUSMDevice",
    "MemoryUSMHost",
    "MemoryUSMShared",
    "MonotonicResource",
    "OomCallback",
    "OomRequest",
    "OomStageCounts",
    "PointerInfo",
    "PoolResource",
    "PrefetchResource",
    "ProviderResource",
    "Snapshot",
    "StatisticsResource",
    "StatisticsScope",
    "TagHolder",
    "TagUsage",
    "TrackedBlock",
    "TrackingResource",
    "USMAllocationError",
    "as_usm_memory",
    "live",
    "query",
]


class Allocator(Protocol):
    """The methods that a CustomResource calls, on any thread and concurrently.

    Optional: ``usage() -> tuple[int, int]``, the bytes held and the free bytes among them, and
    ``trim(keep_bytes: int) -> int``, the bytes released.
    """

    def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
        """The address of ``nbytes`` bytes aligned to a power of two, or MemoryError."""
        ...

    def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
        """Releases memory of ``allocate``, with the requested size. Pre: all work on it has
        completed.
        """
        ...


# Messages and pickles name the public module; errors are in ``isthmus``.
for _public in map(globals().__getitem__, __all__):
    if isinstance(_public, type):
        _public.__module__ = __name__
