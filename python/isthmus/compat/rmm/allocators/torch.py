"""The current device's resource as PyTorch's allocator: ``rmm_torch_allocator``.

For ``torch.cuda.memory.change_current_allocator``, before PyTorch has memory of CUDA's. It is made
when it is asked for, of the resource that is current then; devices that this does not serve get a
pool each. None where there is no PyTorch with CUDA. ``isthmus.torch.use()`` is the shorter way, and
``isthmus.torch.stats()`` tells what PyTorch's own statistics do not any more.
"""

from __future__ import annotations

from typing import Any

from isthmus.compat.rmm.mr import get_current_device_resource


def __getattr__(name: str) -> Any:
    if name != "rmm_torch_allocator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from torch.cuda import is_available
        from torch.cuda.memory import _CUDAAllocator

        from isthmus.torch import allocator
    except ImportError:
        return None
    if not is_available():
        return None
    return _CUDAAllocator(allocator(get_current_device_resource().resource))
