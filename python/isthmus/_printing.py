# SPDX-License-Identifier: Apache-2.0
"""Text of arrays, through a host copy of only the elements that are shown."""

from __future__ import annotations

import time
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ._core import Array, Error, WaitTimeoutError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Debuggers print variables, and a kernel that never completes must not block them.
MAX_WAIT_SECONDS = 2.0


def to_text(array: Array) -> str:
    """The text that NumPy prints for an array with these elements. Waits for pending work."""
    return _elements(array, None)


def to_repr(array: Array) -> str:
    """A description of the array, and its elements, or the reason that they cannot be shown."""
    header = array._header()
    if array.freed or array.size == 0:
        return f"<{header}>"
    return f"<{header}\n{_elements_or_reason(array)}>"


def to_html(array: Array) -> str:
    """For notebooks: a table of its properties, and its elements."""
    rows = {
        "shape": array.shape,
        "dtype": array.dtype,
        "kind": array.kind,
        "device": array.device.filter,
        "size": _readable(array.nbytes),
    }
    cells = "".join(
        f"<tr><th>{name}</th><td>{escape(str(value))}</td></tr>" for name, value in rows.items()
    )
    shown = "freed" if array.freed else _elements_or_reason(array)
    return f"<div><b>isthmus.Array</b><table>{cells}</table><pre>{escape(shown)}</pre></div>"


def _readable(nbytes: int) -> str:
    size, unit = float(nbytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{nbytes} bytes" if unit == "bytes" else f"{size:.1f} {unit} ({nbytes} bytes)"


def _elements_or_reason(array: Array) -> str:
    try:
        return _elements(array, time.monotonic() + MAX_WAIT_SECONDS)
    except WaitTimeoutError:
        return "(not shown: work on it has not completed)"
    except Error as failed:
        return f"(cannot be read: {failed})"


def _elements(array: Array, deadline: float | None) -> str:
    """The elements as text. WaitTimeoutError if they are not available by ``deadline`` (None: no
    limit).
    """
    options = np.get_printoptions()
    if array.ndim == 0:
        return str(_on_host(array, deadline)[()])
    if array.size <= options["threshold"]:
        return np.array2string(_on_host(array, deadline), separator=" ")
    edge = options["edgeitems"]
    shown = _with_gaps(array, edge, deadline)
    return np.array2string(shown, separator=" ", threshold=0, edgeitems=edge)


def _with_gaps(array: Array, edge: int, deadline: float | None) -> NDArray[Any]:
    """The corners of the array, and in each long dimension one more element, which is not shown.

    With a threshold that omits all but the corners, NumPy prints the same text as for the whole
    array.
    """
    extents = [min(extent, 2 * edge + 1) for extent in array.shape]
    parts = [
        ((slice(0, edge), slice(0, edge)), (slice(extent - edge, extent), slice(edge + 1, None)))
        if extent > 2 * edge
        else ((slice(None), slice(None)),)
        for extent in array.shape
    ]
    shown: NDArray[Any] | None = None
    for corner in product(*parts):
        values = _on_host(array[tuple(of_array for of_array, _ in corner)], deadline)
        if shown is None:
            shown = np.zeros(extents, values.dtype)
        shown[tuple(of_shown for _, of_shown in corner)] = values
    assert shown is not None  # there is at least one corner
    return shown


def _on_host(array: Array, deadline: float | None) -> NDArray[Any]:
    """A copy of the elements. NumPy may have no bfloat16, which is the upper half of a float32."""
    if array.dtype.name != "bfloat16":
        return _copied(array, deadline)
    halves = _copied(
        Array(array.buffer, array.shape, "uint16", strides=array.strides, offset=array.offset),
        deadline,
    )
    return (halves.astype(np.uint32) << 16).view(np.float32)


def _copied(array: Array, deadline: float | None) -> NDArray[Any]:
    """A copy, ordered after all work on the queue, which may include work on other memory."""
    out = np.empty(array.shape, array.dtype)
    event = array.copy_to(out, blocking=False)
    assert event is not None
    event.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
    return out
