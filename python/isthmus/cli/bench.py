# SPDX-License-Identifier: Apache-2.0
"""``isthmus bench``: measures every direction and kind, and compares with the peers that are
installed.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import isthmus

from .output import (
    Progress,
    bytes_text,
    print_json,
    print_line,
    print_table,
    progress,
    rate_text,
    time_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .contestants import Case, Contestant

_HELP = "bandwidth and latency of every direction and kind, and the cost of an allocation"
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZES = [64, 4 << 10, 1 << 20, 64 << 20]
_DEFAULT_SIZES = [1 << 10, 1 << 20]
_QUICK_SIZES = [4 << 10, 4 << 20]


def add_to(commands: Any) -> None:
    """Adds the command to the parser's subcommands."""
    command = commands.add_parser("bench", help=_HELP, description=_HELP)
    command.add_argument(
        "--device", default="", metavar="F", help="filter; default: the best device"
    )
    command.add_argument(
        "--sizes", type=sizes, metavar="N,...", help="sizes; default: 64,4KiB,1MiB,64MiB"
    )
    command.add_argument("--json", action="store_true", help="seconds, as one JSON document")
    command.add_argument("--quick", action="store_true", help="two sizes and fewer rounds")
    command.set_defaults(run=run)


def sizes(text: str) -> list[int]:
    """``"64,4KiB"`` as ``[64, 4096]``."""
    return [_size(part.strip().lower()) for part in text.split(",")]


def _size(text: str) -> int:
    digits = text.rstrip("bgikm ")
    unit = text[len(digits) :].strip()
    if not digits.isdecimal() or unit not in _UNITS or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 64, 4KiB or 64MiB")
    return int(digits) * _UNITS[unit]


def run(args: argparse.Namespace) -> int:
    """Measures, then prints everything at once."""
    from isthmus.testing import open_device

    from .contestants import gather, import_dpctl

    import_dpctl()
    device = open_device(args.device)
    contestants, absent = gather(device)
    wanted = args.sizes or (_QUICK_SIZES if args.quick else _SIZES)
    too_large = [size for size in wanted if size > device.max_allocation]
    if too_large:
        raise ValueError(
            f"--sizes: {too_large[0]} bytes are more than the largest allocation on "
            f"{device.filter}, {device.max_allocation} bytes"
        )
    with device, progress("bench") as report:
        rows = measure(device, contestants, wanted, 0.1 if args.quick else 0.5, report)
    summary = {
        "version": isthmus.__version__,
        "device": device.filter,
        "name": device.name.strip(),
        "contestants": [each.name for each in contestants],
        "absent": absent,
        "rows": rows,
    }
    if args.json:
        print_json(summary)
    else:
        _print(summary)
    return 0


def measure(
    device: isthmus.Device,
    contestants: list[Contestant],
    wanted: list[int],
    budget: float,
    report: Progress,
) -> list[dict[str, Any]]:
    """A row for each case: its name, kind, bytes, seconds of each contestant, ratio."""
    cases = list(_cases(device, wanted))
    rows = []
    for index, case in enumerate(cases):
        report(f"{case.what}, {case.kind}, {bytes_text(case.nbytes)}", index / len(cases))
        rows.append(_row(case, contestants, budget))
    return rows


def _cases(device: isthmus.Device, wanted: list[int]) -> Iterator[Case]:
    from .contestants import ALLOCATE, DEFAULTS, DIRECTIONS, FENCE, Case

    for what in (*DIRECTIONS, ALLOCATE):
        for kind in device.kinds:
            for nbytes in wanted:
                yield Case(what, kind, nbytes)
    yield Case(FENCE, "", 0)
    for what in DEFAULTS:
        for nbytes in _DEFAULT_SIZES:
            yield Case(what, "device", nbytes)


def _row(case: Case, contestants: list[Contestant], budget: float) -> dict[str, Any]:
    import numpy as np

    from .contestants import DEFAULTS
    from .measure import interleaved

    source = np.full(case.nbytes, 7, np.uint8)
    destination = np.zeros(case.nbytes, np.uint8)
    works = {
        each.name: each.default(case)
        if case.what in DEFAULTS
        else each.work(case, source, destination)
        for each in contestants
    }
    seconds = interleaved({name: work for name, work in works.items() if work}, budget=budget)
    peers = [taken for name, taken in seconds.items() if name != contestants[0].name]
    return {
        "what": case.what,
        "kind": case.kind,
        "nbytes": case.nbytes,
        "seconds": seconds,
        "ratio": min(peers) / seconds[contestants[0].name] if peers else None,
    }


def _print(summary: dict[str, Any]) -> None:
    print_line(f"{summary['device']}: {summary['name']}")
    for name, reason in summary["absent"].items():
        print_line(f"without {name}: {reason}", "yellow")
    names = summary["contestants"]
    for what in dict.fromkeys(row["what"] for row in summary["rows"]):
        rows = [_table_row(row, names) for row in summary["rows"] if row["what"] == what]
        columns = ("kind", ">size", *(f">{name}" for name in names), ">bandwidth", ">ratio")
        print_table(what, columns, rows)
    print_line()
    print_line("medians of interleaved calls; bandwidth: Isthmus'; ratio: time of the fastest peer")
    print_line("over that of Isthmus: above 1, Isthmus is faster. NumPy copies host memory only.")


def _table_row(row: dict[str, Any], names: list[str]) -> list[str]:
    seconds = row["seconds"]
    copied = row["nbytes"] if "->" in row["what"] else 0
    return [
        row["kind"],
        bytes_text(row["nbytes"]) if row["nbytes"] else "",
        *(time_text(seconds[name]) if name in seconds else "" for name in names),
        rate_text(copied, seconds[names[0]]) if copied else "",
        "" if row["ratio"] is None else f"{row['ratio']:.2f}",
    ]
