# SPDX-License-Identifier: Apache-2.0
"""Shapes as users give them, and ranges of an array as bytes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Union

from isthmus._core import OutOfRangeError, USMAllocationError
from isthmus._integers import integer

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_DIMENSIONS = 64  # of an Array, and of NumPy's arrays

Range = Union[slice, "tuple[int, int]", None]


def shape_of(given: int | Sequence[int]) -> tuple[int, ...]:
    """``given`` as a tuple. ValueError for negative extents, TypeError if it is not a shape."""
    shape = extents_of(given)
    if min(shape, default=0) < 0:
        raise ValueError(f"shape {shape} has a negative extent: {min(shape)}")
    return shape


def extents_of(given: int | Sequence[int]) -> tuple[int, ...]:
    """``given`` as a tuple. ValueError for more dimensions than arrays support."""
    if isinstance(given, int):
        return (given,)
    try:
        extents = tuple(given)
    except TypeError:
        return (integer("shape", given),)
    if len(extents) > _MOST_DIMENSIONS:
        raise ValueError(f"an array has at most {_MOST_DIMENSIONS} dimensions, not {len(extents)}")
    return tuple(integer("extent", each) for each in extents)


def at_least(least: int, name: str, given: int) -> int:
    """``given`` as an integer. TypeError if it is not one, ValueError below ``least``."""
    number = integer(name, given)
    if number < least:
        raise ValueError(f"{name} must be {least} or more, not {number}")
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


def rows_of(wanted: Range, shape: tuple[int, ...]) -> tuple[int, int]:
    """``wanted`` along the first axis as ``(start, stop)``.

    A slice has step 1 and may count from the end. Unlike in Python, bounds outside of the array are
    an error and not clipped, since data would silently not be copied. OutOfRangeError, TypeError,
    ValueError.
    """
    if wanted is None:
        return 0, shape[0] if shape else 1
    if not shape:
        raise ValueError("an array without dimensions has no ranges: leave the range out")
    if isinstance(wanted, slice):
        if wanted.step not in (None, 1):
            raise ValueError(f"a range must have step 1, not {wanted.step}")
        start = _from_the_end(wanted.start, 0, shape[0])
        stop = _from_the_end(wanted.stop, shape[0], shape[0])
    elif isinstance(wanted, tuple) and len(wanted) == 2:
        start, stop = integer("start", wanted[0]), integer("stop", wanted[1])
    else:
        raise TypeError(f"a range must be a slice or (start, stop), not {type(wanted).__name__}")
    if start > stop:
        raise OutOfRangeError(f"range {start} to {stop} ends before it begins")
    if not 0 <= start <= stop <= shape[0]:
        raise OutOfRangeError(f"range {start} to {stop} does not lie in 0 to {shape[0]}")
    return start, stop


def _from_the_end(bound: Any, otherwise: int, extent: int) -> int:
    if bound is None:
        return otherwise
    index = integer("bound", bound)
    return index + extent if index < 0 else index


def same_size(shape: tuple[int, ...], given: int | Sequence[int]) -> tuple[int, ...]:
    """``given`` with a -1 replaced by its extent. ValueError if the number of elements differs."""
    size = math.prod(shape)
    wanted = extents_of(given)
    known = math.prod(extent for extent in wanted if extent != -1)
    unknown = wanted.count(-1)
    if unknown == 1 and known > 0 and size % known == 0:
        return tuple(size // known if extent == -1 else extent for extent in wanted)
    if unknown or known != size or min(wanted, default=0) < 0:
        raise ValueError(f"cannot reshape an array of {size} elements to {wanted}")
    return wanted
