# SPDX-License-Identifier: Apache-2.0
"""A unified buffer whose errors are also PyDotCompute's errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import isthmus
from isthmus._core import _UnifiedMemory
from isthmus.compat.pydotcompute.exceptions import BufferSyncError, sync_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

TO_DEVICE, TO_HOST = "host->device", "device->host"
# The getters of the base class's properties. Calling them takes half as long as super() would.
get_host: Callable[[_UnifiedMemory], NDArray[Any]] = vars(_UnifiedMemory)["host"].fget
get_device: Callable[[_UnifiedMemory], Any] = vars(_UnifiedMemory)["device"].fget


@contextmanager
def sync_errors(direction: str) -> Iterator[None]:
    """Turns errors of Isthmus raised in the block into errors that are also BufferSyncErrors."""
    try:
        yield
    except BufferSyncError:
        raise
    except isthmus.Error as cause:
        raise sync_error(direction, cause) from cause


def _with_sync_errors(direction: str, call: Callable[..., Any]) -> Any:
    # Does not use `sync_errors`, whose overhead exceeds the call itself.
    def wrapper(self: isthmus.UnifiedBuffer, *arguments: Any) -> Any:
        try:
            return call(self, *arguments)
        except isthmus.Error as cause:
            raise sync_error(direction, cause) from cause

    return wrapper


class SyncErrorBuffer(isthmus.UnifiedBuffer):
    """Translates the errors of every method that copies or allocates, including those of parts."""

    host: property = property(_with_sync_errors(TO_HOST, get_host))
    device: property = property(_with_sync_errors(TO_DEVICE, get_device))
    _host = _with_sync_errors(TO_HOST, isthmus.UnifiedBuffer._host)
    _read = _with_sync_errors(TO_HOST, isthmus.UnifiedBuffer._read)
    _begin_write = _with_sync_errors(TO_HOST, isthmus.UnifiedBuffer._begin_write)
    _to_host = _with_sync_errors(TO_HOST, isthmus.UnifiedBuffer._to_host)
    _device = _with_sync_errors(TO_DEVICE, isthmus.UnifiedBuffer._device)
    _to_device = _with_sync_errors(TO_DEVICE, isthmus.UnifiedBuffer._to_device)
