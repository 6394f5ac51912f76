# SPDX-License-Identifier: Apache-2.0
"""Replay of traces: held and counted memory, rejected input, and the command on top."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import ROOT, SANITIZED, sim

import isthmus
from isthmus import Context, Device, Queue, _core
from isthmus.cli import main
from isthmus.memory import MemoryResource, PoolResource, ProviderResource, live
from isthmus.trace import ALLOCATE, EVENT, FREE, Replay, Trace, load, replay

if TYPE_CHECKING:
    from pathlib import Path

DATA = ROOT / "bench" / "trace" / "data"
MIB = 1 << 20
# Limits of peak bytes held over peak bytes requested: with remapping and without.
BUDGETS = {"gpt_finetune": (1.01, 1.07), "dataframe": (1.025, 1.18)}


def trace_of(*rows: tuple[int, int, int, int], queues: int = 1) -> Trace:
    """A trace of rows (bytes, id, queue, action)."""
    return Trace("some", np.array(list(rows), EVENT), queues)


def random_trace(seed: int, queues: int = 3, events: int = 400, most: int = 200_000) -> Trace:
    """Blocks of all sizes, freed on any queue, many of them never freed."""
    random = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int]] = []
    there: dict[int, int] = {}
    for number in range(events):
        queue = int(random.integers(queues))
        if there and random.random() < 0.45:
            block = int(random.choice(list(there)))
            rows.append((there.pop(block), block, queue, FREE))
        else:
            there[number] = int(np.exp(random.uniform(0, np.log(most))))
            rows.append((there[number], number, queue, ALLOCATE))
    return trace_of(*rows, queues=queues)


def counts(trace: Trace) -> tuple[int, int]:
    """The numbers of allocations and of frees."""
    allocations = int((trace.events["action"] == ALLOCATE).sum())
    return allocations, len(trace.events) - allocations


def check_numbers(seen: Replay) -> None:
    told = seen.as_dict()
    assert 0 <= told["p50_ns"] <= told["p99_ns"] <= told["max_ns"] == seen.ns.max()
    assert told["mean_ns"] > 0
    assert told["peak_held_bytes"] == seen.held.max()
    assert told["ratio"] == seen.held.max() / seen.trace.requested.max()
    assert len(seen.held) == len(seen.ns) == told["events"]
    json.dumps(told, allow_nan=False)


def test_the_provider_holds_exactly_the_requested_bytes(dev: Device, kind: str) -> None:
    trace = random_trace(1)
    before = live()
    seen = replay(trace, ProviderResource(kind, dev))
    assert live() == before
    assert seen.held.tolist() == trace.requested.tolist()
    assert seen.ratio == 1
    assert (seen.maps, seen.unmaps) == counts(trace)
    check_numbers(seen)


def test_memory_returned_meanwhile_does_not_wrap(dev: Device, kind: str) -> None:
    """Live memory does not become negative if another thread frees older memory."""
    other = isthmus.Buffer(64 * MIB, kind=kind, device=dev)
    events = np.zeros(20_000, EVENT)
    events["nbytes"], events["action"] = 64, np.tile([ALLOCATE, FREE], 10_000)
    thread = threading.Timer(0.005, other.free)
    thread.start()
    seen = replay(Trace("long", events, 1), ProviderResource(kind, dev))
    thread.join()
    assert seen.held.max() <= 64


@pytest.mark.parametrize("name", BUDGETS)
def test_the_budgets_of_the_recorded_traces(name: str) -> None:
    """Runs in a process of its own.

    Without remapping, small differences decide where blocks are placed: held over requested bytes
    ranges from 1.12 to 1.21 depending on what the process did before.
    """
    moved, unmoved = BUDGETS[name]
    limits = {"pool": moved} if SANITIZED else {"pool": moved, "unmoved": unmoved}
    missed = []
    # On a busy machine a fence sometimes passes later, and more is held.
    for _ in range(3):
        rows = play_in_a_process(DATA / f"{name}.npz")
        calls = {row["resource"]: row["maps"] + row["unmaps"] for row in rows}
        ratios = {row["resource"]: row["ratio"] for row in rows}
        if all(
            ratios[each] <= limit and calls[each] <= 50 * rows[0]["events"] / 1000
            for each, limit in limits.items()
        ):
            return
        missed.append((ratios, calls))
    pytest.fail(f"not {limits} with 50 calls of the driver in 1,000 events: {missed}")


def play_in_a_process(trace: Path) -> list[dict[str, Any]]:
    command = ["-m", "isthmus", "replay", str(trace), "--device", "host", "--json"]
    if not SANITIZED:  # the resources compared with the pool take minutes there
        command.append("--compare")
    played = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True, timeout=120
    )
    told = json.loads(played.stdout)
    return told if isinstance(told, list) else [told]


@pytest.mark.parametrize("name", ["gpt_finetune", "dataframe", "streams"])
@pytest.mark.parametrize("where", ["host", "sim"])
def test_the_traces_of_the_benchmarks(name: str, where: str) -> None:
    device = Device("host") if where == "host" else sim(capacity="64GiB")
    trace = load(DATA / f"{name}.npz")
    seen = replay(trace, ProviderResource("device", device))
    assert seen.held.tolist() == trace.requested.tolist()
    assert (seen.maps, seen.unmaps) == counts(trace)
    moved, unmoved = (
        replay(trace, PoolResource("device", device, remap=remap)) for remap in (True, False)
    )
    for seen in (moved, unmoved):
        assert (seen.held >= trace.requested).all()
        # With several queues the result depends on when their fences pass.
        assert 1 <= seen.ratio < (1.5 if trace.queues == 1 else 4)
        check_numbers(seen)
    assert unmoved.maps < counts(trace)[0] / 10
    assert moved.maps < counts(trace)[0] / 5
    if trace.queues == 1:
        assert moved.ratio < unmoved.ratio
    if name == "gpt_finetune":  # remapped in whole chunks on sim, in pages on the host
        assert moved.ratio <= BUDGETS[name][0]


def test_a_trace_of_ones_own_is_checked() -> None:
    trace = trace_of((10, 0, 0, FREE))
    with pytest.raises(ValueError, match="event 0 of the trace frees block 0, which is not alloc"):
        replay(trace, ProviderResource("host", "host"))


def test_events_of_another_type() -> None:
    for events in (np.zeros(4, "u8"), np.zeros(4, EVENT.newbyteorder())):
        with pytest.raises(ValueError, match="dtype"):
            replay(Trace("some", events, 1), ProviderResource("host", "host"))


def test_no_events() -> None:
    seen = replay(trace_of(), PoolResource("host", "host"))
    told = seen.as_dict()
    assert (told["events"], told["ratio"], told["max_ns"], told["maps"]) == (0, 0, 0, 0)
    json.dumps(told, allow_nan=False)


def test_a_context_of_ones_own(dev: Device, kind: str) -> None:
    context = Context(dev)
    trace = random_trace(5)
    assert replay(trace, ProviderResource(kind, dev, context)).ratio == 1


def test_bad_input_of_the_module(dev: Device) -> None:
    resource = ProviderResource(dev.kinds[0], dev)
    queues = (Queue(dev),)
    events = np.array([(10, 0, 0, ALLOCATE)], EVENT).view(np.uint8)
    with pytest.raises(isthmus.WrongContextError, match="queue 1"):
        _core._replay(resource, (*queues, Queue(sim())), events, None)
    with pytest.raises(TypeError, match="must contain Queues, not NoneType"):
        _core._replay(resource, (None,), events, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"15 bytes .* multiple of 16"):
        _core._replay(resource, queues, events[:15], None)
    with pytest.raises(ValueError, match=r"16 bytes .* address of 8"):
        _core._replay(resource, queues, np.zeros(40, np.uint8)[3:19], None)
    for samples in (np.zeros(0, np.uint8), np.zeros(32, np.uint8)):
        with pytest.raises(ValueError, match="samples for 1 events"):
            _core._replay(resource, queues, events, samples)
    for wrong in (bytes(16), 5, None):
        with pytest.raises((BufferError, TypeError)):
            _core._replay(resource, queues, None if wrong is None else events, wrong or [])
    with pytest.raises(TypeError):
        _core._replay(None, queues, events, None)  # type: ignore[arg-type]
    assert isinstance(resource, MemoryResource)


def test_threads_play_at_once(dev: Device, kind: str) -> None:
    pool = PoolResource(kind, dev, growth_bytes=MIB)
    faults: list[BaseException] = []

    def play(seed: int) -> None:
        try:
            replay(random_trace(seed), pool)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not faults
    assert pool.trim() >= 0


# ---- the command ---------------------------------------------------------------------------------

HEADINGS = "resource ns p50 p99 max requested held ratio maps unmaps"
STREAMS = str(DATA / "streams.npz")
KEYS = {"trace", "events", "queues", "mean_ns", "p50_ns", "p99_ns", "max_ns", "maps", "unmaps"}
KEYS |= {
    "frees_before",
    "peak_requested_bytes",
    "peak_held_bytes",
    "ratio",
    "resource",
    "device",
    "kind",
}


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", STREAMS, "--device", "host", "--kind", "host", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told) == KEYS
    assert (told["resource"], told["kind"], told["device"]) == ("pool", "host", "host:cpu:0")
    assert (told["trace"], told["queues"]) == ("streams", 8)
    assert told["ratio"] == told["peak_held_bytes"] / told["peak_requested_bytes"]


def test_json_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", STREAMS, "--device", "host", "--compare", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["resource"] for each in told] == ["pool", "unchecked", "unmoved", "provider"]
    assert all(set(each) == KEYS for each in told)
    assert told[3]["ratio"] == 1
    assert min(each["ratio"] for each in told) == 1


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", STREAMS, "--device", "host", "--compare"]) == 0
    told = capsys.readouterr().out
    title = "streams: 33,650 events, 8 queues, device memory of host:cpu:0"
    rows = [line.split() for line in told.splitlines()]
    assert title in told
    assert " ".join(rows[2]) == HEADINGS
    assert [row[0] for row in rows[4:8]] == ["pool", "unchecked", "unmoved", "provider"]
    assert rows[7][-3:] == ["1.000", "16,825", "16,825"]


@pytest.mark.parametrize("name", ["pool", "unchecked", "unmoved", "provider"])
def test_resource(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    growth = [] if name == "provider" else ["--growth", "1MiB"]
    options = ["--resource", name, *growth, "--device", "host", "--json"]
    assert main(["replay", STREAMS, *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["resource"] == name
    assert (told["maps"] == 16_825) == (name == "provider")


def test_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    for name in ("both.png", "both.svg"):
        options = ["--compare", "--device", "host", "--plot", str(tmp_path / name)]
        assert main(["replay", STREAMS, *options]) == 0
        assert (tmp_path / name).stat().st_size > 10_000
    drawn = (tmp_path / "both.svg").read_text()
    assert "held by provider: peak 286.2 MiB, 1.000 x requested" in drawn
    capsys.readouterr()
    options = ["--device", "host", "--plot", str(tmp_path / "both.frob")]
    assert main(["replay", STREAMS, *options]) == 1
    assert "frob" in capsys.readouterr().err


def test_resource_of_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "resources_of_mine.py").write_text(
        "from isthmus.memory import ArenaResource, PoolResource\n"
        "def arena(kind, device):\n"
        "    return ArenaResource(PoolResource(kind, device))\n"
    )
    monkeypatch.chdir(tmp_path)
    options = ["--resource", "resources_of_mine:arena", "--device", "host", "--json"]
    assert main(["replay", STREAMS, *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["resource"] == "resources_of_mine:arena"
    assert told["ratio"] >= 1


def test_out_of_memory_does_not_affect_other_resources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user's resource next to the named ones; an error does not keep its memory alive."""
    (tmp_path / "a_small_one.py").write_text(
        "from isthmus.memory import LimitResource, PoolResource\n"
        "def limited(kind, device):\n"
        "    return LimitResource(PoolResource(kind, device), '1MiB')\n"
    )
    monkeypatch.chdir(tmp_path)
    before = live()
    options = ["--compare", "--resource", "a_small_one:limited", "--device", "host"]
    assert main(["replay", STREAMS, *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    names = ["a_small_one:limited", "pool", "unchecked", "unmoved", "provider"]
    assert [each["resource"] for each in told] == names
    assert set(told[0]) == {"resource", "device", "kind", "error"}
    assert "limit of 1 MiB" in told[0]["error"]
    assert all(set(each) == KEYS for each in told[1:])
    assert live() == before
    assert main(["replay", STREAMS, *options]) == 0
    table = capsys.readouterr().out
    rows = [line.split() for line in table.splitlines()]
    assert [row[0] for row in rows[4:9]] == names
    assert rows[4][1:] == ["no", "memory"]
    assert "a_small_one:limited: cannot allocate" in table
    pytest.importorskip("matplotlib")
    assert main(["replay", STREAMS, *options, "--plot", str(tmp_path / "held.svg")]) == 0
    assert "held by provider" in (tmp_path / "held.svg").read_text()


def test_where_nothing_has_memory_that_is_the_failure(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(DATA / "dataframe.npz")
    assert main(["replay", trace, "--device", "sim", "--compare", "--json"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "To do: " in told.err


def test_a_simulated_device_has_the_requested_capacity() -> None:
    played = subprocess.run(
        [sys.executable, "-m", "isthmus", "replay", str(DATA / "dataframe.npz"), "--device", "sim"],
        env=os.environ | {"ISTHMUS_SIM": "capacity=24GiB"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (played.returncode, played.stderr) == (0, "")


@pytest.mark.parametrize("rows", ["", "allocate,1,0\n", "allocate failure,1,100\n"])
@pytest.mark.parametrize("options", [[], ["--json"], ["--compare"]])
def test_an_empty_trace_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: str, options: list[str]
) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text(f"Action,Pointer,Size\n{rows}")
    assert main(["replay", str(empty), "--device", "host", *options]) == 1
    told = capsys.readouterr()
    assert not told.out
    assert f"{empty}: it contains no events to replay: record while" in told.err


def test_frees_of_earlier_allocations_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "begun_late.csv"
    log.write_text("Action,Pointer,Size\nfree,0x7,64\nallocate,0x7,128\nfree,0x7,128\n")
    assert main(["replay", str(log), "--device", "host"]) == 0
    assert "left out: 1 free of memory that was allocated before" in capsys.readouterr().out
    assert main(["replay", str(log), "--device", "host", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["events"], told["frees_before"]) == (2, 1)


def test_missing_matplotlib_is_reported_before_the_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["replay", STREAMS, "--device", "host", "--plot", "x.png"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("isthmus: ")
    assert "matplotlib" in told.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["absent.npz"], "absent.npz"),
        (["trace.txt"], ".csv, .npz, .pickle, .pkl"),
        ([STREAMS, "--device", "opencl:accelerator:7"], "opencl:accelerator:7"),
        ([STREAMS, "--device", "host", "--resource", "json:absent"], "no function 'absent'"),
        ([STREAMS, "--device", "host", "--resource", "operator:eq"], "returned a bool"),
        ([STREAMS, "--device", "host", "--resource", "nowhere:make"], "nowhere"),
        ([STREAMS, "--device", "host", "--resource", "os:getcwd"], "os:getcwd, called with"),
        ([str(DATA / "dataframe.npz"), "--device", "sim"], "To do: "),
    ],
)
def test_failures_are_one_line(
    arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *arguments]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("isthmus: ")
    assert told.err.count("\n") == 1
    assert part in told.err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [STREAMS, "--resource", "frob"],
        [STREAMS, "--kind", "frob"],
        [STREAMS, "--resource", "provider", "--growth", "1MiB"],
        [STREAMS, "--resource", "json:loads", "--growth", "1MiB"],
        [STREAMS, "--resource", ".json:loads"],
        [STREAMS, "--resource", "json:"],
        [STREAMS, "--growth", "much"],
        [STREAMS, "--growth", "-1"],
        [STREAMS, "--growth", "999TiB"],
        [STREAMS, "--growth", "64"],
        [STREAMS, "--growth", "64M"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", *arguments]) == 2
    assert "usage:" in capsys.readouterr().err
