# SPDX-License-Identifier: Apache-2.0
"""Resources that observe or limit the allocations that pass through them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from isthmus.compat.rmm import _device
from isthmus.compat.rmm._sizes import count_of
from isthmus.compat.rmm.pylibrmm.logger import level_enum, log
from isthmus.memory import (
    FailureCallbackResource,
    LimitResource,
    LogResource,
    PrefetchResource,
    TrackingResource,
)

from ._base import DeviceMemoryResource, UpstreamResourceAdaptor
from ._callback import as_runtime_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus.memory import TrackedBlock

__all__ = [
    "FailureCallbackResourceAdaptor",
    "LimitingResourceAdaptor",
    "LoggingResourceAdaptor",
    "PrefetchResourceAdaptor",
    "TrackingResourceAdaptor",
]

_FRAMES = 16


class LimitingResourceAdaptor(UpstreamResourceAdaptor):
    """Limits live memory to ``allocation_limit`` requested bytes: MemoryError beyond."""

    def __init__(self, upstream_mr: DeviceMemoryResource, allocation_limit: int) -> None:
        upstream = self._set_upstream(upstream_mr)
        self._limit = LimitResource(upstream, count_of(allocation_limit, "allocation_limit"))
        self._use(self._limit)

    def get_allocated_bytes(self) -> int:
        """The requested bytes that are currently live."""
        return self._limit.in_use_bytes

    def get_allocation_limit(self) -> int:
        """The limit in bytes."""
        return self._limit.limit_bytes


class LoggingResourceAdaptor(UpstreamResourceAdaptor):
    """Writes a CSV file with a row for each allocation, failure and free.

    ``log_file_name``: None for the environment variable RMM_LOG_FILE; ValueError if that is not
    set. ".dev" and the device's number are inserted before the extension. Rows are written
    thousands at a time, and when the last reference is dropped. ValueError for a file that cannot
    be created or that another log is using.
    """

    def __init__(
        self, upstream_mr: DeviceMemoryResource, log_file_name: str | os.PathLike[str] | None = None
    ) -> None:
        upstream = self._set_upstream(upstream_mr)
        stem, extension = os.path.splitext(log_name(log_file_name))
        number = _device.number_of(upstream.device)
        self._log_file_name = os.path.abspath(f"{stem}.dev{number}{extension}")
        self._log = LogResource(upstream, self._log_file_name)
        self._use(self._log)

    def flush(self) -> None:
        """Writes buffered rows."""
        self._log.flush()

    def get_file_name(self) -> str:
        """The absolute path of the file."""
        return self._log_file_name


def log_name(name: str | os.PathLike[str] | None) -> str:
    """``name``, or the value of RMM_LOG_FILE. ValueError if there is neither."""
    name = os.environ.get("RMM_LOG_FILE") if name is None else os.fspath(name)
    if not name:
        raise ValueError(
            "RMM log file must be specified either using log_file_name= argument or RMM_LOG_FILE "
            "environment variable"
        )
    return name


class TrackingResourceAdaptor(UpstreamResourceAdaptor):
    """Records every live allocation, and with ``capture_stacks`` the stack of its allocation."""

    def __init__(self, upstream_mr: DeviceMemoryResource, capture_stacks: bool = False) -> None:
        frames = _FRAMES if capture_stacks else 0
        self._tracking = TrackingResource(self._set_upstream(upstream_mr), frames, frames)
        self._use(self._tracking)

    def get_allocated_bytes(self) -> int:
        """The requested bytes that are currently live."""
        return sum(block.nbytes for block in self._tracking.live())

    def get_outstanding_allocations_str(self) -> str:
        """A line for each live allocation, oldest first, followed by its stack; "" if none."""
        return "".join(map(_line_of, self._tracking.live()))

    def log_outstanding_allocations(self) -> None:
        """Writes the same text to the log, at level debug."""
        text = self.get_outstanding_allocations_str()
        log(level_enum.debug, f"outstanding allocations: {text or 'none'}")


def _line_of(block: TrackedBlock) -> str:
    stack = "".join(f"    {frame}\n" for frame in block.stack)
    return f"{block.pointer:#x}: {block.nbytes} B, of thread {block.thread}\n{stack}"


class FailureCallbackResourceAdaptor(UpstreamResourceAdaptor):
    """When an allocation fails, ``callback(nbytes)`` decides whether to retry it.

    An exception of the callback ends the allocation: MemoryError is raised unchanged, others become
    a RuntimeError with the same text. TypeError if ``callback`` is not callable.
    """

    def __init__(self, upstream_mr: DeviceMemoryResource, callback: Callable[[int], bool]) -> None:
        upstream = self._set_upstream(upstream_mr)
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {callback!r}")

        def call(nbytes: int) -> bool:
            with as_runtime_errors():
                return bool(callback(nbytes))

        self._use(FailureCallbackResource(upstream, call))


class PrefetchResourceAdaptor(UpstreamResourceAdaptor):
    """Prefetches shared memory to the device when it is allocated."""

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        self._use(PrefetchResource(self._set_upstream(upstream_mr)))
