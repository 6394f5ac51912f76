# SPDX-License-Identifier: Apache-2.0
"""``isthmus demo``: runs a user's kernel on a photograph, and reports the copies."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from . import demo_arrays, demo_unified
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
    from isthmus.demo.run import Outcome

_HELP = "copies a photograph to a device, runs a kernel on it, copies it back; writes a picture"


def add_to(commands: Any) -> None:
    """Adds the command to the parser's subcommands; without a demo's name it runs the photograph
    demo.

    Options of all demos may precede or follow the name.
    """
    command = commands.add_parser("demo", help=_HELP, description=_HELP)
    command.add_argument(
        "--size", type=size, default=(8192, 5464), metavar="WxH", help="default: 8192x5464"
    )
    _add_common(command, output=".", device="", json=False)
    command.set_defaults(run=run)
    demos = command.add_subparsers(title="other demos", metavar="[DEMO]")
    suppressed = argparse.SUPPRESS  # a default would replace the option before the name
    for demo in (demo_unified, demo_arrays):
        _add_common(demo.add_to(demos), output=suppressed, device=suppressed, json=suppressed)


def _add_common(command: argparse.ArgumentParser, output: str, device: str, json: Any) -> None:
    command.add_argument(
        "--output", default=output, metavar="DIR", help="directory for the picture"
    )
    command.add_argument(
        "--device", default=device, metavar="F", help="filter; default: the best device"
    )
    command.add_argument(
        "--json", action="store_true", default=json, help="the tables as one JSON document"
    )


def size(text: str) -> tuple[int, int]:
    """``8192x5464`` as two numbers."""
    try:
        width, height = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not WIDTHxHEIGHT") from None
    if not (16 <= width <= 32768 and 16 <= height <= 32768):
        raise argparse.ArgumentTypeError(f"{text!r}: each side must be from 16 to 32768 pixels")
    return width, height


def run(args: argparse.Namespace) -> int:
    """Runs the demo; returns 1 if a result differs from NumPy's."""
    from isthmus.demo.run import run as run_demo

    with progress("demo") as report:
        outcome = run_demo(args.size, args.device, args.output, report)
    if args.json:
        print_json(asdict(outcome) | {"exact": outcome.exact})
    else:
        _print(outcome)
    return verdict(outcome.exact)


def _print(outcome: Outcome) -> None:
    for note in outcome.notes:
        print_line(note, "dim")
    width, height = outcome.size
    nbytes = bytes_text(outcome.checks[0].nbytes)
    print_fact("photograph  ", outcome.photograph)
    print_fact("size        ", f"{width} x {height} pixels, {nbytes}")
    print_fact("device      ", f"{outcome.device}: {outcome.device_name}")
    print_fact("kernel      ", outcome.kernel)
    columns = ("kind", "step", "from", "to", ">first use", ">time", ">bandwidth")
    rows = [
        (
            step.kind,
            step.what,
            step.source,
            step.destination,
            time_text(step.first_seconds),
            time_text(step.seconds),
            rate_text(step.nbytes, step.seconds),
        )
        for step in outcome.steps
    ]
    print_table("steps", columns, rows)
    print_line(
        "first use includes the work of the driver and of the system for new pages; "
        "time is the least of later trips through the same memory"
    )
    print_fact("NumPy       ", f"{time_text(outcome.numpy_seconds)} on the host, without copies")
    print_line()
    for check in outcome.checks:
        verdict = (
            "the same as" if check.wrong_bytes == 0 else f"{check.wrong_bytes} bytes DIFFER from"
        )
        print_line(
            f"{check.kind:<7} {verdict} NumPy's result, of {check.nbytes} bytes",
            "green" if check.wrong_bytes == 0 else "bold red",
        )
    print_fact("picture     ", outcome.picture)
