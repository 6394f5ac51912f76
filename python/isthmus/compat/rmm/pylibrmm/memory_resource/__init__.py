# SPDX-License-Identifier: Apache-2.0
"""RMM's resources on those of Isthmus: see ``isthmus.compat.rmm.mr``."""

from __future__ import annotations

from . import experimental
from ._adaptors import (
    FailureCallbackResourceAdaptor,
    LimitingResourceAdaptor,
    LoggingResourceAdaptor,
    PrefetchResourceAdaptor,
    TrackingResourceAdaptor,
)
from ._base import DeviceMemoryResource, UpstreamResourceAdaptor
from ._callback import CallbackMemoryResource
from ._current import (
    available_device_memory,
    disable_logging,
    enable_logging,
    get_current_device_resource,
    get_log_filenames,
    get_per_device_resource,
    is_initialized,
    set_current_device_resource,
    set_per_device_resource,
)
from ._driver import (
    CudaAsyncViewMemoryResource,
    CudaMemoryResource,
    ManagedMemoryResource,
    PinnedHostMemoryResource,
    SamHeadroomMemoryResource,
    SystemMemoryResource,
)
from ._pools import (
    ArenaMemoryResource,
    BinningMemoryResource,
    CudaAsyncMemoryResource,
    FixedSizeMemoryResource,
    PoolMemoryResource,
)
from ._statistics import StatisticsResourceAdaptor

__all__ = [
    "ArenaMemoryResource",
    "BinningMemoryResource",
    "CallbackMemoryResource",
    "CudaAsyncMemoryResource",
    "CudaAsyncViewMemoryResource",
    "CudaMemoryResource",
    "DeviceMemoryResource",
    "FailureCallbackResourceAdaptor",
    "FixedSizeMemoryResource",
    "LimitingResourceAdaptor",
    "LoggingResourceAdaptor",
    "ManagedMemoryResource",
    "PinnedHostMemoryResource",
    "PoolMemoryResource",
    "PrefetchResourceAdaptor",
    "SamHeadroomMemoryResource",
    "StatisticsResourceAdaptor",
    "SystemMemoryResource",
    "TrackingResourceAdaptor",
    "UpstreamResourceAdaptor",
    "available_device_memory",
    "disable_logging",
    "enable_logging",
    "experimental",
    "get_current_device_resource",
    "get_log_filenames",
    "get_per_device_resource",
    "is_initialized",
    "set_current_device_resource",
    "set_per_device_resource",
]
