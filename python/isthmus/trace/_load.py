# SPDX-License-Identifier: Apache-2.0
"""Readers of trace files. Nothing in a file is executed."""

from __future__ import annotations

import io
import itertools
import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _plain_pickle
from ._trace import (
    ALLOCATE,
    FREE,
    MAX_EVENTS,
    Event,
    Trace,
    TraceError,
    fits_64_bits,
    from_events,
    key_of,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["load"]

_MAX_BYTES = 1 << 30  # per file
_MAX_HEADER_BYTES = 1 << 14  # of an array in an .npz file; NumPy's own limit is 10,000
_MAX_LINE_LENGTH = 1 << 12  # of a log, in characters
_CHUNK = 1 << 16  # number of events that are Python objects at a time


def load(path: str | Path) -> Trace:
    """The trace in a file, whose format is that of its extension.

    ``.npz``: arrays of integers ``op`` (1 allocate, 0 free), ``id``, ``size`` in bytes and, if
    there are streams, ``stream``. ``.csv``: the columns Action (allocate, free), Pointer, Size and,
    if there are streams, Stream, as RMM logs them. Other columns are ignored, and failed
    allocations are omitted. ``.pickle``, ``.pkl``: a memory snapshot of PyTorch
    (``torch.cuda.memory._dump_snapshot``, that of ``torch.xpu`` or ``torch_npu``), of which the
    first device with allocations or frees in its history is read. A block is freed once, by the
    first of ``free_requested``, ``free_completed`` and ``free`` that follows its allocation. Logs
    and snapshots may begin in the middle of a program: frees of earlier allocations are omitted,
    and counted in ``frees_before``.

    A file has at most 1 GiB and 16,777,216 events. Raises TraceError if it contains no trace,
    OSError if it cannot be read. Safe for untrusted files: nothing in a file is executed, and time
    and memory are proportional to its size; an array of an .npz file takes at most as much as the
    permitted number of events.
    """
    file = Path(path)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise TraceError(f"{file}: its name must end in one of {', '.join(sorted(_READERS))}")
    data = _read_bytes(file)
    events, unit, recorded = reader
    try:
        return from_events(file.stem, events(data), unit, recorded=recorded)
    except TraceError as error:
        raise TraceError(f"{file}: {error}") from None
    except Exception as error:  # zipfile, NumPy and the pickle can raise nearly any exception
        raise TraceError(f"{file}: not a {file.suffix} trace file: {_error_text(error)}") from error


def _read_bytes(file: Path) -> bytes:
    """Reads the bytes in chunks: a single read would allocate the size of the limit for every
    file.
    """
    chunks: list[bytes] = []
    remaining = _MAX_BYTES
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            remaining -= len(chunk)
            if remaining < 0:
                raise TraceError(f"{file}: the file has more than {_MAX_BYTES} bytes")
            chunks.append(chunk)
    return b"".join(chunks)


def _error_text(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _npz(data: bytes) -> Iterator[Event]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        columns = [_column(archive, name) for name in ("op", "id", "size")]
        streams = "stream.npy" in archive.namelist()
        columns.append(_column(archive, "stream") if streams else np.zeros(len(columns[0]), "u1"))
    lengths = [len(each) for each in columns]
    if len(set(lengths)) != 1:
        raise TraceError(
            f"op, id, size and stream have {lengths} elements: they must have the same number"
        )
    for begin in range(0, lengths[0], _CHUNK):
        chunks = [each[begin : begin + _CHUNK].tolist() for each in columns]
        yield from zip(itertools.count(begin), *chunks, strict=False)


def _column(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    """Reads an array. Never decompresses more than the permitted number of events."""
    file = f"{name}.npy"
    count = archive.namelist().count(file)
    if count != 1:
        raise TraceError(f"{count} arrays are named {name!r}: there must be one")
    info = archive.getinfo(file)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise TraceError(f"array {name!r} is compressed by a method that NumPy does not use")
    max_bytes = MAX_EVENTS * 8 + _MAX_HEADER_BYTES
    with archive.open(info) as member:
        raw = member.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise TraceError(f"array {name!r} has more than the {MAX_EVENTS} elements allowed")
    return _array(name, raw)


def _array(name: str, raw: bytes) -> np.ndarray[Any, Any]:
    stream = io.BytesIO(raw)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    if len(shape) != 1 or dtype.kind not in "ui":
        raise TraceError(
            f"array {name!r} has dtype {shown(str(dtype))} and {len(shape)} dimensions: it must be "
            f"one-dimensional and of integers"
        )
    array = np.frombuffer(raw, dtype, offset=stream.tell())
    if len(array) != shape[0]:
        raise TraceError(
            f"array {name!r} has {len(array)} elements, but its header says {shown(shape[0])}"
        )
    return array


def _csv(data: bytes) -> Iterator[Event]:
    columns: dict[str, int] = {}
    for line, row in _rows(data):
        if not columns:
            columns = _column_indices(row)
        elif len(row) != len(columns):
            raise TraceError(
                f"line {line}: {len(row)} fields, but the first line has {len(columns)}"
            )
        elif (action := row[columns["Action"]]) != "allocate failure":
            yield line, *_parse_row(row, action, columns, line)
    if not columns:
        raise TraceError("the file has no lines")


def _rows(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not empty, with their numbers. Logs have no quoting."""
    # Bytes that are not UTF-8 are preserved: they only name blocks and streams.
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", "surrogateescape")
    for number, line in enumerate(iter(lambda: text.readline(_MAX_LINE_LENGTH + 1), ""), 1):
        if len(line) > _MAX_LINE_LENGTH:
            raise TraceError(f"line {number} has more than {_MAX_LINE_LENGTH} characters")
        if line.strip():
            yield number, [each.strip() for each in line.split(",")]


def _column_indices(names: list[str]) -> dict[str, int]:
    """The indices of the columns; the column of streams may be missing."""
    indices = {name: index for index, name in enumerate(names)}
    for name in ("Action", "Pointer", "Size"):
        if name not in indices:
            raise TraceError(f"no column {name!r} in the first line")
    if len(indices) != len(names):
        duplicate, count = Counter(names).most_common(1)[0]
        raise TraceError(f"{count} columns are named {shown(duplicate)} in the first line")
    return indices


def _parse_row(
    row: list[str], action: str, columns: dict[str, int], line: int
) -> tuple[int, str, int, str]:
    if action not in ("allocate", "free"):
        raise TraceError(f"line {line}: action {shown(action)} is neither allocate nor free")
    pointer, size = row[columns["Pointer"]], row[columns["Size"]]
    if not pointer:
        raise TraceError(f"line {line}: no pointer")
    if not (size.isascii() and size.isdecimal() and len(size) <= 20):
        raise TraceError(f"line {line}: size {shown(size)} is not a number of bytes")
    stream = row[columns["Stream"]] if "Stream" in columns else ""
    return ALLOCATE if action == "allocate" else FREE, pointer, int(size), stream


def _snapshot(data: bytes) -> Iterator[Event]:
    freeing = _Freeing()
    workspace = None
    for number, entry in enumerate(_history(_plain_pickle.loads(data))):
        action = entry.get("action") if isinstance(entry, dict) else None
        if not isinstance(action, str):
            raise TraceError(f"entry {number} of the history has no action: {shown(entry)}")
        if action == "workspace_snapshot":
            workspace = _integer(entry, "addr", number)
        if action not in _REPLAYED:
            continue
        address, nbytes = (_integer(entry, key, number) for key in ("addr", "size"))
        stream = _integer(entry, "stream", number) if "stream" in entry else 0
        if action != "alloc":
            if freeing.is_first(address, action):
                yield number, FREE, address, nbytes, stream
        elif address == workspace:
            # torch_npu puts its workspace blocks, which another allocator holds and never frees,
            # before the history; the history may have used the same addresses earlier.
            workspace = None
            yield number, ALLOCATE, f"workspace {address}", nbytes, stream
        else:
            freeing.allocated(address)
            yield number, ALLOCATE, address, nbytes, stream


# The bit of each spelling of a free in the set of spellings seen. PyTorch writes the first when the
# program frees a block and the second when all streams that use it have reached the free. Which
# of them are recorded is an option, and other tools that write snapshots use the third.
_SPELLINGS = {"free_requested": 1, "free_completed": 2, "free": 4}
_REPLAYED = ("alloc", *_SPELLINGS)  # a tuple, as an action in a file may not be hashable


class _Freeing:
    """Decides which entry of a history is the only free of its block.

    The first spelling after an allocation is the free; another spelling reports the same free
    again. The same spelling twice is a second free, which needs another allocation in between.
    """

    def __init__(self) -> None:
        self._seen: dict[bytes | str, int] = {}  # spellings since the last allocation

    def allocated(self, address: int) -> None:
        self._seen.pop(key_of(address), None)

    def is_first(self, address: int, spelling: str) -> bool:
        key, bit = key_of(address), _SPELLINGS[spelling]
        seen = self._seen.get(key, 0)
        self._seen[key] = seen | bit
        return not seen or bool(seen & bit)


def _history(snapshot: Any) -> list[Any] | tuple[Any, ...]:
    """The history of the first device with events to replay, else of the first with any entry.

    Taking a snapshot adds an entry to the history of each device, also of those never used.
    """
    histories = snapshot.get("device_traces") if isinstance(snapshot, dict) else None
    if not isinstance(histories, (list, tuple)):
        raise TraceError("not a memory snapshot of PyTorch: it has no 'device_traces'")
    unique = {id(each): each for each in histories if isinstance(each, (list, tuple)) and each}
    for history in unique.values():
        if any(isinstance(entry, dict) and entry.get("action") in _REPLAYED for entry in history):
            return history
    for history in unique.values():
        return history
    raise TraceError(
        "the snapshot has no history: call torch.cuda.memory._record_memory_history first"
    )


def _integer(entry: dict[Any, Any], key: str, number: int) -> int:
    value = entry.get(key)
    if type(value) is not int:
        raise TraceError(f"entry {number} of the history: {key} {shown(value)} is not an integer")
    if not fits_64_bits(value):
        raise TraceError(
            f"entry {number} of the history: {key} has {value.bit_length()} bits: at most "
            "64 are supported"
        )
    return value


# The reader of a file's bytes, its unit, and whether the file was recorded while a program ran.
_READERS: dict[str, tuple[Callable[[bytes], Iterator[Event]], str, bool]] = {
    ".npz": (_npz, "event", False),
    ".csv": (_csv, "line", True),
    ".pickle": (_snapshot, "entry", True),
    ".pkl": (_snapshot, "entry", True),
}
