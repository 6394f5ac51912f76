# SPDX-License-Identifier: Apache-2.0
"""The current device and context, and the queue of work on them that does not name one."""

from __future__ import annotations

import threading
import weakref

from isthmus._core import Context, Device, Queue, current_device, current_queue

__all__ = ["context", "device", "global_queue"]

# For contexts that are not the default ones of their devices. A queue may be dropped without
# affecting order: operations on the same memory are ordered even across queues.
_queues: weakref.WeakValueDictionary[tuple[Context, Device], Queue] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def device() -> Device:
    """The current device: ``isthmus.current_device()``."""
    return current_device()


def context() -> Context:
    """The context of the current queue, which the current device belongs to."""
    return current_queue().context


def global_queue(ctx: Context, dev: Device) -> Queue:
    """The queue that all users of that device in that context share.

    In the device's default context it is the device's default queue. Always returns the same object
    while that is referenced. Raises WrongContextError for a device that is not in the context.
    """
    check(ctx, dev)
    if dev.default_context == ctx:
        return dev.default_queue
    with _lock:
        queue = _queues.get((ctx, dev))
        if queue is None:
            queue = _queues[ctx, dev] = Queue(dev, context=ctx)
        return queue


def check(ctx: object, dev: object) -> None:
    """TypeError if the arguments are not a context and a device."""
    if not isinstance(ctx, Context):
        raise TypeError(f"ctx must be an isthmus.Context, not {type(ctx).__name__}")
    if not isinstance(dev, Device):
        raise TypeError(f"dev must be an isthmus.Device, not {type(dev).__name__}")
