# SPDX-License-Identifier: Apache-2.0
"""Resources that select by size, and the log."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import python, until

import isthmus
from isthmus import Buffer, Queue, trace
from isthmus.memory import (
    AlignedResource,
    BinningResource,
    LimitResource,
    LogResource,
    PoolResource,
    PrefetchResource,
    ProviderResource,
    StatisticsResource,
    USMAllocationError,
)

if TYPE_CHECKING:
    from pathlib import Path

HEADER = ["Thread", "Time", "Action", "Pointer", "Size", "Stream"]


def test_aligned(q: Queue, kind: str) -> None:
    aligned = AlignedResource(PoolResource(kind, q.device), 2048, min_bytes=1000)
    buffers = [aligned.allocate(nbytes, queue=q) for nbytes in (1000, 5000, 70_000) * 5]
    assert all(each.ptr % 2048 == 0 for each in buffers)
    small = [aligned.allocate(100, queue=q) for _ in range(100)]
    assert not all(each.ptr % 2048 == 0 for each in small)
    with pytest.raises(ValueError, match="24"):
        AlignedResource(PoolResource(kind, q.device), 24)


def test_binning(q: Queue, kind: str) -> None:
    small, medium = (StatisticsResource(PoolResource(kind, q.device)) for _ in range(2))
    large = StatisticsResource(ProviderResource(kind, q.device))
    sorted_by_size = BinningResource(large, {1000: medium, 100: small})
    assert sorted_by_size.bins == {1000: medium, 100: small}
    for nbytes, to in ((1, small), (100, small), (101, medium), (1000, medium), (1001, large)):
        buffer = Buffer(nbytes, resource=sorted_by_size, queue=q)
        assert to.current_bytes == nbytes
        assert sum(each.current_count for each in (small, medium, large)) == 1
        buffer.free()
        assert until(lambda to=to: to.current_count == 0)
    with pytest.raises(TypeError, match="a bin must be a resource"):
        BinningResource(large, {1: 2})  # type: ignore[dict-item]
    with pytest.raises(ValueError):
        BinningResource(large, {-1: small})


def test_log(q: Queue, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    logged = LogResource(LimitResource(PoolResource(kind, q.device), 10_000), path)
    buffer = logged.allocate(1000, queue=q)
    pointer = f"{buffer.ptr:#x}"
    with pytest.raises(USMAllocationError):
        logged.allocate(20_000, queue=q)
    buffer.free()
    q.wait()
    logged.flush()
    with path.open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == HEADER
    assert [row[2:5] for row in rows[1:]] == [
        ["allocate", pointer, "1000"],
        ["allocate failure", "0x0", "20000"],
        ["free", pointer, "1000"],
    ]
    with pytest.raises(isthmus.InvalidArgumentError, match="none"):
        LogResource(logged, tmp_path / "none" / "log.csv")
    with pytest.raises(TypeError):
        LogResource(logged, 3)  # type: ignore[arg-type]


def test_a_file_has_one_log_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    pool = PoolResource("host", "host")
    first = LogResource(pool, path)
    first.allocate(111).free()
    first.flush()
    (tmp_path / "same.csv").symlink_to(path)
    for name in (path, tmp_path / "same.csv"):
        with pytest.raises(isthmus.InvalidArgumentError, match=r"another log.*use another file"):
            LogResource(pool, name)
    elsewhere = python(
        "import isthmus\n"
        "from isthmus.memory import LogResource, PoolResource\n"
        "try:\n"
        f"    LogResource(PoolResource('host', 'host'), {str(path)!r})\n"
        "except isthmus.InvalidArgumentError as told:\n"
        "    print(told)\n"
    )
    assert f"the log {path}: another log" in elsewhere.stdout
    first.allocate(222).free()
    first.flush()
    with path.open() as file:
        assert [row["Size"] for row in csv.DictReader(file)] == ["111", "111", "222", "222"]
    del first
    again = LogResource(pool, path)  # reopened after the first one ended, keeping none of its rows
    again.flush()
    assert path.read_text().splitlines() == [",".join(HEADER)]
    assert [LogResource(pool, "/dev/null"), LogResource(pool, "/dev/null")]


def test_a_forked_child_does_not_keep_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "log.csv")
    program = f"""
import os
from isthmus.memory import LogResource, PoolResource
pool = PoolResource("host", "host")
log = LogResource(pool, {path!r})
reader, writer = os.pipe()
if os.fork() == 0:
    os.close(writer)
    os.read(reader, 1)  # has the file open until the parent is done
    os._exit(0)
del log
log = LogResource(pool, {path!r})
os.write(writer, b"x")
os.wait()
print("made again")
"""
    assert python(program).stdout == "made again\n"


def test_a_log_is_a_trace(q: Queue, kind: str, tmp_path: Path) -> None:
    logged = LogResource(PoolResource(kind, q.device), tmp_path / "log.csv")
    buffers = [logged.allocate(nbytes, queue=q) for nbytes in (1000, 70_000, 30)]
    for each in buffers:
        each.free()
    q.wait()
    logged.flush()
    recorded = trace.load(tmp_path / "log.csv")
    assert recorded.peak_requested_bytes == 71_030
    again = LogResource(PoolResource(kind, q.device), tmp_path / "again.csv")
    trace.replay(recorded, again)  # which replays it twice
    again.flush()
    played = trace.load(tmp_path / "again.csv").events[["nbytes", "action"]]
    assert played.tolist() == 2 * recorded.events[["nbytes", "action"]].tolist()


def test_an_unwritable_log_is_reported_once(tmp_path: Path) -> None:
    program = f"""
import resource, signal
import isthmus
from isthmus.memory import LogResource, PoolResource
logged = LogResource(PoolResource("host", "host"), {str(tmp_path / "log.csv")!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
for _ in range(10):
    logged.allocate(100)
try:
    logged.flush()
except isthmus.DriverError as told:
    print(told)
logged.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
logged.allocate(77)
logged.flush()
"""
    done = python(program)
    assert "20 rows of the log were lost" in done.stdout
    assert done.stdout.count("\n") == 1
    assert (tmp_path / "log.csv").read_text().count(",77,") == 2
    for path in ("/dev/full", tmp_path / "none" / "log.csv"):
        with pytest.raises(isthmus.InvalidArgumentError, match="cannot create the log"):
            LogResource(PoolResource("host", "host"), path)


@pytest.mark.parametrize("end", ["", "\nraise SystemExit(0)", "\nif os.fork() == 0: os._exit(0)"])
def test_a_log_loses_no_row_at_the_end(end: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    program = f"""
import os, sys
from isthmus.memory import LogResource, PoolResource
logged = LogResource(PoolResource("host", "host"), {str(path)!r})
kept = [logged.allocate(100 + i) for i in range(10_000)]
"""
    python(program + end.replace("os._exit(0)", "sys.exit(0)"))
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["Action"] == "allocate"]
    assert [int(row["Size"]) for row in rows] == [100 + i for i in range(10_000)]


def test_prefetch(q: Queue, kind: str) -> None:
    prefetched = PrefetchResource(PoolResource(kind, q.device))
    data = np.arange(10_000, dtype=np.uint8)
    for _ in range(3):
        buffer = prefetched.allocate(10_000, queue=q)
        buffer.copy_from(data)
        assert buffer.tobytes() == data.tobytes()
        buffer.free()
    assert repr(prefetched).startswith(f"<isthmus.memory.PrefetchResource of {kind} memory on")
    with pytest.raises(TypeError, match=r"resource of isthmus\.memory"):
        PrefetchResource(None)  # type: ignore[arg-type]
