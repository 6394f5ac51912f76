# SPDX-License-Identifier: Apache-2.0
"""Memory without arrays: pointers, copies counted in elements, lists of operations, advice.

The names are those of oneAPI.jl's low level, without its exclamation marks. The current device and
context are ``isthmus.current_device()`` and the context of the current queue; everything else is
passed as an argument::

    ctx, dev = low_level.context(), low_level.device()
    ptr = low_level.device_alloc(ctx, dev, 1024, 8)
    data = numpy.random.rand(256).astype("float32")
    low_level.unsafe_copyto(ctx, dev, ptr, data, 256).wait()
    low_level.free(ctx, ptr)

oneAPI.jl calls these functions "unsafe". Here a pointer stores the bounds of its memory, the memory
of a copy is kept alive until the copy has completed, and using a freed pointer is an error. A bare
address is accepted too; the caller must keep its memory alive. Safe to use from any thread.
"""

from __future__ import annotations

from .advice import Advice, advise, evict, make_resident, prefetch
from .commands import CommandList, execute
from .current import context, device, global_queue
from .pointer import UsmPointer, device_alloc, free, host_alloc, shared_alloc
from .properties import (
    Access,
    AccessProperties,
    MemoryProperties,
    lookup_alloc,
    memory_access_properties,
    memory_properties,
    properties,
)
from .transfers import unsafe_copyto, unsafe_fill

__all__ = [
    "Access",
    "AccessProperties",
    "Advice",
    "CommandList",
    "MemoryProperties",
    "UsmPointer",
    "advise",
    "context",
    "device",
    "device_alloc",
    "evict",
    "execute",
    "free",
    "global_queue",
    "host_alloc",
    "lookup_alloc",
    "make_resident",
    "memory_access_properties",
    "memory_properties",
    "prefetch",
    "properties",
    "shared_alloc",
    "unsafe_copyto",
    "unsafe_fill",
]

# Messages and pickles name the public module.
for _public in map(globals().__getitem__, __all__):
    if isinstance(_public, type):
        _public.__module__ = __name__
