# SPDX-License-Identifier: Apache-2.0
"""Isthmus as PyTorch's CUDA allocator.

``use()`` before PyTorch uses a device; from then on every tensor comes from a pool of Isthmus, one
on each device. ``allocator(resource)`` is for a part of a program, with ``torch.cuda.MemPool``.
``docs/allocators.md`` lists what PyTorch does not route through pluggable allocators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from .memory import MemoryResource

__all__ = ["Stats", "allocator", "stats", "use"]

_active_number: int | None = None  # the number of the functions that PyTorch uses
_allocators: dict[int, Any] = {}  # PyTorch's objects for them; it calls them until the end


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
    """None for a resource of your own: use its budget."""
    free_bytes: int
    """The unused bytes of those held."""
    maps: int
    """How often the driver gave memory, or mapped some at another address."""
    unmaps: int
    """How often memory was returned to the driver, or unmapped from its address."""


def use(resource: MemoryResource | None = None) -> None:
    """From here on PyTorch's CUDA memory comes from Isthmus, until the process ends.

    ``resource``, of device memory, serves its device; the other devices, and all devices without
    it, get a pool each at their first tensor. A second call with the same argument does nothing.
    RuntimeError once PyTorch's own allocator, or another one, is in use, which is from PyTorch's
    first operation on a device.
    """
    global _active_number
    torch = _torch()
    number = _core._torch_number(resource)
    if _active_number == number:
        return
    if _active_number is not None:
        raise RuntimeError(
            "PyTorch already uses another resource of Isthmus, and its allocator can be set only "
            "once in a process: use isthmus.torch.allocator for a part of a program"
        )
    if torch.cuda.is_initialized():
        raise RuntimeError(
            "PyTorch's own allocator is in use already: call isthmus.torch.use() before anything "
            "that touches a CUDA device, preferably right after `import torch`"
        )
    torch.cuda.memory.change_current_allocator(
        torch.cuda.memory._CUDAAllocator(_allocator_of(torch, number))
    )
    _active_number = number


def allocator(resource: MemoryResource | None = None) -> Any:
    """For ``torch.cuda.MemPool(isthmus.torch.allocator(resource))``, if PyTorch has that.

    Tensors created in ``with torch.cuda.use_mem_pool(pool):`` have their memory from the resource,
    through PyTorch's own caching. At most 15 resources in a process.
    """
    return _allocator_of(_torch(), _core._torch_number(resource))


def _following_allocator() -> tuple[Any, Callable[[int, MemoryResource | None], None]]:
    """An allocator whose resources change, and a function that sets that of a device, by number.

    Blocks are returned to the resource that they came from. For ``isthmus.compat``.
    """
    number = _core._torch_following()

    def serve(device: int, resource: MemoryResource | None) -> None:
        _core._torch_follow(number, device, resource)

    return _allocator_of(_torch(), number), serve


def stats(device: Any = None, resource: MemoryResource | None = None) -> Stats:
    """PyTorch's use of a device, given as PyTorch names one; None: its current one.

    ``resource``: that of an ``allocator``; None: that of ``use()``.
    """
    torch = _torch()
    index = device if isinstance(device, int) else torch.device(device or "cuda").index
    if index is None:
        index = torch.cuda.current_device()
    number = _active_number if resource is None else _core._torch_number(resource)
    if number is None:
        raise RuntimeError("PyTorch does not use Isthmus: call isthmus.torch.use() first")
    return Stats(**_core._torch_usage(number, index))


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
        functions = _core._torch_functions(number)
        allocator = torch._C._cuda_customAllocator(functions.pop("alloc"), functions.pop("free"))
        for setter, address in functions.items():
            if hasattr(allocator, setter):  # they differ between versions of PyTorch
                getattr(allocator, setter)(address)
        _allocators[number] = allocator
    return _allocators[number]
