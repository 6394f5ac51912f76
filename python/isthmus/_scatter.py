# SPDX-License-Identifier: Apache-2.0
"""``scatter`` and ``gather``: an array split into parts, one on each of several devices."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ._asarray import asarray
from ._core import Array, Device, DType, Error, Event, Queue, ReadOnlyError, empty
from ._host_arrays import host_array
from ._integers import integer
from ._iterables import iterator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ._kinds import Kind

    Shape = tuple[int, ...]

__all__ = ["gather", "scatter"]


def scatter(
    data: Any,
    devices: Sequence[Device | str | Queue],
    axis: int = 0,
    *,
    kind: Kind = "device",
    fallback: str | None = None,
) -> list[Array]:
    """Copies ``data`` into new Arrays, one on each device, split along ``axis`` as evenly as
    possible.

    The parts are those of ``numpy.array_split``: if the length is not a multiple of the number of
    devices, the first ones have one element more; if there are fewer elements than devices, some
    have none. ``data``: an Array, another library's array on a device, a NumPy array, or an object
    that NumPy converts to one; it may have gaps. ``devices``: Devices and filter strings, whose
    default queues are used, or Queues; one may be named several times. ``kind`` is that of the
    parts, and ``fallback`` the kind for a device that has no such memory left. The parts are
    allocated as by ``isthmus.empty``.

    All memory is allocated first. Then the copies to all devices run at the same time, and the call
    waits for all of them. If a copy fails, the memory is freed and the first failure is raised
    after all copies have completed. Raises ValueError without devices, for an axis that the data do
    not have, and for data without dimensions; TypeError for elements that devices do not support;
    and the errors of isthmus.empty.
    """
    queues = _queues_of(devices)
    source = _array_of(data)
    along = _axis(axis, len(source.shape))
    bounds = _bounds(source.shape[along], len(queues))
    shapes = [_with_extent(source.shape, along, stop - start) for start, stop in bounds]
    parts = [
        empty(shape, source.dtype, kind=kind, queue=queue, fallback=fallback)
        for shape, queue in zip(shapes, queues, strict=True)
    ]
    _wait_for_all(
        part.copy_from(source[_slice(along, start, stop)], blocking=False)
        for part, (start, stop) in zip(parts, bounds, strict=True)
    )
    return parts


def gather(parts: Sequence[Any], out: Any = None, axis: int = 0) -> Any:
    """Copies arrays, concatenated along ``axis``, into ``out``, and returns ``out``.

    ``parts``: Arrays on any devices, as ``scatter`` returns them, and NumPy arrays. ``out``: a
    NumPy array or an Array with the type of the elements and the shape of the concatenation, on any
    device, in other memory than the parts; None: a new NumPy array. The copies from all devices run
    at the same time, and the call waits for all of them. If copies fail, the first failure is
    raised after all have completed.

    Raises ValueError without parts, for shapes that differ elsewhere than along ``axis``, and for
    an ``out`` of another shape; TypeError for types that differ; ReadOnlyError; AttributeError for
    bfloat16 without ``out`` if the package ml_dtypes is not installed. Nothing is copied in these
    cases.
    """
    if isinstance(parts, Array):
        raise TypeError("gather() takes a list of arrays, not one array")
    sources = [_array_of(each) for each in iterator("parts", parts)]
    shape, dtype, along = _joined_layout(sources, axis)
    if out is None:
        import numpy as np

        out = np.empty(shape, DType(dtype).dtype)
    _check_out(out, shape, dtype)
    _wait_for_all(_copies(out, sources, along))
    return out


def _copies(out: Any, sources: list[Any], along: int) -> Iterator[Event | None]:
    start = 0
    for source in sources:
        stop = start + source.shape[along]
        section = out[_slice(along, start, stop)]
        if isinstance(source, Array):
            yield source.copy_to(section, blocking=False)
        elif isinstance(section, Array):
            yield section.copy_from(source, blocking=False)
        else:
            section[...] = source
        start = stop


def _wait_for_all(submitted: Iterable[Event | None]) -> None:
    """Waits for all submitted copies, even if a submission failed, then raises the failure."""
    events: list[Event] = []
    try:
        events.extend(event for event in submitted if event is not None)
    except BaseException:
        with suppress(Error):  # the first failure is raised instead
            Event.wait_for(events)
        raise
    Event.wait_for(events)


def _queues_of(devices: Sequence[Device | str | Queue]) -> list[Queue]:
    if isinstance(devices, (str, Device, Queue)):
        raise TypeError(f"devices must be a list, not one device: pass [{devices!r}]")
    queues = [
        each if isinstance(each, Queue) else Device(each).default_queue
        for each in iterator("devices", devices)
    ]
    if not queues:
        raise ValueError("devices is empty: pass at least one device")
    return queues


def _array_of(data: Any) -> Any:
    """An Array over device memory that another library exports; else a NumPy array."""
    if isinstance(data, Array):
        return data
    if hasattr(data, "__sycl_usm_array_interface__") or hasattr(data, "__cuda_array_interface__"):
        return asarray(data)
    return host_array(data)


def _axis(value: int, ndim: int) -> int:
    axis = integer("axis", value)
    if ndim == 0:
        raise ValueError("an array without dimensions has no axis to split or join")
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of range for an array of {ndim} dimensions")
    return axis % ndim


def _bounds(length: int, count: int) -> list[tuple[int, int]]:
    """The bounds that ``numpy.array_split`` uses."""
    each, remainder = divmod(length, count)
    starts = [part * each + min(part, remainder) for part in range(count + 1)]
    return list(pairwise(starts))


def _slice(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


def _with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    return (*shape[:axis], extent, *shape[axis + 1 :])


def _joined_layout(sources: list[Any], axis: int) -> tuple[Shape, Any, int]:
    """Shape and type of the concatenation, and the axis counted from the first."""
    if not sources:
        raise ValueError("parts is empty: pass at least one part")
    first = sources[0]
    along = _axis(axis, len(first.shape))
    length = 0
    for number, each in enumerate(sources):
        if each.dtype != first.dtype:
            raise TypeError(
                f"part {number} has dtype {each.dtype}, but part 0 has {first.dtype}: all parts "
                "must have the same dtype"
            )
        same = len(each.shape) == len(first.shape)
        if not same or _with_extent(each.shape, along, 0) != _with_extent(first.shape, along, 0):
            raise ValueError(
                f"part {number} has shape {each.shape}, but part 0 has {first.shape}: shapes "
                f"may differ only along axis {along}"
            )
        length += each.shape[along]
    return _with_extent(first.shape, along, length), first.dtype, along


def _check_out(out: Any, shape: Shape, dtype: Any) -> None:
    import numpy as np

    if not isinstance(out, (Array, np.ndarray)):
        raise TypeError(f"out must be a NumPy array or an Array, not {type(out).__name__}")
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {tuple(out.shape)}, but all parts together have {shape}")
    if out.dtype != dtype:
        raise TypeError(f"out has dtype {out.dtype}, but the parts have {dtype}")
    if out.read_only if isinstance(out, Array) else not out.flags.writeable:
        raise ReadOnlyError(f"out of type {type(out).__name__} is read-only")
