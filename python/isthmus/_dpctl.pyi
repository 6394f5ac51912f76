"""The native part of isthmus.compat.dpctl."""



# Written by the target isthmus_stub of python/CMakeLists.txt: do not edit.
from collections.abc import Callable
from typing import Any

def make_classes(memory_module: Any, queue: Any, allocation_error: type, alignment_error: type, prepare: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, Any, Any]:
    """
    The classes of isthmus.compat.dpctl.memory, for dpctl's memory module and its
    queue class.
    """

def forget_queues() -> None:
    """Drops the cached results of `prepare`."""

def as_usm_memory(obj: object) -> Any:
    """isthmus.compat.dpctl.memory.as_usm_memory."""
