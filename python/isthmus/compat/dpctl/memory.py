# SPDX-License-Identifier: Apache-2.0
"""dpctl.memory's names and behaviour, with pooled memory and with copies made by Isthmus.

The three classes are subclasses of dpctl's own and are accepted wherever those are: by
``SyclQueue.memcpy``, kernels, ``usm_ndarray(buffer=)`` and dpctl's C functions. Memory comes from
one pool for each context, device and kind, or from the resource that ``isthmus.set_resource`` or
``using`` has set.

Once an object's address has been exposed, through ``_pointer``, the array interface or to dpctl
itself, work on the object's queue may use it. From then on, copies of the object are ordered after
that work, and its memory is not reused before that work has completed. Copies of an object whose
address was never exposed need not wait, and its memory is reused at once.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import isthmus
from isthmus import _dpctl as _native
from isthmus import default_pool
from isthmus._not_loaded import loads_pickles

from . import _layout
from ._dpctl import DpctlAllocationError, dpctl, dpctl_module, get_device_cached_queue

if TYPE_CHECKING:
    from isthmus.memory import PoolResource

__all__ = [
    "MemoryUSMDevice",
    "MemoryUSMHost",
    "MemoryUSMShared",
    "USMAllocationError",
    "as_usm_memory",
    "pool",
]

_KINDS = ("device", "shared", "host")


class USMAllocationError(isthmus.USMAllocationError, DpctlAllocationError):  # type: ignore[misc]
    """The allocation failed; the message states the request and the free memory."""


class _AlignmentError(USMAllocationError, ValueError):
    """An alignment that is not a power of two, or that exceeds the device's maximum."""


_MAX_UNUSED = 16
_cache: dict[tuple[isthmus.Context, isthmus.Device], tuple[Any, ...]] = {}
_lock = threading.Lock()


def _pools(context: isthmus.Context, device: isthmus.Device) -> tuple[Any, ...]:
    """A queue and a pool for each kind; cached for as long as any of the pools is in use."""
    with _lock:
        pools = _cache.get((context, device))
        if pools is None:
            unused = [key for key in _cache if len(_cache) >= _MAX_UNUSED and _is_empty(key)]
            for each in unused:
                del _cache[each]
            if unused:
                _native.forget_queues()  # the native module's cache refers to these pools
            queue = isthmus.Queue(device, context=context)
            pools = _cache[context, device] = (
                queue,
                *(default_pool(k, queue=queue) if k in device.kinds else None for k in _KINDS),
            )
        return pools


def _is_empty(key: tuple[isthmus.Context, isthmus.Device]) -> bool:
    pools = [each for each in _cache[key][1:] if each is not None]
    for each in pools:
        each.trim()
    return not any(each.held_bytes for each in pools)


def _prepare(queue: dpctl.SyclQueue | None) -> tuple[Any, ...]:
    if queue is None:
        queue = get_device_cached_queue(dpctl.SyclDevice())
    isthmus_queue = isthmus.Queue.from_sycl(queue)
    return queue, isthmus_queue, *_pools(isthmus_queue.context, isthmus_queue.device)


def pool(kind: str = "device", queue: dpctl.SyclQueue | None = None) -> PoolResource | None:
    """The pool for memory of ``kind`` in the context of ``queue``, for inspection or trimming.

    ``queue``: None for dpctl's default queue. Returns None if the queue's device has no memory of
    that kind. ValueError for an unknown kind.
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {_KINDS}, not {kind!r}")
    found: PoolResource | None = _prepare(queue)[3 + _KINDS.index(kind)]
    return found


_layout.check(dpctl_module)
MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost = _native.make_classes(
    dpctl_module, dpctl.SyclQueue, USMAllocationError, _AlignmentError, _prepare
)
__pyx_capi__ = dpctl_module.__pyx_capi__


def as_usm_memory(obj: object) -> Any:
    """The memory of any object with __sycl_usm_array_interface__, as the class of its kind.

    Nothing is copied; ``obj`` is kept alive. Raises ValueError for an object without the interface,
    for invalid values in it, for memory unknown to its context, and for an extent past the end of
    the allocation; TypeError for entries of a wrong type.
    """
    return _native.as_usm_memory(obj)


@loads_pickles
def _to_memory(contents: Any, kind: str) -> Any:
    """Restores a pickled object on dpctl's default queue."""
    classes = dict(zip(_KINDS, (MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost), strict=True))
    if kind not in classes:
        raise ValueError(f"the pickle has memory of kind {kind!r}: supported are {_KINDS}")
    memory = classes[kind](len(contents))
    memory.copy_from_host(contents)
    return memory
