"""The current device's resource as PyTorch's allocator: ``rmm_torch_allocator``.

For ``torch.cuda.memory.change_current_allocator``, before PyTorch has memory of CUDA's. It is made
when it is first used. Each allocation is of the resource that is current then on its device, and
goes back there. None where there is no PyTorch with CUDA. ``isthmus.torch.use()`` is the shorter
and faster way for one resource, and ``isthmus.torch.stats()`` has its counts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from isthmus import devices
from isthmus.compat.rmm.pylibrmm.memory_resource._current import follow


def __getattr__(name: str) -> Any:
    if name != "rmm_torch_allocator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import torch.cuda.memory as torch_memory
        from torch.cuda import is_available

        from isthmus.torch import _following_allocator
    except ImportError:
        return None
    return _made(torch_memory, _following_allocator) if is_available() else None


@cache
def _made(torch_memory: Any, following_allocator: Any) -> Any:
    allocator, serve = following_allocator()
    ordinals = {device: number for number, device in enumerate(devices("cuda"))}

    def serve_from(device: Any, resource: Any) -> None:
        if device in ordinals:
            serve(ordinals[device], resource)

    follow(serve_from, list(ordinals))
    return torch_memory._CUDAAllocator(allocator)
