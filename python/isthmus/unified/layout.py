# SPDX-License-Identifier: Apache-2.0
"""Conversion of the caller's shapes, and of ranges of an array to bytes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Union

from isthmus._core import OutOfRangeError, USMAllocationError
from isthmus._integers import integer

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_DIMENSIONS = 64  # of an Array, and of NumPy's arrays

Range = Union[slice, "tuple[int, int]", None]


def shape_of(value: int | Sequence[int]) -> tuple[int, ...]:
    """``value`` as a tuple. ValueError for negative extents, TypeError if it is not a shape."""
    shape = extents_of(value)
    if min(shape, default=0) < 0:
        raise ValueError(f"shape {shape} has a negative extent: {min(shape)}")
    return shape


def extents_of(value: int | Sequence[int]) -> tuple[int, ...]:
    """``value`` as a tuple. ValueError for more dimensions than arrays support."""
    if isinstance(value, int):
        return (value,)
    try:
        extents = tuple(value)
    except TypeError:
        return (integer("shape", value),)
    if len(extents) > _MAX_DIMENSIONS:
        raise ValueError(f"an array has at most {_MAX_DIMENSIONS} dimensions, not {len(extents)}")
    return tuple(integer("extent", each) for each in extents)


def at_least(minimum: int, name: str, value: int) -> int:
    """``value`` as an integer. TypeError if it is not one, ValueError below ``minimum``."""
    number = integer(name, value)
    if number < minimum:
        raise ValueError(f"{name} must be {minimum} or more, not {number}")
    return number


def bytes_of(shape: tuple[int, ...], dtype: Any) -> int:
    """Bytes of an array. ValueError for 0, USMAllocationError if it exceeds the address space.

    TypeError for objects.
    """
    if dtype.hasobject:
        raise TypeError(f"dtype {dtype} holds Python objects, which cannot be stored on a device")
    nbytes: int = dtype.itemsize
    for extent in shape:
        nbytes *= extent
    if nbytes == 0:
        raise ValueError(f"shape {shape} of {dtype} has no bytes: a unified buffer cannot be empty")
    if nbytes >= 1 << 63:
        raise USMAllocationError(
            f"shape {shape} of {dtype} has {nbytes} bytes: at most 2**63 - 1 are supported"
        )
    return nbytes


def rows_of(bounds: Range, shape: tuple[int, ...]) -> tuple[int, int]:
    """``bounds`` along the first axis as ``(start, stop)``.

    A slice has step 1 and may count from the end. Unlike in Python, bounds outside of the array are
    an error and not clipped, since clipping would silently omit data. Raises OutOfRangeError,
    TypeError, ValueError.
    """
    if bounds is None:
        return 0, shape[0] if shape else 1
    if not shape:
        raise ValueError("an array without dimensions has no ranges: omit the range")
    if isinstance(bounds, slice):
        if bounds.step not in (None, 1):
            raise ValueError(f"a range must have step 1, not {bounds.step}")
        start = _resolve_bound(bounds.start, 0, shape[0])
        stop = _resolve_bound(bounds.stop, shape[0], shape[0])
    elif isinstance(bounds, tuple) and len(bounds) == 2:
        start, stop = integer("start", bounds[0]), integer("stop", bounds[1])
    else:
        raise TypeError(f"a range must be a slice or (start, stop), not {type(bounds).__name__}")
    if start > stop:
        raise OutOfRangeError(f"range {start} to {stop} ends before it begins")
    if not 0 <= start <= stop <= shape[0]:
        raise OutOfRangeError(f"range {start} to {stop} is not within 0 to {shape[0]}")
    return start, stop


def _resolve_bound(bound: Any, default: int, extent: int) -> int:
    if bound is None:
        return default
    index = integer("bound", bound)
    return index + extent if index < 0 else index


def same_size(shape: tuple[int, ...], new_shape: int | Sequence[int]) -> tuple[int, ...]:
    """``new_shape`` with a -1 replaced by its extent. ValueError if the sizes differ."""
    size = math.prod(shape)
    extents = extents_of(new_shape)
    known = math.prod(extent for extent in extents if extent != -1)
    unknown = extents.count(-1)
    if unknown == 1 and known > 0 and size % known == 0:
        return tuple(size // known if extent == -1 else extent for extent in extents)
    if unknown or known != size or min(extents, default=0) < 0:
        raise ValueError(f"cannot reshape an array of {size} elements to {extents}")
    return extents
