# SPDX-License-Identifier: Apache-2.0
"""``batches``: data in batches, which become smaller if memory is insufficient."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from .layout import at_least

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["batches"]

Batch = TypeVar("Batch")
Batch_co = TypeVar("Batch_co", covariant=True)
Result = TypeVar("Result")

# By name, since a program that has not imported these libraries cannot receive their errors.
_FOREIGN = {"cupy": "OutOfMemoryError", "torch": "OutOfMemoryError", "pyopencl": "MemoryError"}


class Sliceable(Protocol[Batch_co]):
    """Arrays, sequences, unified buffers, tables."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> Batch_co: ...


@overload
def batches(
    data: Sliceable[Batch], fn: None = None, *, size: int, progress: bool = False
) -> Iterator[Batch]: ...
@overload
def batches(
    data: Sliceable[Batch],
    fn: Callable[[Batch], Result],
    *,
    size: int | None = None,
    progress: bool = False,
) -> Iterator[Result]: ...
def batches(
    data: Sliceable[Any],
    fn: Callable[[Any], Any] | None = None,
    *,
    size: int | None = None,
    progress: bool = False,
) -> Iterator[Any]:
    """``data[0:size]``, ``data[size:2 * size]``, ... along its first axis; the last may be shorter.

    The batches are slices of ``data``: views of arrays and parts of unified buffers, without a
    copy. With ``fn`` the results ``fn(batch)`` are yielded instead, and ``size`` (None: all of
    ``data`` at once) is the size that is tried first. If ``fn`` runs out of memory, with
    USMAllocationError or any other MemoryError, or with the corresponding error of CuPy, PyTorch or
    pyopencl, the same elements and all remaining ones are processed in batches of half the size.
    Work that ``fn`` did on them before it raised is repeated. The error for a single element is
    raised, with a note of the sizes.

    ``fn`` runs when results are requested: ``list(batches(data, fn))`` for all of them.
    ``progress`` shows a bar on stderr if that is a terminal. TypeError for ``data`` without a
    length or slices, ValueError for a ``size`` below 1; both are raised at once, before ``fn``
    runs.
    """
    length = _length_of(data)
    if fn is not None and not callable(fn):
        raise TypeError(
            f"batches() calls fn with each batch, and {fn!r} is not callable: use size="
        )
    if size is None and fn is None:
        raise TypeError("batches() needs size=, or a function whose memory use determines the size")
    step = max(length, 1) if size is None else at_least(1, "size", size)
    return _iterate(data, length, fn, step, progress)


def _length_of(data: Any) -> int:
    if not hasattr(data, "__getitem__") or _is_mapping(data):
        raise TypeError(f"batches() needs data that can be sliced, not {type(data).__name__}")
    try:
        return len(data)
    except TypeError as reason:
        raise TypeError(
            f"batches() needs data with a first axis, not this {type(data).__name__}: {reason}"
        ) from None


def _is_mapping(data: Any) -> bool:
    return hasattr(data, "keys") and not hasattr(data, "iloc")  # a pandas table has `keys` too


def _iterate(
    data: Sliceable[Any],
    length: int,
    fn: Callable[[Any], Any] | None,
    size: int,
    progress: bool,
) -> Iterator[Any]:
    from isthmus.cli.output import progress as bar

    with bar("batches", quiet=not progress) as report:
        start = 0
        while start < length:
            report(f"{start} of {length}", start / length)
            if fn is None:
                batch: Any = data[start : start + size]
            else:
                batch, size = _call_with_smaller(data, start, min(size, length - start), size, fn)
            start += size
            yield batch


def _call_with_smaller(
    data: Sliceable[Any], start: int, count: int, size: int, fn: Callable[[Any], Any]
) -> tuple[Any, int]:
    """The result of ``fn`` for at most ``count`` elements, and the batch size from here on."""
    tried_sizes = []
    while True:
        try:
            return fn(data[start : start + count]), size
        except Exception as failed:
            if not _is_out_of_memory(failed):
                raise
            tried_sizes.append(count)
            if count == 1:
                _add_note(failed, start, tried_sizes)
                raise
        # After the handler, because the error keeps the frames alive, with the memory that they
        # allocated.
        size = count = count // 2
        gc.collect()


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError):
        return True
    return any(
        _FOREIGN.get(cls.__module__.partition(".")[0]) == cls.__name__
        for cls in type(error).__mro__
    )


def _add_note(error: Exception, start: int, tried_sizes: list[int]) -> None:
    sizes = ", ".join(map(str, tried_sizes))
    note = f"isthmus.batches: from element {start} on, batches of {sizes} were tried in this order"
    # Equivalent to add_note(), which Python has since 3.11.
    vars(error).setdefault("__notes__", []).append(note)
