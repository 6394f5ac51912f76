"""PyDotCompute's errors that its memory side raises, at its names.

What Isthmus raises through this door is an instance of both: of ``BufferSyncError`` and of
``isthmus.ConflictError``, say. So ``except PyDotComputeError`` catches what it caught, and
``except MemoryError`` what PyDotCompute never tells.
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
    """What all of them are."""


class BufferError(PyDotComputeError):  # noqa: A001 (its name there)
    """Of a unified buffer."""


class BufferNotAllocatedError(BufferError):
    """A copy was marked that is not there."""

    def __init__(self, message: str = NOT_ALLOCATED) -> None:
        super().__init__(message)


class BufferSyncError(BufferError):
    """A copy could not be made, or not be brought up to date. Nothing is lost by that."""

    direction: str
    """``"host->device"`` or ``"device->host"``."""
    cause: Exception
    """What went wrong, as Isthmus tells it."""

    def __init__(self, direction: str, cause: Exception) -> None:
        self.direction = direction
        self.cause = cause
        super().__init__(f"Failed to sync buffer {direction}: {cause}")

    def __reduce__(self) -> Any:
        return sync_error, (self.direction, self.cause)


class BackendError(PyDotComputeError):
    """Of a driver."""


class BackendNotAvailableError(BackendError):
    """A back-end that is not there was asked for."""

    def __init__(self, backend_name: str, reason: str) -> None:
        self.backend_name = backend_name
        self.reason = reason
        super().__init__(f"Backend '{backend_name}' is not available: {reason}")

    def __reduce__(self) -> Any:
        return type(self), (self.backend_name, self.reason)


class CUDAError(BackendError):
    """Of CUDA's driver."""


class MetalError(BackendError):
    """Metal was asked for, which Isthmus has no back-end for."""


Theirs = TypeVar("Theirs", bound=PyDotComputeError)


_made: dict[tuple[type, type], Any] = {}


def both(theirs: type[Theirs], ours: type[Exception]) -> type[Theirs]:
    """The class of errors that are caught as either, always the same one."""
    made = _made.get((theirs, ours))
    if made is None:
        place: dict[str, Any] = {
            "__module__": __name__,
            "__doc__": f"Caught as {ours.__name__}, too.",
        }
        if "__reduce__" not in vars(theirs):
            place["__reduce__"] = _reduced
        made = _made.setdefault((theirs, ours), type(theirs.__name__, (theirs, ours), place))
    return cast("type[Theirs]", made)


def _reduced(error: PyDotComputeError) -> Any:
    theirs, ours = type(error).__bases__
    return _made_again, (theirs, ours, error.args), vars(error)


def _made_again(theirs: Any, ours: Any, arguments: tuple[Any, ...]) -> PyDotComputeError:
    # Its class is at no module's name, where pickle would look for it.
    return cast("PyDotComputeError", both(theirs, ours)(*arguments))


def sync_error(direction: str, cause: Exception) -> BufferSyncError:
    """``cause`` as an error of both libraries, with all that it knows."""
    made = both(BufferSyncError, type(cause))(direction, cause)
    vars(made).update(vars(cause))
    return made
