# SPDX-License-Identifier: Apache-2.0
"""The current device's resource as PyTorch's allocator: ``rmm_torch_allocator``.

Pass it to ``torch.cuda.memory.change_current_allocator`` before PyTorch allocates CUDA memory. It
is created on first use, and is None without a PyTorch that supports CUDA. Each allocation uses the
resource that is current on its device at the time, and returns to that resource.
``isthmus.torch.use()`` is shorter and faster for a single resource, and ``isthmus.torch.stats()``
reports its counts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from isthmus import devices
from isthmus.compat.rmm.pylibrmm.memory_resource._per_device import follow


def __getattr__(name: str) -> Any:
    if name != "rmm_torch_allocator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import torch.cuda.memory as torch_memory
        from torch.cuda import is_available

        from isthmus.torch import _following_allocator
    except ImportError:
        return None
    return _create(torch_memory, _following_allocator) if is_available() else None


@cache
def _create(torch_memory: Any, following_allocator: Any) -> Any:
    allocator, serve = following_allocator()
    ordinals = {device: number for number, device in enumerate(devices("cuda"))}

    def serve_from(device: Any, resource: Any) -> None:
        if device in ordinals:
            serve(ordinals[device], resource)

    follow(serve_from, list(ordinals))
    return torch_memory._CUDAAllocator(allocator)
