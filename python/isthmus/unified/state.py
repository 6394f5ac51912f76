# SPDX-License-Identifier: Apache-2.0
"""The state of the two copies of a unified buffer."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from isthmus._core import ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .array import UnifiedArray

# The numbers of the C interface.
WINNERS = {None: 0, "host": 1, "device": 2}


class BufferState(enum.Enum):
    """The state of a ``UnifiedBuffer``; ``str`` returns the bare name."""

    UNINITIALIZED = 0
    """Neither copy was accessed."""
    HOST_ONLY = 1
    """There is a host copy that was never written, and no device copy."""
    DEVICE_ONLY = 2
    """There is only a device copy."""
    SYNCHRONIZED = 3
    """Both copies have the same contents."""
    HOST_DIRTY = 4
    """The host wrote bytes that the device lacks."""
    DEVICE_DIRTY = 5
    """The device wrote bytes that the host lacks; the host may have written other bytes."""

    def __str__(self) -> str:
        return self.name


# By number, which is faster than calling the enumeration.
STATES = tuple(BufferState)


class DirtyRanges(NamedTuple):
    """The bytes of one copy that the other lacks, as ``(start, stop)`` in flat elements.

    A range that begins or ends within an element is widened to whole elements.
    """

    host: tuple[tuple[int, int], ...]
    """Ranges written on the host, which the device lacks."""
    device: tuple[tuple[int, int], ...]
    """Ranges written on the device, which the host lacks."""


def in_elements(
    ranges: Iterable[tuple[int, int]], offset: int, nbytes: int, itemsize: int
) -> tuple[tuple[int, int], ...]:
    """Ascending ranges of bytes as flat elements of the ``nbytes`` at ``offset``."""
    merged: list[tuple[int, int]] = []
    for begin, end in ranges:
        begin, end = max(begin - offset, 0), min(end - offset, nbytes)
        if begin >= end:
            continue
        start, stop = begin // itemsize, -(-end // itemsize)
        if merged and start <= merged[-1][1]:  # different bytes of neighbours, or of one element
            start = merged.pop()[0]
        merged.append((start, stop))
    return tuple(merged)


class TransferStatistics(NamedTuple):
    """Transfers between the two copies of one buffer so far."""

    bytes_to_device: int
    bytes_to_host: int
    copies: int
    """The number of operations, each of any number of ranges."""


def describe(array: UnifiedArray) -> str:
    """For ``repr``."""
    try:
        state = str(array.state)
    except ClosedError:
        state = "freed"
    return f"{array.dtype} {array.shape} {state} on {array.queue.device.filter}"
