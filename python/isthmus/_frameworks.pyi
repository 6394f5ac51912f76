"""The native part of isthmus.torch, isthmus.cupy and isthmus.numba."""



# Written by the target isthmus_stub of python/CMakeLists.txt: do not edit.
from typing import Any

from ._core import MemoryResource, PoolResource, Queue

def torch_number(resource: MemoryResource | None) -> int:
    """The number of the set of functions that use this resource."""

def torch_following() -> int:
    """
    The number of a set of functions that use the resources last set by torch_follow.
    """

def torch_follow(number: int, device: int, resource: MemoryResource | None) -> None:
    """Makes the resource serve that device; None: a pool of the allocator."""

def torch_functions(number: int) -> dict[str, int]:
    """The addresses of the functions, by the names of PyTorch's setters."""

def torch_usage(number: int, device: int) -> dict[str, Any]:
    """The fields of isthmus.torch.Stats."""

def device_pool(device: int) -> PoolResource:
    """
    The pool for the CUDA device of that number, if frameworks name no resource.
    """

class BareBlock:
    """
    Memory that is returned, in the order of its queue, when this object is destroyed.
    """

    def __init__(self, resource: MemoryResource, queue: Queue, nbytes: int) -> None: ...

    @property
    def ptr(self) -> int:
        """
        The address of
        the memory.
        """
