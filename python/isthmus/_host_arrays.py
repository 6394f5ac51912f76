"""What NumPy makes an array of, and what it would take unchecked or not at all."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from ._core import Array, Error, _array_from_dlpack, _array_from_interface

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENDS = ("__sycl_usm_array_interface__", "__dlpack_device__", "__cuda_array_interface__")
_NUMPYS = ("__array__", "__array_interface__", "__array_struct__")
# What NumPy says of values; all else an item's own methods raised.
_REASONS = (TypeError, ValueError, OverflowError, Warning, Error)
_ADDRESSES = 1 << 64
_NUMBERS = 1 << 63


def host_array(obj: Any, dtype: Any = None) -> NDArray[Any]:
    """``numpy.asarray``, also of lists that have other libraries' arrays among their items.

    NumPy refuses those, as ``[cupy.array(1), cupy.array(2)]``, or takes them for objects: here they
    are copied to the host, one by one. ValueError for an ``__array_interface__`` with addresses,
    extents or strides that cannot be.
    """
    import numpy as np

    _require_sound(obj)
    try:
        made = np.asarray(obj, dtype)
    except MemoryError:
        raise
    except Exception as failed:
        copied = _with_host_items(obj)
        if copied is not None:
            return np.asarray(copied, dtype)
        if isinstance(failed, _REASONS) or not isinstance(obj, (list, tuple)):
            raise
        raise TypeError("a list has an item that is no number") from failed
    copied = _with_host_items(obj) if made.dtype.kind == "O" else None
    return made if copied is None else np.asarray(copied, dtype)


def _with_host_items(given: Any, outer: tuple[int, ...] = ()) -> list[Any] | None:
    """A nested list with NumPy's arrays for other libraries'; None if it has none of them."""
    if not isinstance(given, (list, tuple)) or id(given) in outer:
        return None
    copies = [
        _copied(each) if _is_lent(each) else _with_host_items(each, (*outer, id(given)))
        for each in given
    ]
    if all(copy is None for copy in copies):
        return None
    return [each if copy is None else copy for each, copy in zip(given, copies, strict=True)]


def _is_lent(obj: Any) -> bool:
    import numpy as np

    own = isinstance(obj, (np.ndarray, np.generic, type))
    return not own and any(hasattr(obj, name) for name in _LENDS + _NUMPYS)


def _copied(obj: Any) -> NDArray[Any]:
    import numpy as np

    if not any(hasattr(obj, name) for name in _LENDS):
        return np.asarray(obj)
    made = obj if isinstance(obj, Array) else _array_from_interface(obj)
    copy: NDArray[Any] = (_array_from_dlpack(obj) if made is None else made).to_numpy()
    return copy


def _require_sound(obj: Any) -> None:
    """Of NumPy's dictionary, whose numbers it takes as they come, or raises OverflowError for."""
    import numpy as np

    if isinstance(obj, (np.ndarray, np.generic, int, float, complex, list, tuple)):
        return
    try:
        told = obj.__array_interface__
    except MemoryError:
        raise
    except Exception:  # NumPy raises it again, or reads another protocol
        return
    if not isinstance(told, dict):
        return
    data = told.get("data")
    place = data[:1] if isinstance(data, tuple) else ()
    addresses = _integers("data pointer", place, 0, _ADDRESSES)
    shape = _integers("shape", told.get("shape"), 0, _NUMBERS)
    strides = _integers("strides", told.get("strides"), -_NUMBERS, _NUMBERS)
    _integers("offset", (told.get("offset"),), -_NUMBERS, _NUMBERS)
    if addresses and strides and len(strides) == len(shape) and 0 not in shape:
        _require_addresses(addresses[0], shape, strides, told)


def _integers(name: str, given: Any, least: int, end: int) -> list[int]:
    """Those of a tuple. What is none NumPy refuses itself."""
    found = []
    for each in given if isinstance(given, (tuple, list)) else ():
        try:
            number = operator.index(each)
        except Exception:
            return []
        if not least <= number < end:
            raise ValueError(
                f"{name} of __array_interface__ must lie in {least}..{end - 1}, not "
                f"{number if number.bit_length() <= 128 else f'{number.bit_length()} bits'}"
            )
        found.append(number)
    return found


def _require_addresses(first: int, shape: list[int], strides: list[int], told: Any) -> None:
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low = first + sum(step for step in steps if step < 0)
    high = first + sum(step for step in steps if step > 0)
    if low < 0 or high >= _ADDRESSES or high - low >= _NUMBERS:
        raise ValueError(f"__array_interface__ reaches beyond any address, 2**64: {told!r}")
