"""dpctl.memory's names, with dpctl's behaviour, of pooled memory and with copies that are ours.

The three classes are subclasses of dpctl's own, and go wherever those go: to ``SyclQueue.memcpy``,
to kernels, to ``usm_ndarray(buffer=)``, to its C functions. Memory comes from one pool a context,
device and kind, or from what ``isthmus.set_resource`` and ``using`` have set.

An address that was told, by ``_pointer``, the interface or to dpctl itself, may be used by work on
the object's queue: from then on its copies come behind that work, and its memory goes to nobody
else before that has ended. What nobody was told of is copied and goes back at once.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import isthmus
from isthmus import _core, default_pool

from . import _layout
from ._dpctl import TheirError, dpctl, get_device_cached_queue, theirs

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


class USMAllocationError(isthmus.USMAllocationError, TheirError):  # type: ignore[misc]
    """There is no such memory; the message tells what was asked for and what is left."""


class _AlignmentError(USMAllocationError, ValueError):
    """An alignment that is no power of two, or more than the device can."""


_KEPT = 16
_made: dict[tuple[isthmus.Context, isthmus.Device], tuple[Any, ...]] = {}
_making = threading.Lock()


def _pools(context: isthmus.Context, device: isthmus.Device) -> tuple[Any, ...]:
    """A queue and a pool of each kind: one each, as long as one of the pools is in use."""
    with _making:
        found = _made.get((context, device))
        if found is None:
            unused = [key for key in _made if len(_made) >= _KEPT and _is_empty(key)]
            for each in unused:
                del _made[each]
            if unused:
                _core._forget_dpctl_queues()  # or it would go on with these pools
            own = isthmus.Queue(device, context=context)
            found = _made[context, device] = (
                own,
                *(default_pool(k, queue=own) if k in device.kinds else None for k in _KINDS),
            )
        return found


def _is_empty(key: tuple[isthmus.Context, isthmus.Device]) -> bool:
    pools = [each for each in _made[key][1:] if each is not None]
    for each in pools:
        each.trim()
    return not any(each.held_bytes for each in pools)


def _prepare(queue: dpctl.SyclQueue | None) -> tuple[Any, ...]:
    if queue is None:
        queue = get_device_cached_queue(dpctl.SyclDevice())
    ours = isthmus.Queue.from_sycl(queue)
    return queue, ours, *_pools(ours.context, ours.device)


def pool(kind: str = "device", queue: dpctl.SyclQueue | None = None) -> PoolResource | None:
    """The pool that memory of ``kind`` in the context of ``queue`` comes from, to look at or trim.

    ``queue`` None: dpctl's default one. None where its device has no memory of that kind.
    ValueError for what is no kind.
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {_KINDS}, not {kind!r}")
    found: PoolResource | None = _prepare(queue)[3 + _KINDS.index(kind)]
    return found


_layout.check(theirs)
MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost = _core._make_dpctl_classes(
    theirs, dpctl.SyclQueue, USMAllocationError, _AlignmentError, _prepare
)
__pyx_capi__ = theirs.__pyx_capi__


def as_usm_memory(obj: object) -> Any:
    """The memory of any object with __sycl_usm_array_interface__, as the class of its kind.

    Nothing is copied, and ``obj`` is kept alive. ValueError for an object without it, for values
    that cannot be, and for memory that its context does not know or that ends before they do;
    TypeError for entries of a wrong type.
    """
    return _core._as_dpctl_memory(obj)


def _to_memory(contents: Any, kind: str) -> Any:
    """Makes a pickled object again, on dpctl's default queue."""
    classes = dict(zip(_KINDS, (MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost), strict=True))
    if kind not in classes:
        raise ValueError(f"the pickle is of memory of kind {kind!r}: there are {_KINDS}")
    made = classes[kind](len(contents))
    made.copy_from_host(contents)
    return made
