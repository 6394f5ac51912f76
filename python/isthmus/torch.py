# SPDX-License-Identifier: Apache-2.0
"""Isthmus as PyTorch's CUDA allocator.

Call ``use()`` before PyTorch uses a device; from then on a pool of Isthmus on each device allocates
every tensor. ``allocator(resource)`` is for a part of a program, with ``torch.cuda.MemPool``.
``docs/allocators.md`` lists what PyTorch does not route through pluggable allocators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _frameworks

if TYPE_CHECKING:
    from collections.abc import Callable

    from .memory import MemoryResource

__all__ = ["Stats", "allocator", "stats", "use"]

_active_number: int | None = None  # the number of the functions that PyTorch uses
_allocators: dict[int, Any] = {}  # PyTorch's objects; it calls the functions until exit


@dataclass(frozen=True)
class Stats:
    """PyTorch's use of one device's memory through Isthmus."""

    live_bytes: int
    """Bytes in use by tensors, as requested."""
    live_count: int
    peak_live_bytes: int
    total_bytes: int
    """Bytes allocated so far."""
    total_count: int
    held_bytes: int
    """Bytes that the resource holds of the driver's memory, for all its users."""
    peak_held_bytes: int | None
    """None for a resource that was passed: use its budget."""
    free_bytes: int
    """The unused part of the held bytes."""
    maps: int
    """How often the driver allocated memory, or mapped memory at another address."""
    unmaps: int
    """How often memory was returned to the driver, or unmapped from its address."""


def use(resource: MemoryResource | None = None) -> None:
    """Sets Isthmus as PyTorch's CUDA allocator until the process exits.

    ``resource``, of device memory, serves its device; for the other devices, or for all devices if
    None, a pool is created with their first tensor. A second call with the same argument does
    nothing. RuntimeError if PyTorch's own allocator, or another one, is already in use, as after
    PyTorch's first operation on a device.
    """
    global _active_number
    torch = _torch()
    number = _frameworks.torch_number(resource)
    if _active_number == number:
        return
    if _active_number is not None:
        raise RuntimeError(
            "PyTorch already uses another resource of Isthmus, and its allocator can be set only "
            "once in a process: use isthmus.torch.allocator for a part of a program"
        )
    if torch.cuda.is_initialized():
        raise RuntimeError(
            "PyTorch's own allocator is in use already: call isthmus.torch.use() before any use "
            "of a CUDA device, preferably right after `import torch`"
        )
    torch.cuda.memory.change_current_allocator(
        torch.cuda.memory._CUDAAllocator(_allocator_of(torch, number))
    )
    _active_number = number


def allocator(resource: MemoryResource | None = None) -> Any:
    """For ``torch.cuda.MemPool(isthmus.torch.allocator(resource))``, if PyTorch has that.

    Tensors created in ``with torch.cuda.use_mem_pool(pool):`` are allocated from the resource,
    through PyTorch's own caching. At most 15 resources in a process.
    """
    return _allocator_of(_torch(), _frameworks.torch_number(resource))


def _following_allocator() -> tuple[Any, Callable[[int, MemoryResource | None], None]]:
    """An allocator whose resources can change, and a function that sets the resource of a device
    number.

    Blocks are returned to the resource that allocated them. For ``isthmus.compat``.
    """
    number = _frameworks.torch_following()

    def serve(device: int, resource: MemoryResource | None) -> None:
        _frameworks.torch_follow(number, device, resource)

    return _allocator_of(_torch(), number), serve


def stats(device: Any = None, resource: MemoryResource | None = None) -> Stats:
    """PyTorch's use of a device, in PyTorch's notation; None: its current device.

    ``resource``: that of an ``allocator``; None: that of ``use()``.
    """
    torch = _torch()
    index = device if isinstance(device, int) else torch.device(device or "cuda").index
    if index is None:
        index = torch.cuda.current_device()
    number = _active_number if resource is None else _frameworks.torch_number(resource)
    if number is None:
        raise RuntimeError("PyTorch does not use Isthmus: call isthmus.torch.use() first")
    return Stats(**_frameworks.torch_usage(number, index))


def _torch() -> Any:
    try:
        import torch
    except ImportError as absent:
        raise ImportError(
            "isthmus.torch needs PyTorch, with CUDA: pip install torch", name="torch"
        ) from absent
    if not hasattr(torch._C, "_cuda_customAllocator"):
        raise ImportError(
            f"isthmus.torch: PyTorch {torch.__version__} is built without CUDA, or is older than "
            "2.0, and does not support other allocators",
            name="torch",
        )
    return torch


def _allocator_of(torch: Any, number: int) -> Any:
    if number not in _allocators:
        functions = _frameworks.torch_functions(number)
        allocator = torch._C._cuda_customAllocator(functions.pop("alloc"), functions.pop("free"))
        for setter, address in functions.items():
            if hasattr(allocator, setter):  # the setters differ between versions of PyTorch
                getattr(allocator, setter)(address)
        _allocators[number] = allocator
    return _allocators[number]
