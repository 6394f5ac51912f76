# SPDX-License-Identifier: Apache-2.0
"""``isthmus demo unified``: edits a map on both sides, and reports how little of it is copied."""

from __future__ import annotations

from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from .arguments import whole_number
from .output import (
    bytes_text,
    emit,
    print_fact,
    print_json,
    print_line,
    print_table,
    progress,
    time_text,
    verdict,
)

if TYPE_CHECKING:
    import argparse

    from isthmus.demo.unified.outcome import Outcome, Round

    from .output import Line

HELP = "edits a map of the Earth on both sides of a unified buffer; reports how little is copied"
_SHADES = " ░▒"  # sea, coast, land
_PARTLY_DIRTY, _MOSTLY_DIRTY = "+", "█"  # share of a block that was dirty
_MOSTLY_DIRTY_FROM = 0.05
Shares = list[list[float]]  # of each block of the coarse grid


def add_to(commands: Any) -> Any:
    """Adds the demo to the parser's subcommands, and returns the demo's parser."""
    command = commands.add_parser("unified", help=HELP, description=HELP)
    command.add_argument(
        "--rows", type=rows, default=6400, metavar="N",
        help="of the map, 43200 bytes each; default: 6400, which are 264 MiB on each side",
    )  # fmt: skip
    command.add_argument("--rounds", type=rounds, default=12, metavar="N", help="default: 12")
    command.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of the edits; default: 1"
    )
    command.add_argument(
        "--granularity", choices=("auto", "page"), default="auto",
        help="the hint to the unified buffer; default: auto",
    )  # fmt: skip
    command.add_argument(
        "--one-copy", action="store_true",
        help="one copy for both sides where the device can access host memory; default: two",
    )  # fmt: skip
    command.set_defaults(run=run)
    return command


def rows(text: str) -> int:
    """Rows of the map: at least one band for the device, at most all."""
    return whole_number(text, 64, 21600)


def rounds(text: str) -> int:
    """Rounds after the first."""
    return whole_number(text, 1, 1000)


def run(args: argparse.Namespace) -> int:
    """Runs the demo; returns 1 if a result differs from NumPy's."""
    from isthmus.demo.unified.outcome import Options
    from isthmus.demo.unified.run import run as run_demo

    options = Options(
        args.rows, args.rounds, args.device, args.granularity, args.one_copy, args.seed
    )
    with progress("demo") as report:
        outcome = run_demo(options, args.output, report)
    if args.json:
        totals = {name: getattr(outcome, name) for name in ("exact", "bytes_moved", "whole_bytes")}
        print_json(asdict(outcome) | totals)
    else:
        _print(outcome)
    return verdict(outcome.exact)


def _print(outcome: Outcome) -> None:
    for note in outcome.notes:
        print_line(note, "dim")
    print_fact("map         ", outcome.map)
    high, wide = outcome.shape
    print_fact("array       ", f"{high} x {wide} cells of one byte, {bytes_text(outcome.nbytes)}")
    print_fact("device      ", f"{outcome.device}: {outcome.device_name}")
    print_fact("worker      ", outcome.worker)
    _print_rounds(outcome)
    _print_map(outcome)
    _print_totals(outcome)
    print_fact("picture     ", outcome.picture)


def _print_rounds(outcome: Outcome) -> None:
    columns = (
        "round", "state", ">ranges", ">dirty", ">to device", ">to host", ">sync", ">whole copy",
        ">count", ">read band", ">land, km2", "as NumPy",
    )  # fmt: skip
    print_table("copies in each round", columns, (_row(each) for each in outcome.rounds))
    print_line("round 0 copies the map to the device for the first time, into new pages")


def _row(each: Round) -> tuple[str, ...]:
    return (
        str(each.number),
        each.state,
        str(each.dirty_ranges),
        bytes_text(each.dirty_bytes),
        bytes_text(each.bytes_to_device),
        bytes_text(each.bytes_to_host),
        time_text(each.sync_seconds),
        time_text(each.whole_seconds),
        time_text(each.count_seconds),
        time_text(each.read_seconds),
        f"{each.land_km2:.0f}",
        "yes" if each.wrong_rows + each.wrong_cells == 0 else "NO",
    )


def _print_map(outcome: Outcome) -> None:
    """The land in shades, overlaid with the blocks that the host's edits made dirty."""
    print_line()
    print_line(
        f"the dirty map of round {outcome.options.rounds}: {_PARTLY_DIRTY} where anything was "
        f"dirty, {_MOSTLY_DIRTY} where at least {_MOSTLY_DIRTY_FROM:.0%} of the block was", "bold",
    )  # fmt: skip
    emit(lambda width: map_lines(outcome.land, outcome.dirty, width))
    print_line()


def map_lines(land: Shares, dirty: Shares, width: int | None) -> list[Line]:
    """A character for each block of the grid; for several blocks, if ``width`` is less."""
    high, wide = len(dirty), len(dirty[0])
    columns = wide if width is None else min(wide, width)
    rows = max(1, high * columns // wide)
    return [
        [
            _sign(_mean(land, row, column), _mean(dirty, row, column))
            for column in _parts(wide, columns)
        ]
        for row in _parts(high, rows)
    ]


def _parts(size: int, count: int) -> list[slice]:
    """``size`` blocks in ``count`` parts of as equal sizes as possible."""
    return [slice(size * n // count, size * (n + 1) // count) for n in range(count)]


def _mean(shares: Shares, rows: slice, columns: slice) -> float:
    return fmean(share for row in shares[rows] for share in row[columns])


def _sign(land: float, dirty: float) -> tuple[str, str]:
    if dirty:
        return _MOSTLY_DIRTY if dirty >= _MOSTLY_DIRTY_FROM else _PARTLY_DIRTY, "red"
    return _SHADES[min(int(land * len(_SHADES)), len(_SHADES) - 1)], "dim"


def _print_totals(outcome: Outcome) -> None:
    moved, whole = outcome.later_bytes
    rounds = f"in rounds 1 to {outcome.options.rounds}"
    print_fact(
        "copied      ",
        f"{bytes_text(moved)} {rounds}; {bytes_text(whole)} with whole copies",
    )
    seconds, copies = outcome.later_seconds
    print_fact(
        "time        ",
        f"{time_text(seconds)} to update the device {rounds}; "
        f"{time_text(copies)} with whole copies",
    )
    wrong = outcome.wrong_bytes_on_host + outcome.wrong_bytes_on_device
    verdict = "every count, band and byte equals NumPy's" if outcome.exact else (
        f"DIFFERS from NumPy's: {wrong} bytes at the end, and the rounds marked NO"
    )  # fmt: skip
    print_fact("result      ", verdict, "green" if outcome.exact else "bold red")
