"""What may be copied into a unified buffer: anything that NumPy makes an array of that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus._core import _HostMemory

if TYPE_CHECKING:
    from numpy.typing import NDArray


def array_for(source: Any, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """``source`` as an array of that shape that can be copied into that dtype.

    TypeError, ValueError, OverflowError for what does not fit.
    """
    import numpy as np

    array = np.asarray(source.to_numpy() if hasattr(source, "to_numpy") else source)
    if isinstance(source, (int, list, tuple)) and _are_integers(array.dtype, dtype):
        _check_bounds(array, dtype)  # numbers without a type of their own take the buffer's
    elif not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"a source of {array.dtype} cannot be cast to {dtype}: use astype() first")
    try:
        broadcast: NDArray[Any] = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"a source of shape {array.shape} does not fit a buffer of {shape}"
        ) from None
    return broadcast.copy() if _may_be_a_host_copy(array) else broadcast


def _are_integers(*dtypes: Any) -> bool:
    return all(dtype.kind in "iu" for dtype in dtypes)


def _check_bounds(array: NDArray[Any], dtype: Any) -> None:
    import numpy as np

    limits = np.iinfo(dtype)
    if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
        raise OverflowError(
            f"{array.min()} to {array.max()} do not lie in {dtype}, which has {limits.min} to "
            f"{limits.max}"
        )


def _may_be_a_host_copy(array: Any) -> bool:
    """Whether it may lie in a unified buffer's host copy.

    The library writes that by way of another mapping, so that by their addresses NumPy does not
    see that source and target overlap.
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
