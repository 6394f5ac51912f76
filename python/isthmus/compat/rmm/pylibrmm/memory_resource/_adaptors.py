"""Resources that watch or bound what goes through them."""

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
    """At most ``allocation_limit`` bytes live at a time, as requested: MemoryError beyond."""

    def __init__(self, upstream_mr: DeviceMemoryResource, allocation_limit: int) -> None:
        upstream = self._stand_on(upstream_mr)
        self._limit = LimitResource(upstream, count_of(allocation_limit, "allocation_limit"))
        self._use(self._limit)

    def get_allocated_bytes(self) -> int:
        """Bytes live now, as requested."""
        return self._limit.in_use_bytes

    def get_allocation_limit(self) -> int:
        """The most bytes that are live at a time."""
        return self._limit.limit_bytes


class LoggingResourceAdaptor(UpstreamResourceAdaptor):
    """Writes a CSV file with a row for each allocation, failure and free.

    ``log_file_name`` None: the environment variable RMM_LOG_FILE, ValueError where there is none.
    ".dev" and the device's number come before the extension. Rows are written some thousands at a
    time and as the last reference goes. ValueError for a file that cannot be made, or that another
    log is being written to.
    """

    def __init__(
        self, upstream_mr: DeviceMemoryResource, log_file_name: str | os.PathLike[str] | None = None
    ) -> None:
        upstream = self._stand_on(upstream_mr)
        stem, extension = os.path.splitext(log_name(log_file_name))
        number = _device.number_of(upstream.device)
        self._log_file_name = os.path.abspath(f"{stem}.dev{number}{extension}")
        self._log = LogResource(upstream, self._log_file_name)
        self._use(self._log)

    def flush(self) -> None:
        """Writes what was not written yet."""
        self._log.flush()

    def get_file_name(self) -> str:
        """The absolute path of the file."""
        return self._log_file_name


def log_name(given: str | os.PathLike[str] | None) -> str:
    """As it was given, or as the environment says."""
    name = os.environ.get("RMM_LOG_FILE") if given is None else os.fspath(given)
    if not name:
        raise ValueError(
            "RMM log file must be specified either using log_file_name= argument or RMM_LOG_FILE "
            "environment variable"
        )
    return name


class TrackingResourceAdaptor(UpstreamResourceAdaptor):
    """Knows every live allocation, and with ``capture_stacks`` where it was made."""

    def __init__(self, upstream_mr: DeviceMemoryResource, capture_stacks: bool = False) -> None:
        frames = _FRAMES if capture_stacks else 0
        self._tracking = TrackingResource(self._stand_on(upstream_mr), frames, frames)
        self._use(self._tracking)

    def get_allocated_bytes(self) -> int:
        """Bytes live now, as requested."""
        return sum(block.nbytes for block in self._tracking.live())

    def get_outstanding_allocations_str(self) -> str:
        """A line for each live allocation, the oldest first, its stack below; "" if none is."""
        return "".join(map(_line_of, self._tracking.live()))

    def log_outstanding_allocations(self) -> None:
        """The same to the log, at the level debug."""
        text = self.get_outstanding_allocations_str()
        log(level_enum.debug, f"outstanding allocations: {text or 'none'}")


def _line_of(block: TrackedBlock) -> str:
    stack = "".join(f"    {frame}\n" for frame in block.stack)
    return f"{block.pointer:#x}: {block.nbytes} B, of thread {block.thread}\n{stack}"


class FailureCallbackResourceAdaptor(UpstreamResourceAdaptor):
    """Where there is no memory ``callback(nbytes)`` says whether to try again.

    What it raises ends the allocation: as a RuntimeError with the same text, but for MemoryError.
    TypeError for what cannot be called.
    """

    def __init__(self, upstream_mr: DeviceMemoryResource, callback: Callable[[int], bool]) -> None:
        upstream = self._stand_on(upstream_mr)
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {callback!r}")

        def ask(nbytes: int) -> bool:
            with as_runtime_errors():
                return bool(callback(nbytes))

        self._use(FailureCallbackResource(upstream, ask))


class PrefetchResourceAdaptor(UpstreamResourceAdaptor):
    """Has the driver move shared memory to the device as it is allocated."""

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        self._use(PrefetchResource(self._stand_on(upstream_mr)))
