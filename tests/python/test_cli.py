# SPDX-License-Identifier: Apache-2.0
"""The command ``isthmus``: its output, where it is written, and the exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import isthmus
from isthmus.cli import demo_command, demo_unified, main, parser
from isthmus.cli.bench import sizes
from isthmus.cli.demo_command import size
from isthmus.cli.output import bytes_text, rate_text, time_text


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a subprocess, with its output in pipes."""
    command = [sys.executable, "-m", "isthmus", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300
    )


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"isthmus {isthmus.__version__}\n")


def test_no_command_is_the_help() -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run("--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["bench", "--sizes", "big"],
        ["bench", "--sizes", "0"],
        ["bench", "--sizes", "64M"],
        ["demo", "--size", "8192"],
        ["demo", "--size", "1x1"],
        ["demo", "nonsense"],
        ["demo", "unified", "--rows", "63"],
        ["demo", "unified", "--rows", "21601"],
        ["demo", "unified", "--rounds", "0"],
        ["demo", "unified", "--granularity", "byte"],
        ["demo", "unified", "--size", "640x480"],
        ["config"],
        ["config", "--library", "--cmake-dir"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "usage:" in told.err


def test_info_json_equals_the_api(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == isthmus.__version__
    assert told["default"] == isthmus.current_device().filter
    listed = {device["filter"]: device for each in told["platforms"] for device in each["devices"]}
    for device in isthmus.devices():
        assert listed[device.filter]["kinds"] == list(device.kinds)
        assert listed[device.filter]["max_allocation"] == device.max_allocation
        assert listed[device.filter]["memory"]["total"] > 0


def test_info_lists_default_pools_and_current_resources(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def resources_of_host() -> dict[str, Any]:
        assert main(["info", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        devices = [each for platform in told["platforms"] for each in platform["devices"]]
        assert all(set(each["resources"]) == set(each["kinds"]) for each in devices)
        return next(each for each in devices if each["filter"] == "host:cpu:0")["resources"]

    expected = {"current": None, "default_pools": [["arrays", "buffers"]]}
    assert resources_of_host() == dict.fromkeys(("device", "shared", "host"), expected)
    with isthmus.using(isthmus.memory.PoolResource("host", "host")):
        listed = resources_of_host()
        assert (listed["host"]["current"], listed["shared"]["current"]) == ("PoolResource", None)
        assert main(["info"]) == 0
        assert re.search(
            r"host:cpu:0 +host +PoolResource +one for arrays and buffers", capsys.readouterr().out
        )


def test_info_lists_devices_and_absent_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "-v"]) == 0
    told = capsys.readouterr().out
    for device in isthmus.devices():
        assert device.filter in told
        assert device.name.strip() in told
        assert device.limitations in told
    for backend, reason in isthmus.absent():
        assert re.search(f"^not (installed|in use): {backend}: {re.escape(reason)}", told, re.M)
    assert isthmus.get_library() in told


def test_info_shows_how_writes_are_detected() -> None:
    told = json.loads(run("info", "--json").stdout)["tracking"]
    assert told["means"] in ("pages", "hashes")
    assert (told["reason"] == "") == (told["means"] == "pages")
    assert told["granule"] in (4096, 65536, 2 << 20)
    assert f"tracking: {told['means']}, with a granularity of " in run("info", "-v").stdout


@pytest.mark.parametrize(("means", "granule"), [("bytes", 1), ("hashes", 65536)])
def test_info_shows_forced_tracking(means: str, granule: int) -> None:
    done = run("info", "--json", ISTHMUS_TRACKING=means)
    told = json.loads(done.stdout)["tracking"]
    assert told == {"means": means, "granule": granule, "reason": "requested"}
    line = f"tracking: {means}, with a granularity of {bytes_text(granule)}: requested"
    assert line in run("info", "-v", ISTHMUS_TRACKING=means).stdout


def test_info_reports_invalid_forced_tracking() -> None:
    done = run("info", "-v", ISTHMUS_TRACKING="magic")
    assert done.returncode == 0
    assert "ISTHMUS_TRACKING is 'magic'" in done.stdout


def test_output_in_a_pipe_has_no_colour_or_trailing_spaces() -> None:
    done = run("info", "-v", COLUMNS="40")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in done.stdout.splitlines())
    host = next(line for line in done.stdout.splitlines() if line.startswith("host:"))
    assert "device, shared, host" in host


def test_an_unknown_device_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["bench", "--quick"], ["demo"], ["demo", "unified"]):
        assert main([*command, "--device", "opencl:accelerator:7"]) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("isthmus: ")
        assert "Traceback" not in told.err


def test_bench_json_has_every_direction_and_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--device", "host", "--sizes", "64,4KiB", "--quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["contestants"][:2] == ["isthmus", "NumPy"]
    seen = {(row["what"], row["kind"], row["nbytes"]) for row in told["rows"]}
    for what in ("host memory -> buffer", "buffer -> host memory", "buffer -> buffer"):
        for kind in ("device", "shared", "host"):
            assert {(what, kind, 64), (what, kind, 4096)} <= seen
    for what in ("allocate and free, from a pool", "allocate and free, without a pool"):
        assert {(what, kind, 64) for kind in ("device", "shared", "host")} <= seen
    for what in ("Buffer(n)", "empty(n)", "MemoryUSMDevice(n)"):
        assert {(what, "device", 1 << 10), (what, "device", 1 << 20)} <= seen
        assert all("NumPy" in row["seconds"] for row in told["rows"] if row["what"] == what)
    assert all(row["seconds"]["isthmus"] > 0 for row in told["rows"])
    assert all(row["ratio"] is None or row["ratio"] > 0 for row in told["rows"])
    assert all(row["ratio"] for row in told["rows"] if row["kind"] == "host")
    unified = next(row for row in told["rows"] if row["what"].startswith("unified buffer"))
    assert {"isthmus", "isthmus, whole copy", "NumPy, whole copy"} <= set(unified["seconds"])
    assert len(told["first_use"]) == 4
    assert all(row["seconds"] > 0 for row in told["first_use"])


def test_bench_compares_device_memory_with_device_memory_only() -> None:
    from isthmus.cli.bench import _row
    from isthmus.cli.contestants import POOL, UPLOAD, Case, Isthmus, NumPy

    device = isthmus.Device("host")
    contestants = [Isthmus(device), NumPy(device)]
    for what in (UPLOAD, POOL):
        for kind in ("device", "shared"):
            assert _row(Case(what, kind, 64), contestants, 0.0)["ratio"] is None
        assert _row(Case(what, "host", 64), contestants, 0.0)["ratio"] > 0


def test_bench_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--device", "host", "--sizes", "4KiB", "--quick"]) == 0
    told = capsys.readouterr().out
    assert "allocate and free, from a pool" in told
    assert "first use" in told
    assert "ratio" in told
    assert "GB/s" in told


def test_bench_rejects_impossible_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--device", "host", "--sizes", "64,9999TiB"]) == 1
    assert "more than the largest allocation" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "holds"),
    [
        ("--include-dir", "isthmus/isthmus.h"),
        ("--cmake-dir", "isthmusConfig.cmake"),
        ("--pkgconfig-dir", "isthmus.pc"),
        ("--library", ""),
    ],
)
def test_config(flag: str, holds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", flag]) == 0
    assert (Path(capsys.readouterr().out.strip()) / holds).exists()


@pytest.mark.parametrize("place", ["before", "behind"])
def test_what_both_demos_take_may_stand_on_either_side(place: str) -> None:
    common = ["--device", "host:0", "--output", "there", "--json"]
    words = [*common, "unified"] if place == "before" else ["unified", *common]
    chosen = parser().parse_args(["demo", *words])
    assert (chosen.device, chosen.output, chosen.json) == ("host:0", "there", True)
    assert chosen.run is demo_unified.run
    plain = parser().parse_args(["demo", "unified"])
    assert (plain.device, plain.output, plain.json) == ("", ".", False)
    assert parser().parse_args(["demo", *common]).run is demo_command.run


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> dict[str, object]:
        raise KeyboardInterrupt

    monkeypatch.setattr("isthmus.cli.info.gather", interrupted)
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "isthmus: interrupted\n"


def test_a_reader_that_leaves_is_no_failure() -> None:
    command = f"{sys.executable} -m isthmus info -v | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("Isthmus")


def test_the_command_loads_numpy_and_rich_only_when_it_prints() -> None:
    code = (
        "import sys; from isthmus.cli import main; main(['--version']); "
        "print([name for name in ('numpy', 'rich', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_numbers_for_people() -> None:
    assert [bytes_text(n) for n in (0, 1023, 4096, 134283264)] == [
        "0 B",
        "1023 B",
        "4 KiB",
        "128.1 MiB",
    ]
    assert [time_text(s) for s in (0.0, 3.4e-8, 1.5e-5, 0.25, 2.0)] == [
        "0 ns",
        "34 ns",
        "15 us",
        "250 ms",
        "2 s",
    ]
    assert rate_text(2e9, 0.5) == "4 GB/s"
    assert rate_text(1, 0.0) == ""
    assert sizes("64, 4KiB,2mib") == [64, 4096, 2 << 20]
    assert size("640x480") == (640, 480)
