# SPDX-License-Identifier: Apache-2.0
"""Checks of ``__array_interface__``, whose numbers NumPy uses without a check."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from ._core import _to_check
from ._strict import strict

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ADDRESS_LIMIT = 1 << 64
_NUMBER_LIMIT = 1 << 63
_MAX_DEPTH = 64  # NumPy does not read items nested deeper


def readable(obj: Any, outer: tuple[int, ...] = ()) -> Any:
    """``obj``, or an object that NumPy can read instead; ``outer``: the lists that contain ``obj``.

    An object whose ``__array_interface__`` names another object with memory is replaced by NumPy's
    array over that memory. A sequence, whose items NumPy would read in the same way, is replaced by
    a list of such arrays.

    ValueError for impossible addresses, extents or strides, and if elements lie outside that
    memory; TypeError if the elements are references to Python objects. An interface with an address
    does not contain the size of the memory, so bounds are not checked in that case.
    """
    is_read = id(obj) not in outer and len(outer) <= _MAX_DEPTH
    found = _to_check(obj) if is_read else None
    if found is None:
        return obj
    if found is obj:
        entries = _entries_of(obj)
        return obj if entries is None else _array_of(obj, entries)
    outer_and_this = (*outer, id(obj))
    checked = [readable(each, outer_and_this) for each in found]
    is_same = all(map(operator.is_, checked, found))
    return obj if is_same else checked


def _array_of(obj: Any, entries: dict[str, Any]) -> Any:
    """An array over the memory of the object that the entries name; ``obj`` itself if they
    contain an address.
    """
    _require_sound(entries)
    if isinstance(entries.get("data", ()), tuple):
        return obj
    import numpy as np

    data = entries["data"]
    memory = memoryview(obj if data is None else data)
    # From the dictionary that was checked, not from `obj`, which may return another one on the next
    # access.
    array = np.asarray(_Interface({**entries, "data": memory}))
    if array.dtype.hasobject:
        raise TypeError(
            f"the __array_interface__ of {type(obj).__name__} would read bytes as references to "
            "Python objects: use a numeric typestr"
        )
    _require_within(array, memory)
    return array


class _Interface:
    def __init__(self, entries: dict[str, Any]) -> None:
        self.__array_interface__ = entries


def _entries_of(obj: Any) -> dict[str, Any] | None:
    """The interface's entries; None if NumPy does not read the object by that interface."""
    try:
        with strict():  # NumPy warns, if it reads the memory
            entries = getattr(obj, "__array_interface__", None)
        if entries is None or hasattr(obj, "__array_struct__"):
            return None
    except MemoryError:
        raise
    except Exception:  # NumPy raises the error again, or reads another protocol
        return None
    return entries if isinstance(entries, dict) else None


def _require_sound(entries: dict[str, Any]) -> None:
    """Checks the numbers: NumPy uses them unchecked, or raises OverflowError."""
    data = entries.get("data")
    address = data[:1] if isinstance(data, tuple) else ()
    addresses = _integers("data pointer", address, 0, _ADDRESS_LIMIT)
    shape = _integers("shape", entries.get("shape"), 0, _NUMBER_LIMIT)
    strides = _integers("strides", entries.get("strides"), -_NUMBER_LIMIT, _NUMBER_LIMIT)
    _integers("offset", (entries.get("offset"),), -_NUMBER_LIMIT, _NUMBER_LIMIT)
    if addresses and strides and len(strides) == len(shape) and 0 not in shape:
        _require_addresses(addresses[0], shape, strides, entries)


def _integers(name: str, values: Any, minimum: int, limit: int) -> list[int]:
    """The integers of a tuple. NumPy itself rejects values that are not a tuple of integers."""
    integers = []
    for each in values if isinstance(values, (tuple, list)) else ():
        try:
            number = operator.index(each)
        except MemoryError:
            raise
        except Exception:
            return []
        if not minimum <= number < limit:
            raise ValueError(
                f"{name} of __array_interface__ must be in {minimum}..{limit - 1}, not "
                f"{number if number.bit_length() <= 128 else f'{number.bit_length()} bits'}"
            )
        integers.append(number)
    return integers


def _require_addresses(first: int, shape: list[int], strides: list[int], entries: Any) -> None:
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low = first + sum(step for step in steps if step < 0)
    high = first + sum(step for step in steps if step > 0)
    if low < 0 or high >= _ADDRESS_LIMIT or high - low >= _NUMBER_LIMIT:
        raise ValueError(
            "the elements of __array_interface__ do not fit in the address space of 2**64 bytes: "
            f"{entries!r}"
        )


def _require_within(array: NDArray[Any], memory: memoryview) -> None:
    entries = {"version": 3, "typestr": "|u1", "shape": (memory.nbytes,), "data": memory}
    import numpy as np

    begin = np.asarray(_Interface(entries)).__array_interface__["data"][0]
    low, high = extent_of(array)
    if array.size and not begin <= low <= high <= begin + memory.nbytes:
        raise ValueError(
            f"__array_interface__: elements of {array.itemsize} bytes, of shape {array.shape} and "
            f"strides {array.strides}, need bytes {low - begin} to {high - begin} of memory that "
            f"has {memory.nbytes} bytes: correct its shape, strides or offset"
        )


def extent_of(source: NDArray[Any]) -> tuple[int, int]:
    """The address of the elements' first byte, and the address after their last byte."""
    steps = [
        (extent - 1) * stride for extent, stride in zip(source.shape, source.strides, strict=True)
    ]
    first = source.__array_interface__["data"][0]
    before = sum(step for step in steps if step < 0)
    return first + before, first + sum(steps) - before + source.itemsize
