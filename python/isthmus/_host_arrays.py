# SPDX-License-Identifier: Apache-2.0
"""Objects that NumPy makes an array of, and those that it would accept unchecked or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import Array, Error, _array_from_dlpack, _array_from_interface
from ._numpys_interface import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENDS = ("__sycl_usm_array_interface__", "__dlpack_device__", "__cuda_array_interface__")
_NUMPYS = ("__array__", "__array_interface__", "__array_struct__")
# What NumPy raises for values; anything else was raised by an item's own methods.
_REASONS = (TypeError, ValueError, OverflowError, Warning, Error)


def host_array(obj: Any, dtype: Any = None) -> NDArray[Any]:
    """``numpy.asarray``, also for lists that contain arrays of other libraries.

    NumPy refuses such lists, for example ``[cupy.array(1), cupy.array(2)]``, or treats the items as
    objects. Here they are copied to the host, one by one. An ``__array_interface__``, also of an
    item, is checked before it is used.
    """
    try:
        return _made_of(readable(obj), dtype)
    except MemoryError:
        raise
    except Exception as failed:
        if isinstance(failed, _REASONS) or not isinstance(obj, (list, tuple)):
            raise
        raise TypeError("a list has an item that is not a number") from failed


def _made_of(source: Any, dtype: Any) -> NDArray[Any]:
    import numpy as np

    try:
        made = np.asarray(source, dtype)
    except MemoryError:
        raise
    except Exception:
        copied = _with_host_items(source)
        if copied is None:
            raise
        return np.asarray(copied, dtype)
    copied = _with_host_items(source) if made.dtype.kind == "O" else None
    return made if copied is None else np.asarray(copied, dtype)


def _with_host_items(given: Any, outer: tuple[int, ...] = ()) -> list[Any] | None:
    """A nested list with NumPy arrays in place of other libraries'; None if it has none of them."""
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
