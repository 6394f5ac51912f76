"""Setting memory up again, and who is told before."""

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
    """``RMMError(errcode, msg)``: for programs that raise or catch it; nothing here raises it."""

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
    """Calls the hooks, the last registered first, and sets the resource of each of ``devices``.

    Device memory, or shared (``managed_memory``), in a pool (``pool_allocator``) with the sizes of
    ``mr.PoolMemoryResource``, under a log (``logging``) as ``mr.LoggingResourceAdaptor``; what
    these raise. Other devices have the driver's memory again. Buffers stay valid: their memory
    goes back to where it came from. ValueError for a device that is not there. Bad arguments are
    told before the hooks are called. On a failure after that the resources are the former ones;
    if there were to be logs, what was below their own.
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
    """``func(*args, **kwargs)`` is called before each ``reinitialize``. Returns ``func``."""
    if not callable(func):
        raise TypeError(f"func must be callable, not {func!r}")
    with _lock:
        _hooks.append((func, args, kwargs))
    return func


def unregister_reinitialize_hook(func: Callable[..., Any]) -> None:
    """It is called no more, however often it was registered."""
    with _lock:
        _hooks[:] = [hook for hook in _hooks if hook[0] != func]
