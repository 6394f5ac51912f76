# SPDX-License-Identifier: Apache-2.0
"""Reinitialization of the memory resources, and the hooks called before it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

from .pylibrmm.memory_resource import is_initialized
from .pylibrmm.memory_resource._current import initialization

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from typing_extensions import ParamSpec

    P = ParamSpec("P")
T = TypeVar("T")

__all__ = [
    "RMMError",
    "is_initialized",
    "register_reinitialize_hook",
    "reinitialize",
    "unregister_reinitialize_hook",
]


class RMMError(Exception):
    """``RMMError(errcode, msg)``: for programs that use the name; this package never raises it."""

    def __init__(self, errcode: int, msg: str) -> None:
        self.errcode = errcode
        super().__init__(msg)


_lock = threading.Lock()
_hooks: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []


def reinitialize(
    pool_allocator: bool = False,
    managed_memory: bool = False,
    initial_pool_size: int | str | None = None,
    maximum_pool_size: int | str | None = None,
    devices: int | Iterable[int] | None = 0,
    logging: bool = False,
    log_file_name: str | os.PathLike[str] | None = None,
) -> None:
    """Calls the hooks, last registered first, and sets the resource of each of ``devices``.

    The resource has device memory, or shared memory if ``managed_memory``; it is a pool if
    ``pool_allocator``, with the sizes of ``mr.PoolMemoryResource``, and logged if ``logging``, as
    by ``mr.LoggingResourceAdaptor``. Raises the errors of these classes, and ValueError for a
    device that does not exist. Other devices return to driver memory. Existing buffers remain
    valid: their memory returns to the resource that allocated it. Invalid arguments raise before
    the hooks are called. On a later failure the former resources are restored; if ``logging``,
    without the logs that they had.
    """
    initialize = initialization(
        pool_allocator,
        managed_memory,
        initial_pool_size,
        maximum_pool_size,
        devices,
        logging,
        log_file_name,
    )
    with _lock:
        hooks = list(reversed(_hooks))
    for hook, args, kwargs in hooks:
        hook(*args, **kwargs)
    initialize()


def register_reinitialize_hook(
    func: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> Callable[P, T]:
    """Registers ``func(*args, **kwargs)`` as a hook of ``reinitialize``; returns ``func``."""
    if not callable(func):
        raise TypeError(f"func must be callable, not {func!r}")
    with _lock:
        _hooks.append((func, args, kwargs))
    return func


def unregister_reinitialize_hook(func: Callable[..., Any]) -> None:
    """Removes all registrations of ``func``."""
    with _lock:
        _hooks[:] = [hook for hook in _hooks if hook[0] != func]
