# SPDX-License-Identifier: Apache-2.0
"""The command ``isthmus`` in terminals of several widths: it shows what it writes to a pipe."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from terminal import run_in_terminal

from isthmus.cli import tables
from isthmus.cli.demo_unified import map_lines

HERE = Path(__file__).parent
STREAMS = str(HERE.parents[1] / "bench" / "trace" / "data" / "streams.npz")
COMMANDS = {
    "info": ["info"],
    "info -v": ["info", "-v"],
    "bench": ["bench", "--device", "host", "--sizes", "4KiB", "--quick"],
    "replay": ["replay", STREAMS, "--device", "host", "--compare"],
    "demo": ["demo", "--size", "64x48", "--device", "host"],
    "demo unified": ["demo", "unified", "--rows", "64", "--rounds", "1", "--device", "host"],
    "demo arrays": ["demo", "arrays", "--batches", "2", "--patches", "9", "--device", "host"],
}


def numbers(lines: list[str]) -> Counter[str]:
    """All numbers, whole: "1,234.5" is one. The dirty map and names in blocks have none."""
    return Counter(re.findall(r"\d[\d,.]*", "\n".join(lines)))


def words(lines: list[str]) -> set[str]:
    return set(" ".join(lines).split())


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_cut_in_a_terminal(name: str, tmp_path: Path) -> None:
    script = [str(HERE / "cli_renderings.py"), str(tmp_path / "all.json"), *COMMANDS[name]]
    output = ["--output", str(tmp_path)] if name.startswith("demo") else []
    done = run_in_terminal(80, [*script, *output])
    assert (done.status, done.errors) == (0, "")
    rendered = json.loads((tmp_path / "all.json").read_text())
    assert done.text.splitlines() == rendered["80"]
    for width in (60, 80, 120):
        lines = rendered[str(width)]
        # Only a path or another word without a space may be longer than a line.
        too_long = [line for line in lines if len(line) > width and len(line.split()) > 2]
        assert too_long == []
        assert words(lines) >= {word for word in words(rendered["pipe"]) if word.isalnum()}
        missing = numbers(rendered["pipe"]) - numbers(lines)
        assert not missing, f"at {width} columns"


def test_the_help_is_shown_in_a_terminal() -> None:
    done = run_in_terminal(60, ["-m", "isthmus"])
    assert done.status == 0
    assert "bench" in done.text


COLUMNS = ("name", "what it is", ">bytes", ">time")
ROWS = [("pool", "a pool of memory", "1,234,567", "5 us"), ("provider", "", "7", "1.5 ms")]


def test_a_table_that_fits_is_a_grid() -> None:
    assert tables.table_lines(COLUMNS, ROWS, None) == [
        "name      what it is            bytes    time",
        "─" * 45,
        "pool      a pool of memory  1,234,567    5 us",
        "provider                            7  1.5 ms",
    ]
    assert tables.table_lines(COLUMNS, ROWS, 45) == tables.table_lines(COLUMNS, ROWS, None)


def test_left_columns_are_folded_between_words_first() -> None:
    assert tables.table_lines(COLUMNS, ROWS, 37) == [
        "name      what it      bytes    time",
        "          is",
        "─" * 36,
        "pool      a pool   1,234,567    5 us",
        "          of",
        "          memory",
        "provider                   7  1.5 ms",
    ]


def test_a_table_that_cannot_be_folded_is_blocks() -> None:
    assert tables.table_lines(COLUMNS, ROWS, 30) == [
        "name          pool",
        "  what it is  a pool of memory",
        "  bytes       1,234,567",
        "  time        5 us",
        "name          provider",
        "  bytes       7",
        "  time        1.5 ms",
    ]


def test_continuation_lines_are_indented() -> None:
    assert tables.fact_lines("  kinds  ", "device, shared, host", 20) == [
        "  kinds  device,",
        "         shared,",
        "         host",
    ]
    assert tables.fact_lines("  a long label  ", "one two", 20) == [
        "  a long label  one",
        "    two",
    ]
    assert tables.fact_lines("", "/a/long/path of all", 8, "  ") == ["/a/long/path", "  of all"]


@pytest.mark.parametrize("width", [8, 12, 20, None])
def test_the_dirty_map_is_as_wide_as_the_terminal(width: int | None) -> None:
    dirty = [[0.0] * 12 for _ in range(6)]
    dirty[4][7] = 0.5
    lines = map_lines([[0.0] * 12 for _ in range(6)], dirty, width)
    columns = min(12, width or 12)
    assert {len(line) for line in lines} == {columns}
    assert len(lines) == columns // 2
    text = "".join(sign for line in lines for sign, _ in line)
    assert text.count("█") == 1
