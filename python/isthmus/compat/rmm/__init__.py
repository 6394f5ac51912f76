# SPDX-License-Identifier: Apache-2.0
"""The Python interface of RMM on Isthmus: ``import isthmus.compat.rmm as rmm``.

Programs for RMM run with only their imports changed, on CUDA and on every other backend, including
the host. ``docs/from-rmm.md`` lists the differences and their reasons.
"""

from __future__ import annotations

from . import mr, statistics
from .mr import disable_logging, enable_logging, get_log_filenames
from .pylibrmm.device_buffer import DeviceBuffer
from .pylibrmm.logger import (
    flush_logger,
    get_flush_level,
    get_logging_level,
    level_enum,
    set_flush_level,
    set_logging_level,
    should_log,
)
from .rmm import (
    RMMError,
    is_initialized,
    register_reinitialize_hook,
    reinitialize,
    unregister_reinitialize_hook,
)

__version__ = "26.10.00"
"""The version of RMM whose interface this is."""

__all__ = [
    "DeviceBuffer",
    "RMMError",
    "__version__",
    "disable_logging",
    "enable_logging",
    "flush_logger",
    "get_flush_level",
    "get_log_filenames",
    "get_logging_level",
    "is_initialized",
    "level_enum",
    "mr",
    "register_reinitialize_hook",
    "reinitialize",
    "set_flush_level",
    "set_logging_level",
    "should_log",
    "statistics",
    "unregister_reinitialize_hook",
]
