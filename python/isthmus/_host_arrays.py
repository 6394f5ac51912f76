# SPDX-License-Identifier: Apache-2.0
"""Conversion to NumPy arrays, also of objects that NumPy would accept unchecked or reject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import Array, Error, _array_from_dlpack, _array_from_interface
from ._numpy_interface import readable
from ._strict import strict

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXPORT_PROTOCOLS = (
    "__sycl_usm_array_interface__",
    "__dlpack_device__",
    "__cuda_array_interface__",
)
_NUMPY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")
# NumPy's exceptions for values; other exceptions were raised by an item's own methods.
_REASONS = (TypeError, ValueError, OverflowError, Warning, Error)


def has_array_protocol(obj: object) -> bool:
    """Whether ``obj`` has a protocol of arrays. The buffer protocol is not one of them."""
    return any(hasattr(obj, name) for name in _EXPORT_PROTOCOLS + _NUMPY_PROTOCOLS)


def host_array(obj: Any, dtype: Any = None) -> NDArray[Any]:
    """``numpy.asarray``, also for lists that contain arrays of other libraries.

    NumPy rejects such lists, for example ``[cupy.array(1), cupy.array(2)]``, or treats the items as
    objects. Here they are copied to the host, one by one. An ``__array_interface__``, also of an
    item, is checked before it is used.
    """
    try:
        return _to_numpy(readable(obj), dtype)
    except MemoryError:
        raise
    except Exception as failed:
        if isinstance(failed, _REASONS) or not isinstance(obj, (list, tuple)):
            raise
        raise TypeError("a list has an item that is not a number") from failed


def _to_numpy(source: Any, dtype: Any) -> NDArray[Any]:
    import numpy as np

    try:
        array = _to_numpy_strictly(source, dtype)
    except MemoryError:
        raise
    except Exception:
        items = _with_host_items(source)
        if items is None:
            raise
        return np.asarray(items, dtype)
    items = _with_host_items(source) if array.dtype.kind == "O" else None
    return array if items is None else np.asarray(items, dtype)


def _to_numpy_strictly(source: Any, dtype: Any) -> NDArray[Any]:
    """``numpy.asarray``. Refuses device memory in lists, also on the host device; the caller then
    copies it, without a warning.
    """
    import numpy as np

    if not isinstance(source, (list, tuple)):
        return np.asarray(source, dtype)
    with strict():
        return np.asarray(source, dtype)


def _with_host_items(sequence: Any, outer: tuple[int, ...] = ()) -> list[Any] | None:
    """A nested list with other libraries' arrays replaced by NumPy arrays; None if it contains
    none.
    """
    if not isinstance(sequence, (list, tuple)) or id(sequence) in outer:
        return None
    copies = [
        _copy_to_host(each)
        if _exports_memory(each)
        else _with_host_items(each, (*outer, id(sequence)))
        for each in sequence
    ]
    if all(copy is None for copy in copies):
        return None
    return [each if copy is None else copy for each, copy in zip(sequence, copies, strict=True)]


def _exports_memory(obj: Any) -> bool:
    import numpy as np

    is_numpy = isinstance(obj, (np.ndarray, np.generic, type))
    return not is_numpy and has_array_protocol(obj)


def _copy_to_host(obj: Any) -> NDArray[Any]:
    import numpy as np

    if not any(hasattr(obj, name) for name in _EXPORT_PROTOCOLS):
        return np.asarray(obj)
    array = obj if isinstance(obj, Array) else _array_from_interface(obj)
    copy: NDArray[Any] = (_array_from_dlpack(obj) if array is None else array).to_numpy()
    return copy
