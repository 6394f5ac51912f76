# SPDX-License-Identifier: Apache-2.0
"""``isthmus demo arrays``: processes a thousand batches of real pixels through arrays, in constant
memory.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from .arguments import whole_number
from .output import (
    bytes_text,
    print_fact,
    print_json,
    print_line,
    print_table,
    progress,
    rate_text,
    time_text,
    verdict,
)

if TYPE_CHECKING:
    import argparse

    from isthmus.demo.arrays.outcome import Comparison, Memory, Outcome

HELP = "measures a million patches of photographs in batches of arrays; reports the memory used"
_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS = 30  # of a line of bars: the table fits 80 columns


def add_to(commands: Any) -> Any:
    """Adds the demo to the parser's subcommands, and returns the demo's parser."""
    command = commands.add_parser("arrays", help=HELP, description=HELP)
    command.add_argument(
        "--batches", type=batches, default=1000, metavar="N",
        help="default: 1000, which are 286 MiB of pixels",
    )  # fmt: skip
    command.add_argument(
        "--patches", type=patches, default=1000, metavar="N", help="in a batch; default: 1000"
    )
    command.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of the order of the patches; default: 1"
    )
    command.add_argument(
        "--beside", default="", metavar="CSV",
        help="another program's memory after each batch, as examples/cpp-array writes: drawn too",
    )  # fmt: skip
    command.set_defaults(run=run)
    return command


def batches(text: str) -> int:
    """Number of batches."""
    return whole_number(text, 1, 1_000_000)


def patches(text: str) -> int:
    """Number of patches in a batch."""
    return whole_number(text, 1, 1_000_000)


def run(args: argparse.Namespace) -> int:
    """Runs the demo; returns 1 if a result differs from NumPy's, or the memory grew."""
    from isthmus.demo.arrays.outcome import Options
    from isthmus.demo.arrays.run import run as run_demo

    options = Options(args.batches, args.patches, args.device, args.seed, args.beside)
    with progress("demo") as report:
        outcome = run_demo(options, args.output, report)
    if args.json:
        totals = {name: getattr(outcome, name) for name in ("exact", "flat")}
        print_json(asdict(outcome) | totals)
    else:
        _print(outcome)
    return verdict(outcome.exact) or int(outcome.flat is False)


def _print(outcome: Outcome) -> None:
    from isthmus.demo.arrays.outcome import WARM_UP

    for note in outcome.notes:
        print_line(note, "dim")
    for path in outcome.photographs:
        print_fact("photograph  ", path)
    print_fact("device      ", f"{outcome.device}: {outcome.device_name}")
    print_fact("worker      ", outcome.worker)
    print_fact(
        "batches     ",
        f"{outcome.options.batches} of {outcome.options.patches} patches, "
        f"{bytes_text(outcome.nbytes)} of pixels",
    )
    _print_times(outcome)
    _print_memory(outcome.memory)
    _print_comparison(outcome.comparison)
    print_fact(
        "contrast    ", f"{outcome.least:.0f} to {outcome.most:.0f}, on average {outcome.mean:.1f}"
    )
    verdict = "every number equals NumPy's" if outcome.exact else (
        f"{outcome.wrong_results} numbers DIFFER from NumPy's, first in batch "
        f"{outcome.wrong_batches[0]}"
    )  # fmt: skip
    print_fact("result      ", verdict, "green" if outcome.exact else "bold red")
    flat, colour = {
        True: ("flat", "green"),
        False: ("NOT flat: it grew after the first batches", "bold red"),
        None: (f"too few batches to tell: more than {WARM_UP} are needed", "yellow"),
    }[outcome.flat]
    print_fact("memory      ", flat, colour)
    print_fact("picture     ", outcome.picture)


def _print_times(outcome: Outcome) -> None:
    labels = {
        "cut": "extracting patches from the photographs, on the host",
        "upload": "isthmus.asarray(batch, kind='device')",
        "kernel": "contrast of each patch, on the device",
        "download": "result.to_numpy()",
        "check": "the same by NumPy, on the host",
    }
    rows = []
    for each in fields(outcome.seconds):
        seconds = getattr(outcome.seconds, each.name)
        moved = outcome.nbytes if each.name in ("upload", "kernel") else 0
        rows.append(
            (labels[each.name], time_text(seconds / outcome.options.batches), time_text(seconds),
             rate_text(moved, seconds) if moved else "")
        )  # fmt: skip
    print_table("time of each step", ("step", ">a batch", ">all", ">of pixels"), rows)


def _print_memory(memory: Memory) -> None:
    rows = [
        ("held by the pool", *_range_row(memory.held, bytes_text)),
        ("of that, in use", *_range_row(memory.live, bytes_text)),
        ("the process's RAM", *_range_row(memory.resident, bytes_text)),
        ("driver's allocations", *_range_row(memory.driver_allocations, str)),
    ]
    print_table("memory in each batch", ("value", ">first", ">last", "from the first on"), rows)


def _print_comparison(comparison: Comparison | None) -> None:
    if comparison is None:
        return
    rows = [
        ("from a pool", time_text(comparison.pool_seconds), comparison.pool_driver_allocations),
        ("from the driver", time_text(comparison.driver_seconds), comparison.driver_allocations),
    ]
    title = f"the array of a batch, created, filled and freed {comparison.batches} times"
    columns = ("memory", ">median time", ">driver's allocations")
    print_table(title, columns, [(name, seconds, str(calls)) for name, seconds, calls in rows])
    print_line()


def _range_row(values: list[int], text: Any) -> tuple[str, str, str]:
    return text(values[0]), text(values[-1]), _line(values)


def _line(values: list[int]) -> str:
    """A line of bars, each the maximum of equally many batches."""
    size = -(-len(values) // _COLUMNS)
    maximum = max(1, *values)
    heights = [max(values[start : start + size]) for start in range(0, len(values), size)]
    return "".join(_BARS[height * (len(_BARS) - 1) // maximum] for height in heights)
