"""Isthmus as PyTorch's CUDA allocator.

``use()`` before PyTorch touches a device; from then on every tensor comes from a pool of Isthmus,
one on each device. ``allocator(resource)`` is for a part of a program, by ``torch.cuda.MemPool``.
What PyTorch does not route through an allocator of others is in ``docs/allocators.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from .memory import MemoryResource

__all__ = ["Stats", "allocator", "stats", "use"]

_used: int | None = None  # the number of the functions that PyTorch has
_allocators: dict[int, Any] = {}  # PyTorch's objects for them, kept: it calls them till the end


@dataclass(frozen=True)
class Stats:
    """What PyTorch has of one device's memory, through Isthmus."""

    live_bytes: int
    """What tensors have, as asked for."""
    live_count: int
    peak_live_bytes: int
    total_bytes: int
    """Allocated so far."""
    total_count: int
    held_bytes: int
    """What the resource has of the driver's, for whomever."""
    peak_held_bytes: int | None
    """None for a resource of your own: ask its budget."""
    free_bytes: int
    """Of those held, what nobody has."""
    maps: int
    """Times that the driver gave memory, or mapped some where it was needed."""
    unmaps: int
    """Times that it got some back, or took some from where it was."""


def use(resource: MemoryResource | None = None) -> None:
    """From here on PyTorch has its CUDA memory from Isthmus, till the process ends.

    ``resource``, of device memory, serves its device; the other devices, and all without it, get a
    pool each at their first tensor. The same again does nothing. RuntimeError once PyTorch's own
    allocator, or another one, is in use: that begins with the first thing that it does on a device.
    """
    global _used
    torch = _torch()
    number = _core._torch_number(resource)
    if _used == number:
        return
    if _used is not None:
        raise RuntimeError(
            "PyTorch has its memory from another resource of Isthmus already, and an allocator is "
            "chosen once in a process; for a part of a program there is isthmus.torch.allocator"
        )
    if torch.cuda.is_initialized():
        raise RuntimeError(
            "PyTorch's own allocator is in use already: call isthmus.torch.use() before anything "
            "that touches a CUDA device, at best right behind `import torch`"
        )
    torch.cuda.memory.change_current_allocator(
        torch.cuda.memory._CUDAAllocator(_allocator_of(torch, number))
    )
    _used = number


def allocator(resource: MemoryResource | None = None) -> Any:
    """For ``torch.cuda.MemPool(isthmus.torch.allocator(resource))``, where PyTorch has that.

    Tensors made in ``with torch.cuda.use_mem_pool(pool):`` have their memory from the resource, by
    way of PyTorch's own caching. At most 15 resources in a process.
    """
    return _allocator_of(_torch(), _core._torch_number(resource))


def _following_allocator() -> tuple[Any, Callable[[int, MemoryResource | None], None]]:
    """An allocator whose resources change, and what sets that of a device, by its number.

    Blocks go back to the resource that they came from. For ``isthmus.compat``.
    """
    number = _core._torch_following()

    def serve(device: int, resource: MemoryResource | None) -> None:
        _core._torch_follow(number, device, resource)

    return _allocator_of(_torch(), number), serve


def stats(device: Any = None, resource: MemoryResource | None = None) -> Stats:
    """What PyTorch has on a device, as it names one; None: its current one.

    ``resource``: that an ``allocator`` was made for; None: of ``use()``.
    """
    torch = _torch()
    index = device if isinstance(device, int) else torch.device(device or "cuda").index
    if index is None:
        index = torch.cuda.current_device()
    number = _used if resource is None else _core._torch_number(resource)
    if number is None:
        raise RuntimeError("PyTorch has no memory of Isthmus: call isthmus.torch.use() first")
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
            "2.0, and takes no allocator",
            name="torch",
        )
    return torch


def _allocator_of(torch: Any, number: int) -> Any:
    if number not in _allocators:
        functions = _core._torch_functions(number)
        made = torch._C._cuda_customAllocator(functions.pop("alloc"), functions.pop("free"))
        for setter, address in functions.items():
            if hasattr(made, setter):  # they differ between versions of PyTorch
                getattr(made, setter)(address)
        _allocators[number] = made
    return _allocators[number]
