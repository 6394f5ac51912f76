# SPDX-License-Identifier: Apache-2.0
"""The errors of PyDotCompute's memory interface, under their original names.

Errors that Isthmus raises through this package are instances of both libraries' classes, for
example of ``BufferSyncError`` and of ``isthmus.ConflictError``. So ``except PyDotComputeError``
catches the same errors as before, and ``except MemoryError`` also works, although PyDotCompute
never raises that.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

__all__ = [
    "BackendError",
    "BackendNotAvailableError",
    "BufferError",
    "BufferNotAllocatedError",
    "BufferSyncError",
    "CUDAError",
    "MetalError",
    "PyDotComputeError",
]


NOT_ALLOCATED = "Buffer has not been allocated. Call allocate() first."


class PyDotComputeError(Exception):
    """The base class of all errors."""


class BufferError(PyDotComputeError):  # noqa: A001 (its name there)
    """An error of a unified buffer."""


class BufferNotAllocatedError(BufferError):
    """A copy that does not exist was marked as dirty."""

    def __init__(self, message: str = NOT_ALLOCATED) -> None:
        super().__init__(message)


class BufferSyncError(BufferError):
    """A copy could not be created or brought up to date. No data are lost."""

    direction: str
    """``"host->device"`` or ``"device->host"``."""
    cause: Exception
    """The error of Isthmus."""

    def __init__(self, direction: str, cause: Exception) -> None:
        self.direction = direction
        self.cause = cause
        super().__init__(f"Failed to sync buffer {direction}: {cause}")

    def __reduce__(self) -> Any:
        return sync_error, (self.direction, self.cause)


class BackendError(PyDotComputeError):
    """An error of a driver."""


class BackendNotAvailableError(BackendError):
    """A backend was requested that is not available."""

    def __init__(self, backend_name: str, reason: str) -> None:
        self.backend_name = backend_name
        self.reason = reason
        super().__init__(f"Backend '{backend_name}' is not available: {reason}")

    def __reduce__(self) -> Any:
        return type(self), (self.backend_name, self.reason)


class CUDAError(BackendError):
    """An error of the CUDA driver."""


class MetalError(BackendError):
    """Metal was requested, for which Isthmus has no backend."""


PeerError = TypeVar("PeerError", bound=PyDotComputeError)


_classes: dict[tuple[type, type], Any] = {}


def both(peer_class: type[PeerError], own_class: type[Exception]) -> type[PeerError]:
    """The class derived from both, always the same one for a pair of classes."""
    cls = _classes.get((peer_class, own_class))
    if cls is None:
        namespace: dict[str, Any] = {
            "__module__": __name__,
            "__doc__": f"Caught as {own_class.__name__}, too.",
        }
        if "__reduce__" not in vars(peer_class):
            namespace["__reduce__"] = _reduced
        derived = type(peer_class.__name__, (peer_class, own_class), namespace)
        cls = _classes.setdefault((peer_class, own_class), derived)
    return cast("type[PeerError]", cls)


def _reduced(error: PyDotComputeError) -> Any:
    peer_class, own_class = type(error).__bases__
    return _unpickle, (peer_class, own_class, error.args), vars(error)


def _unpickle(peer_class: Any, own_class: Any, arguments: tuple[Any, ...]) -> PyDotComputeError:
    # The class is not an attribute of any module, so pickle cannot find it by name.
    return cast("PyDotComputeError", both(peer_class, own_class)(*arguments))


def sync_error(direction: str, cause: Exception) -> BufferSyncError:
    """``cause`` as an error of both libraries, with all of its attributes."""
    error = both(BufferSyncError, type(cause))(direction, cause)
    vars(error).update(vars(cause))
    return error
