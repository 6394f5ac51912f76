# SPDX-License-Identifier: Apache-2.0
"""Trace readers: accepted and rejected files; no file can do harm."""

from __future__ import annotations

import copyreg
import io
import os
import pickle
import random
import zipfile
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from support import ROOT

from isthmus.trace import ALLOCATE, EVENT, FREE, Trace, TraceError, load
from isthmus.trace import _load as readers
from isthmus.trace import _trace as numbering

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA = ROOT / "bench" / "trace" / "data"
# (allocate or free, block, bytes, stream): the rows that are written and must be read back.
Row = tuple[int, int, int, int]
ROWS: list[Row] = [
    (1, 7, 1000, 0),
    (1, 8, 64, 5),
    (0, 7, 1000, 5),
    (1, 7, 4096, 0),
    (0, 8, 64, 5),
]
KINDS = ("npz", "csv", "pickle")


def npz(rows: list[Row], **replaced: Any) -> bytes:
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    types = {"op": "u1", "id": "u8", "size": "u8", "stream": "u4"}
    arrays: dict[str, Any] = {
        name: np.array(values, dtype)
        for (name, dtype), values in zip(types.items(), columns, strict=True)
    }
    arrays |= replaced
    file = io.BytesIO()
    np.savez_compressed(file, **{name: each for name, each in arrays.items() if each is not None})
    return file.getvalue()


def csv(rows: list[Row]) -> bytes:
    """The format of RMM's logging_resource_adaptor."""
    lines = ["Thread,Time,Action,Pointer,Size,Stream"]
    for number, (op, block, nbytes, stream) in enumerate(rows):
        action = "allocate" if op else "free"
        time = f"10:14:52:{number:06}"
        lines.append(f"1979,{time},{action},0x{block:x},{nbytes},{stream:#x}")
    return "".join(f"{line}\n" for line in lines).encode()


def entries(rows: list[Row]) -> list[dict[str, Any]]:
    """The format of torch.cuda.memory._snapshot(), with entries that are not the program's own."""
    found: list[dict[str, Any]] = []
    for number, (op, block, nbytes, stream) in enumerate(rows):
        fields = {
            "addr": block,
            "size": nbytes,
            "stream": stream,
            "time_us": 1_700_000_000_000_000 + number,
            "frames": [{"filename": "train.py", "name": "step", "line": number}],
        }
        if op:
            found.append(
                {"action": "segment_alloc", **fields, "addr": 0, "size": 2 << 20, "frames": []}
            )
            found.append({"action": "alloc", **fields})
        else:
            found += [{"action": f"free_{when}", **fields} for when in ("requested", "completed")]
    return found


def snapshot(rows: list[Row], protocol: int = pickle.DEFAULT_PROTOCOL) -> bytes:
    segment = {"address": 0, "segment_pool_id": (0, 0), "is_expandable": False, "blocks": []}
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "garbage_collection_threshold": 0.0, "none": None}
    whole = {
        "segments": [segment],
        "device_traces": [[], entries(rows), entries(ROWS)],
        "allocator_settings": settings,
    }
    return pickle.dumps(whole, protocol)


WRITERS: dict[str, Callable[[list[Row]], bytes]] = {"npz": npz, "csv": csv, "pickle": snapshot}


def read(tmp_path: Path, kind: str, data: bytes) -> Trace:
    file = tmp_path / f"some.{kind}"
    file.write_bytes(data)
    return load(file)


def refused(tmp_path: Path, kind: str, data: bytes, *parts: str) -> None:
    """The error is one line that starts with the path of the file."""
    with pytest.raises(TraceError) as told:
        read(tmp_path, kind, data)
    text = str(told.value)
    assert text.startswith(str(tmp_path / f"some.{kind}: "))
    assert "\n" not in text
    assert not [part for part in parts if part not in text], text


def model(rows: list[Row]) -> list[tuple[int, int, int, int]]:
    """Bytes, id, queue and action of each event, with ids in order of appearance."""
    queues: dict[int, int] = {}
    live: dict[int, tuple[int, int]] = {}
    made = 0
    events = []
    for op, block, nbytes, stream in rows:
        queue = queues.setdefault(stream, len(queues))
        if op:
            live[block] = (nbytes, made)
            made += 1
        held, number = live[block] if op else live.pop(block)
        events.append((held, number, queue, op))
    return events


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace(kind: str, tmp_path: Path) -> None:
    trace = read(tmp_path, kind, WRITERS[kind](ROWS))
    assert trace.name == "some"
    assert trace.queues == 2
    assert trace.events.dtype == EVENT
    assert trace.events.tolist() == model(ROWS)
    assert trace.requested.tolist() == [1000, 1064, 64, 4160, 4096]
    assert trace.peak_requested_bytes == 4160
    with pytest.raises(ValueError, match="read-only"):
        trace.events[0] = trace.events[1]


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    live: dict[int, int] = {}
    made: list[Row] = []
    blocks = st.integers(1, 2**48)
    for _ in range(draw(st.integers(1, 30))):
        stream = draw(st.integers(0, 6))
        if live and draw(st.booleans()):
            block = draw(st.sampled_from(sorted(live)))
            made.append((FREE, block, live.pop(block), stream))
        elif (block := draw(blocks)) not in live:
            live[block] = draw(st.integers(1, 2**58))
            made.append((ALLOCATE, block, live[block], stream))
    return made


@pytest.mark.parametrize("kind", KINDS)
@settings(
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=rows())
def test_what_is_written_comes_back(kind: str, tmp_path: Path, rows: list[Row]) -> None:
    trace = read(tmp_path, kind, WRITERS[kind](rows))
    assert trace.events.tolist() == model(rows)
    assert trace.queues == len({stream for *_, stream in rows})


@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes_raise_nothing_else(kind: str, tmp_path: Path, long_tier: bool) -> None:
    """Bytes are changed, removed or repeated: the result is a trace or a TraceError."""
    chance = random.Random(f"{kind} 1")
    whole = WRITERS[kind](ROWS)
    outcomes = set()
    for _ in range(20_000 if long_tier else 1_000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            end = at + chance.randint(0, 8)
            change = chance.choice(("flip", "cut", "twice", "noise"))
            if change == "flip":
                data[at] ^= 1 << chance.randrange(8)
            elif change == "cut":
                del data[at : min(end, len(data) - 1)]
            elif change == "twice":
                data[at:at] = data[at:end]
            else:
                data[at:end] = chance.randbytes(end - at)
        try:
            outcomes.add(type(read(tmp_path, kind, bytes(data))))
        except TraceError as told:
            outcomes.add(type(told))
    assert outcomes == {Trace, TraceError}


@pytest.mark.parametrize("name", ["gpt_finetune", "dataframe", "streams"])
def test_the_traces_of_the_benchmarks(name: str) -> None:
    trace = load(DATA / f"{name}.npz")
    with np.load(DATA / f"{name}.npz") as arrays:
        assert trace.events["action"].tolist() == arrays["op"].tolist()
        assert trace.events["nbytes"].tolist() == arrays["size"].tolist()
        assert trace.queues == len(set(arrays["stream"].tolist()))
    assert trace.requested.min() >= 0


def test_the_generated_trace_is_its_scripts(tmp_path: Path) -> None:
    import runpy

    script = runpy.run_path(str(DATA.parent / "generate.py"))
    script["write"](script["record"](), tmp_path / "again.npz")
    with np.load(DATA / "streams.npz") as kept, np.load(tmp_path / "again.npz") as again:
        for name in ("op", "id", "size", "stream"):
            assert kept[name].tolist() == again[name].tolist()
    events = load(DATA / "streams.npz").events
    freed = events[events["action"] == FREE]
    made = {row["id"]: row["queue"] for row in events[events["action"] == ALLOCATE]}
    elsewhere = sum(made[row["id"]] != row["queue"] for row in freed)
    assert elsewhere > len(freed) / 20


def test_names_of_files(tmp_path: Path) -> None:
    file = tmp_path / "upper.PKL"
    file.write_bytes(snapshot(ROWS))
    assert load(str(file)).name == "upper"
    for name in ("trace", "trace.txt", ".npz"):
        with pytest.raises(TraceError, match=r"\.csv, \.npz, \.pickle, \.pkl"):
            load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.npz")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        load(tmp_path / "folder.csv")


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_have_happened(kind: str, tmp_path: Path) -> None:
    write = WRITERS[kind]
    first = (ALLOCATE, 7, 1000, 0)
    refused(tmp_path, kind, write([first, first]), "allocates block", "already allocated")
    full = [first, (ALLOCATE, 8, 2**63 - 1, 0)]
    refused(tmp_path, kind, write(full), "allocates 9223372036854775807 bytes", "1000 are live")
    gone = (FREE, 7, 1000, 0)
    refused(tmp_path, kind, write([first, gone, gone]), "frees block", "is not allocated")
    refused(tmp_path, kind, write([gone, gone, first]), "frees block", "is not allocated")
    streams = [(ALLOCATE, block, 1, block) for block in range(1, 1026)]
    refused(tmp_path, kind, write(streams), "exceeds the limit of 1024 streams")


@pytest.mark.parametrize("kind", KINDS)
def test_places_in_messages(kind: str, tmp_path: Path) -> None:
    wrong = [*ROWS, (ALLOCATE, 7, 5, 0)]
    place = {"npz": "event 5:", "csv": "line 7:", "pickle": "entry 11:"}[kind]
    refused(tmp_path, kind, WRITERS[kind](wrong), place, "7")


@pytest.mark.parametrize("kind", KINDS)
def test_no_bytes_take_no_memory(kind: str, tmp_path: Path) -> None:
    """RMM logs a null pointer for each allocation of no bytes."""
    nothing: list[Row] = [(ALLOCATE, 1, 0, 0), (ALLOCATE, 1, 0, 0), (FREE, 1, 0, 0)]
    trace = read(tmp_path, kind, WRITERS[kind]([*nothing, *ROWS]))
    assert trace.events.tolist() == model(ROWS)
    assert len(read(tmp_path, kind, WRITERS[kind](nothing)).events) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_too_many_events(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "MAX_EVENTS", len(ROWS))
    assert len(read(tmp_path, kind, WRITERS[kind](ROWS)).events) == len(ROWS)
    more: list[Row] = [*ROWS, (FREE, 7, 4096, 0)]
    refused(tmp_path, kind, WRITERS[kind](more), "exceeds the limit of 5 events")


def test_too_large_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_MAX_BYTES", 1000)
    refused(tmp_path, "csv", b" " * 1001, "more than 1000 bytes")


# ---- .npz ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replaced", "parts"),
    [
        ({"op": None}, ["0 arrays are named 'op'"]),
        ({"id": None}, ["0 arrays are named 'id'"]),
        ({"size": None}, ["0 arrays are named 'size'"]),
        ({"op": np.zeros(4, "u1")}, ["[4, 5, 5, 5] elements"]),
        ({"op": np.array([1, 1, 2, 1, 0], "u1")}, ["event 2: op 2 is neither"]),
        ({"size": np.full(5, -1, "i8")}, ["event 0: allocates -1 bytes"]),
        ({"size": np.full(5, np.nan)}, ["'size' has dtype 'float64'"]),
        ({"size": np.full(5, 2**63, "u8")}, ["event 0: allocates 9223372036854775808 bytes"]),
        ({"id": np.zeros((5, 1), "u4")}, ["'id'", "2 dimensions"]),
        ({"id": np.array("x")}, ["'id' has dtype '<U1' and 0 dimensions"]),
        ({"id": np.array([[], None], object)}, ["'id' has dtype 'object'"]),
        ({"stream": np.zeros(5, [("a", "u1")])}, ["'stream'"]),
    ],
    ids=lambda value: str(next(iter(value))) if isinstance(value, dict) else "",
)
def test_wrong_arrays(replaced: dict[str, Any], parts: list[str], tmp_path: Path) -> None:
    refused(tmp_path, "npz", npz(ROWS, **replaced), *parts)


def test_arrays_of_any_integers(tmp_path: Path) -> None:
    for dtype in ("u1", "i2", ">u4", "<i8"):
        sizes = np.array([100, 64, 100, 96, 64], dtype)
        trace = read(tmp_path, "npz", npz(ROWS, size=sizes, other=np.zeros(3), stream=None))
        assert trace.requested.tolist() == [100, 164, 64, 160, 96]
        assert trace.queues == 1


def archive(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, data in members:
            made.writestr(name, data)
    return file.getvalue()


def npy(array: np.ndarray, says: int | None = None) -> bytes:
    """The file of an array, whose header may declare another length."""
    file = io.BytesIO()
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": (says or len(array),)}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def test_archives_that_lie_or_swell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = {f"{name}.npy": npy(np.ones(3, "u8")) for name in ("op", "id", "size")}
    once = [(name, data) for name, data in good.items() if name != "op.npy"]
    for says in (4, 2**40, -1):
        lying = npy(np.ones(3, "u8"), says)
        refused(tmp_path, "npz", archive([("op.npy", lying), *once]), "says", str(says))
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = archive([*good.items(), ("op.npy", good["op.npy"])])
    refused(tmp_path, "npz", twice, "2 arrays are named 'op'")
    for other in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        refused(tmp_path, "npz", archive([*good.items()], other), "compressed by a method")
    monkeypatch.setattr(readers, "MAX_EVENTS", 1000)
    swollen = archive([("op.npy", npy(np.zeros(1 << 20, "u8"))), *once])
    assert len(swollen) < 20_000
    refused(tmp_path, "npz", swollen, "more than the 1000 elements allowed")
    for garbage in (b"", b"PK\3\4", b"\x93NUMPY\1\0", npy(np.ones(3)), archive([])):
        refused(tmp_path, "npz", garbage)


# ---- .csv ----------------------------------------------------------------------------------------

HEADER = "Thread,Time,Action,Pointer,Size,Stream\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["no lines"]),
        ("\n \n", ["no lines"]),
        ("Thread,Time,Action,Pointer,Stream\n", ["no column 'Size'"]),
        ("Action,Pointer,Size,Size\n", ["2 columns are named 'Size'"]),
        (f"{HEADER}1,2,allocate,0x1,64\n", ["line 2: 5 fields, but the first line has 6"]),
        (f"{HEADER}\n1,2,allocate,0x1,64,0,9\n", ["line 3: 7 fields"]),
        (f"{HEADER}1,2,frob,0x1,64,0\n", ["line 2: action 'frob'"]),
        (f"{HEADER}1,2,ALLOCATE,0x1,64,0\n", ["line 2: action 'ALLOCATE'"]),
        (f"{HEADER}1,2,\x1b[2J,0x1,64,0\n", ["line 2: action '\\x1b[2J'"]),
        (f"{HEADER}1,2,allocate,,64,0\n", ["line 2: no pointer"]),
        *(
            (f"{HEADER}1,2,allocate,0x1,{size},0\n", [f"line 2: size '{size}' is not a number"])
            for size in ("", "-1", "+1", "1.5", "nan", "0x10", "1_000", "²", "1e3")
        ),
        (f"{HEADER}1,2,allocate,0x1,{'9' * 5000},0\n", ["line 2 has more than 4096"]),
        (f"{HEADER}1,2,allocate,0x1,{'9' * 100},0\n", ["line 2: size '99999", "..."]),
        (f"{HEADER}1,2,allocate,0x1,{2**63},0\n", [f"line 2: allocates {2**63} bytes"]),
    ],
)
def test_wrong_lines(text: str, parts: list[str], tmp_path: Path) -> None:
    refused(tmp_path, "csv", text.encode(), *parts)


def test_logs_as_they_come(tmp_path: Path) -> None:
    text = (
        "\ufeffThread,Time,Action,Pointer,Size,Stream\r\n"
        "1979,10:14:52:000001, allocate ,0x7f00,1000,0x0\r\n"
        "\r\n"
        "1979,10:14:52:000002,allocate failure,(nil),99999999999,0x0\r\n"
        "1979,10:14:52:000003,free,0x7f00,1000,0x2\r\n"
    )
    trace = read(tmp_path, "csv", text.encode())
    assert trace.events.tolist() == [(1000, 0, 0, ALLOCATE), (1000, 0, 1, FREE)]
    trace = read(tmp_path, "csv", b"Size,Pointer,Action\n10,a\xff,allocate\n20,b,allocate")
    assert trace.requested.tolist() == [10, 30]
    assert trace.queues == 1


# ---- snapshots -----------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol(protocol: int, tmp_path: Path) -> None:
    assert read(tmp_path, "pickle", snapshot(ROWS, protocol)).events.tolist() == model(ROWS)


@pytest.mark.parametrize("protocol", [4, 5])
def test_plain_data_of_every_sort(protocol: int) -> None:
    values: list[Any] = [None, True, False, 0, 1, -1, 255, 256, 65_536, 2**31, -(2**31), 2**63]
    values += [10**700, 1.5, -0.0, float("inf"), "", "é\n\\", "\ud800", "a" * 300, b"", b"x" * 300]
    values += [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [[]] * 5, list(range(3000)), {}]
    values += [{str(n): n for n in range(3000)}, {n: str(n) for n in range(256)}, {1, 2}, set()]
    values += [{(1, "a"): 2, None: 3, b"k": 4, 2**64 - 1: 5, -(2**63): 6, (0,) * 16: 7}]
    values += [frozenset({1, (2, 3)}), {"again": [values[0]]}]
    assert readers._plain_pickle.loads(pickle.dumps(values, protocol)) == values


ran: list[str] = []


def run(what: str) -> list[Any]:
    ran.append(what)
    return []


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return run, ("reduce",)


class Named:
    pass


class Persistent(pickle.Pickler):
    def persistent_id(self, obj: Any) -> str | None:
        return "evil" if isinstance(obj, Hostile) else None


def with_extension() -> bytes:
    """A code of the extension registry, for which the C unpickler caches an object."""
    copyreg.add_extension(__name__, "run", 0x70)
    try:
        data = pickle.dumps(run, 2)
        pickle.loads(data)
        return data
    finally:
        copyreg.remove_extension(__name__, "run", 0x70)


def persistent() -> bytes:
    file = io.BytesIO()
    Persistent(file).dump(Hostile())
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "part"),
    [
        *((pickle.dumps({"device_traces": Hostile()}, p), "GLOBAL") for p in range(6)),
        (pickle.dumps([Named(), run], 5), "GLOBAL"),
        (pickle.dumps(np.zeros(3)), "GLOBAL"),
        (pickle.dumps(2j), "GLOBAL"),
        (b"cos\nsystem\n(S'touch harm'\ntR.", "GLOBAL"),
        (b"(ios\nsystem\n.", "INST"),
        (b"]]b.", "BUILD"),
        (persistent(), "BINPERSID"),
        (b"Pevil\n.", "PERSID"),
        (with_extension(), "EXT1"),
        (b"\x83\1\0.", "EXT2"),
        (b"\x84\1\0\0\0.", "EXT4"),
        (b"\x80\5\x97.", "NEXT_BUFFER"),
        (b"\xff.", "opcode 0xff"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_in_a_pickle_is_run(
    data: bytes, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran.clear()
    refused(tmp_path, "pickle", data, part, "only builtin containers and scalars")
    assert not ran
    assert os.listdir(tmp_path) == ["some.pickle"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"N",
        b"h\0.",
        b"]q",
        b"K\1r\xff\xff\xff\xff\x80\4.",  # would be four billion memo entries in the C unpickler
        b"]p99999999999\n.",
        b"X\xff\xff\xff\xff.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x96\0\0\0\0\xff\0\0\0.",
        b"\x8b\xff\xff\xff\xff.",
        b"I" + b"9" * 10_000 + b"\n.",
        b"}" + b")" + b"\x85" * 1_000_000 + b"Ns.",  # hashing it needs as deep a stack
        b"}]Ns.",
        b"\x8f(]\x90.",
        b"(]N\x91.",
        b"}(K\1u.",
        b"(K\1d.",
        b"K\1K\2a.",
        b"e.",
        b"0.",
        b"\x87.",
        b"G\0.",
        b"]" * 1_000_000 + b"a" * 999_999 + b".",
        pickle.dumps([]),
        pickle.dumps({}),
        pickle.dumps({"device_traces": 5}),
        pickle.dumps({"device_traces": []}),
        pickle.dumps({"device_traces": [[], []]}),
        pickle.dumps({"device_traces": [5]}),
        pickle.dumps({"device_traces": [[5]]}),
        pickle.dumps({"device_traces": [[{"addr": 1}]]}),
        pickle.dumps({"device_traces": [[{"action": ["alloc"]}]]}),
    ],
    ids=lambda data: repr(data[:12]),
)
def test_wrong_pickles(data: bytes, tmp_path: Path) -> None:
    refused(tmp_path, "pickle", data)


@pytest.mark.parametrize("key", ["addr", "size", "stream"])
@pytest.mark.parametrize("value", [None, 1.0, float("nan"), "1", True, [1], b"1"])
def test_wrong_fields(key: str, value: object, tmp_path: Path) -> None:
    entry = {"action": "alloc", "addr": 1, "size": 8, "stream": 0, key: value}
    data = pickle.dumps({"device_traces": [[{"action": "oom"}, entry]]})
    refused(tmp_path, "pickle", data, f"entry 1 of the history: {key} {value!r} is not an integer")


def test_negative_and_huge_sizes(tmp_path: Path) -> None:
    for size in (-1, 2**63, 10**5000):
        entry = {"action": "alloc", "addr": 1, "size": size, "stream": 0}
        refused(tmp_path, "pickle", pickle.dumps({"device_traces": [[entry]]}))


@pytest.mark.parametrize("kind", KINDS)
def test_what_begins_in_the_midst(kind: str, tmp_path: Path) -> None:
    """Frees of blocks that were never allocated; one of these is allocated again later."""
    rows: list[Row] = [(FREE, 7, 10, 0), *ROWS, (FREE, 98, 10, 3), (FREE, 7, 4096, 0)]
    data = WRITERS[kind](rows)
    if kind == "npz":  # a recording of this format never starts late
        refused(tmp_path, kind, data, "event 0: frees block 7, which is not allocated")
        return
    trace = read(tmp_path, kind, data)
    assert trace.events.tolist() == model([*ROWS, (FREE, 7, 4096, 0)])
    assert (trace.frees_before, trace.queues) == (2, 2)
    assert read(tmp_path, kind, WRITERS[kind](ROWS)).frees_before == 0


def test_a_history_without_streams(tmp_path: Path) -> None:
    old = [{key: value for key, value in each.items() if key != "stream"} for each in entries(ROWS)]
    trace = read(tmp_path, "pickle", pickle.dumps({"device_traces": [old]}))
    assert trace.queues == 1
