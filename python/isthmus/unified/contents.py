# SPDX-License-Identifier: Apache-2.0
"""Converts the sources of copies into a unified buffer: objects that NumPy converts to arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus._asarray import asarray
from isthmus._core import _dlpack_device_of, _HostMemory
from isthmus._host_arrays import has_array_protocol, host_array
from isthmus._numpy_interface import readable as checked

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CPU = 1  # DLPack's kDLCPU
_NUMBERS = frozenset((bool, int, float, complex))


def contents_of(obj: Any) -> NDArray[Any] | None:
    """The elements of an array of any library, or of an object with the buffer protocol, on the
    host. None for other objects and for NumPy's numbers.
    """
    import numpy as np

    if isinstance(obj, np.generic):
        return None
    if has_array_protocol(obj):
        return host_array(readable(obj))
    try:
        return np.asarray(memoryview(obj))
    except TypeError:
        return None


def array_for(source: Any, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """``source`` as an array that NumPy broadcasts to that shape and casts to that dtype.

    TypeError, ValueError, OverflowError if it does not fit.
    """
    import numpy as np

    array: NDArray[Any] = source
    # Most sources have exactly this type, and the checks below take longer than a small copy.
    if type(source) is not np.ndarray or source.dtype != dtype or source.shape != shape:
        array = host_array(readable(source))
        _check_cast(source, array, dtype)
        if not _is_broadcast(array.shape, shape):
            raise ValueError(f"a source of shape {array.shape} does not fit a buffer of {shape}")
    return array.copy() if _may_be_a_host_copy(array) else array


def assignable(source: Any) -> Any:
    """An object that NumPy can assign to elements in place of ``source``."""
    return source if type(source) in _NUMBERS else checked(readable(source))


def readable(source: Any) -> Any:
    """``source``, or a copy of it on the host if NumPy would not read its memory."""
    import numpy as np

    # Most sources are of these types, and the checks below cost more than setting an element.
    if isinstance(source, (np.ndarray, np.generic, int, float, complex, list, tuple)):
        return source
    if hasattr(source, "to_numpy"):
        return source.to_numpy()
    if not _needs_a_copy(source):
        return source
    return asarray(source).to_numpy()


def _needs_a_copy(source: Any) -> bool:
    interfaces = ("__sycl_usm_array_interface__", "__cuda_array_interface__")
    if hasattr(source, "__dlpack_device__"):
        on_cpu = _dlpack_device_of(source)[0] == _CPU
        return not on_cpu or not hasattr(source, "__array__") or hasattr(source, interfaces[0])
    return any(hasattr(source, name) for name in interfaces)


def _check_cast(source: Any, array: NDArray[Any], dtype: Any) -> None:
    import numpy as np

    if isinstance(source, (int, list, tuple)) and _are_integers(array.dtype, dtype):
        _check_bounds(array, dtype)  # numbers without a type get the buffer's type
    elif not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"a source of {array.dtype} cannot be cast to {dtype}: use astype() first")


def _is_broadcast(source_shape: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether NumPy broadcasts the source on assignment.

    Axes are matched from the last; additional leading axes of the source must have extent 1.
    """
    extra = max(len(source_shape) - len(shape), 0)
    trailing = source_shape[extra:]
    axes = zip(trailing, shape[len(shape) - len(trailing) :], strict=True)
    return all(extent == 1 for extent in source_shape[:extra]) and all(
        extent in (1, wanted) for extent, wanted in axes
    )


def _are_integers(*dtypes: Any) -> bool:
    return all(dtype.kind in "iu" for dtype in dtypes)


def _check_bounds(array: NDArray[Any], dtype: Any) -> None:
    import numpy as np

    limits = np.iinfo(dtype)
    if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
        raise OverflowError(
            f"{array.min()} to {array.max()} are out of range for {dtype}, which holds "
            f"{limits.min} to {limits.max}"
        )


def _may_be_a_host_copy(array: Any) -> bool:
    """Whether the array may lie in a unified buffer's host copy.

    The library writes host copies through another mapping, so NumPy cannot see from the addresses
    that source and target overlap.
    """
    import mmap

    import numpy as np

    while array is not None:
        if isinstance(array, np.ndarray):
            array = array.base
        elif isinstance(array, memoryview):
            array = array.obj
        else:
            return isinstance(array, _HostMemory) or not isinstance(
                array, (bytes, bytearray, mmap.mmap)
            )
    return False
