# SPDX-License-Identifier: Apache-2.0
"""Traces: the result of every reader, and the input of a replay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from reprlib import repr as shown  # of bounded length and without control characters for any file
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ALLOCATE",
    "EVENT",
    "FREE",
    "MAX_EVENTS",
    "Event",
    "Trace",
    "TraceError",
    "fits_64_bits",
    "from_events",
    "key_of",
    "shown",
]

FREE, ALLOCATE = 0, 1
# isthmus_trace_event_t
EVENT = np.dtype([("nbytes", "u8"), ("id", "u4"), ("queue", "u2"), ("action", "u2")])
_PACKED = Struct("=QIHH")
# Reading this many takes some GiB of memory, however small the file is on disk.
MAX_EVENTS = 1 << 24
_MAX_QUEUES = 1024
_MAX_BYTES = 2**63 - 1

_MAX_NAME_LENGTH = 1 << 12  # characters; comparing two equal names takes linear time

# (position in the file, ALLOCATE or FREE, name of the block, bytes, name of the stream)
Event = tuple[int, int, "int | str", int, "int | str"]


class TraceError(ValueError):
    """A file without a trace, or an impossible sequence of events; names file, position, value."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Events in the order in which they happened: ``events`` has the dtype ``EVENT``.

    An id identifies one block from its allocation to its free, which repeats the block's size;
    queues are numbered from 0. ``load`` checks the events, and ``replay`` checks them again. Must
    not be modified; safe to use from any thread.
    """

    name: str
    events: np.ndarray[Any, Any]
    queues: int
    frees_before: int = 0  # frees of blocks allocated before the trace; they are not in `events`

    @cached_property
    def requested(self) -> np.ndarray[Any, Any]:
        """Bytes requested and not freed, after each event."""
        nbytes = self.events["nbytes"].astype(np.int64)
        return np.cumsum(np.where(self.events["action"] == ALLOCATE, nbytes, -nbytes))

    @property
    def peak_requested_bytes(self) -> int:
        """The maximum of ``requested``; 0 without events."""
        return int(self.requested.max(initial=0))


def from_events(
    name: str, events: Iterable[Event], unit: str = "event", *, recorded: bool = False
) -> Trace:
    """Numbers blocks and streams; a free gets the size of its block, and its own size is ignored.

    Allocations of 0 bytes take no memory; they and their frees are omitted. A ``recorded`` trace
    may begin in the middle of a program: the first free of a block that was not named before is
    omitted, and counted. Raises TraceError, with ``unit`` and position, for a block that is
    allocated while it is live, that has less than 0 bytes, or that is freed while it is not live,
    for more than 2**63 bytes live at once, 1,024 streams or 16,777,216 events, for a number of more
    than 64 bits and a name of more than 4,096 characters. Takes linear time for any names.
    """
    numbering = _Numbering(recorded)
    position = 0
    try:
        for position, action, block, nbytes, stream in events:  # noqa: B007
            numbering.add(action, block, nbytes, stream)
    except _ImpossibleError as error:
        raise TraceError(f"{unit} {position}: {error}") from None
    packed = np.frombuffer(bytes(numbering.packed), EVENT)
    return Trace(name, packed, max(len(numbering.queues), 1), numbering.frees_before)


class _ImpossibleError(ValueError):
    """An impossible event, without its position in the file."""


def fits_64_bits(value: int) -> bool:
    """Whether ``value`` is a 64-bit integer, signed or unsigned: PyTorch writes addresses as
    either.
    """
    return -(1 << 63) <= value < 1 << 64


def key_of(name: int | str) -> bytes | str:
    """The dictionary key of a block or a stream. A file cannot choose its hash.

    The hash of an integer is the integer itself, so a file could make a dictionary of integers
    compare each new key with all others. The hashes of bytes and text are keyed per process.
    """
    if type(name) is int and fits_64_bits(name):
        return name.to_bytes(9, "little", signed=True)
    if type(name) is str and len(name) <= _MAX_NAME_LENGTH:
        return name
    description = f"an integer of {name.bit_length()} bits" if type(name) is int else shown(name)
    raise _ImpossibleError(
        f"{description} cannot name a block or a stream: use integers of 64 bits, or texts of at "
        f"most {_MAX_NAME_LENGTH} characters"
    )


class _Numbering:
    """The events so far, and the live blocks. Blocks and streams are stored by ``key_of``."""

    def __init__(self, recorded: bool) -> None:
        self.packed = bytearray()
        self.queues: dict[bytes | str, int] = {}
        self.frees_before = 0
        self._recorded = recorded
        self._freed: set[bytes | str] = set()  # blocks that were freed here, if recorded
        self._live: dict[bytes | str, tuple[int, int]] = {}  # id and bytes
        self._live_bytes = 0
        self._ids = 0

    def add(self, action: int, block: int | str, nbytes: int, stream: int | str) -> None:
        key = key_of(block)
        if action == ALLOCATE:
            if nbytes:
                self._emit(ALLOCATE, *self._allocate(key, block, nbytes), stream)
        elif action != FREE:
            raise _ImpossibleError(f"op {shown(action)} is neither 1 (allocate) nor 0 (free)")
        elif key in self._live:
            block_id, size = self._live.pop(key)
            self._live_bytes -= size
            self._record_free(key)
            self._emit(FREE, block_id, size, stream)
        elif nbytes:
            if not self._recorded or key in self._freed:
                raise _ImpossibleError(f"frees block {shown(block)}, which is not allocated")
            self.frees_before += 1
            self._record_free(key)

    def _record_free(self, key: bytes | str) -> None:
        if self._recorded:
            self._freed.add(key)

    def _allocate(self, key: bytes | str, block: int | str, nbytes: int) -> tuple[int, int]:
        if key in self._live:
            raise _ImpossibleError(f"allocates block {shown(block)}, which is already allocated")
        if not 0 < nbytes <= _MAX_BYTES - self._live_bytes:
            raise _ImpossibleError(
                f"allocates {_number(nbytes)} bytes, and {self._live_bytes} are live: a size must "
                f"be 0 or more, and all together at most 2**63 - 1"
            )
        allocation = self._live[key] = (self._ids, nbytes)
        self._live_bytes += nbytes
        self._ids += 1
        return allocation

    def _emit(self, action: int, block_id: int, nbytes: int, stream: int | str) -> None:
        queue = self.queues.setdefault(key_of(stream), len(self.queues))
        if queue >= _MAX_QUEUES:
            raise _ImpossibleError(
                f"stream {shown(stream)} exceeds the limit of {_MAX_QUEUES} streams"
            )
        if len(self.packed) >= MAX_EVENTS * _PACKED.size:
            raise _ImpossibleError(f"exceeds the limit of {MAX_EVENTS} events")
        self.packed += _PACKED.pack(nbytes, block_id, queue, action)


def _number(value: int) -> str:
    """A decimal number. Conversion takes quadratic time, so only short ones are converted."""
    return shown(value) if fits_64_bits(value) else f"(an integer of {value.bit_length()} bits)"
