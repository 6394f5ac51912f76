# SPDX-License-Identifier: Apache-2.0
"""``isthmus bench``: every direction and kind, beside the peers that are installed."""

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

_HELP = "bandwidth and latency of every direction and kind, and what an allocation costs"
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZES = [64, 4 << 10, 1 << 20, 64 << 20]
_DEFAULT_SIZES = [1 << 10, 1 << 20]
_QUICK_SIZES = [4 << 10, 4 << 20]


def add_to(commands: Any) -> None:
    """Adds the command to the parser's subcommands."""
    made = commands.add_parser("bench", help=_HELP, description=_HELP)
    made.add_argument("--device", default="", metavar="F", help="filter; default: the best device")
    made.add_argument(
        "--sizes", type=sizes, metavar="N,...", help="sizes; default: 64,4KiB,1MiB,64MiB"
    )
    made.add_argument("--json", action="store_true", help="seconds, as one JSON document")
    made.add_argument("--quick", action="store_true", help="two sizes and fewer rounds")
    made.set_defaults(run=run)


def sizes(text: str) -> list[int]:
    """``"64,4KiB"`` as ``[64, 4096]``."""
    return [_size(part.strip().lower()) for part in text.split(",")]


def _size(text: str) -> int:
    digits = text.rstrip("bgikm ")
    unit = text[len(digits) :].strip()
    if not digits.isdecimal() or unit not in _UNITS or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 64, 4KiB or 64MiB")
    return int(digits) * _UNITS[unit]


def run(chosen: argparse.Namespace) -> int:
    """Measures, then prints everything at once."""
    from isthmus.testing import open_device

    from .contestants import gather, import_dpctl

    import_dpctl()
    device = open_device(chosen.device)
    contestants, absent = gather(device)
    wanted = chosen.sizes or (_QUICK_SIZES if chosen.quick else _SIZES)
    too_large = [size for size in wanted if size > device.max_allocation]
    if too_large:
        raise ValueError(
            f"--sizes: {too_large[0]} bytes are more than the largest allocation on "
            f"{device.filter}, {device.max_allocation} bytes"
        )
    with device, progress("bench") as tell:
        rows = measure(device, contestants, wanted, 0.1 if chosen.quick else 0.5, tell)
    told = {
        "version": isthmus.__version__,
        "device": device.filter,
        "name": device.name.strip(),
        "contestants": [each.name for each in contestants],
        "absent": absent,
        "rows": rows,
    }
    if chosen.json:
        print_json(told)
    else:
        _print(told)
    return 0


def measure(
    device: isthmus.Device,
    contestants: list[Contestant],
    wanted: list[int],
    budget: float,
    tell: Progress,
) -> list[dict[str, Any]]:
    """A row for each case: what, kind, bytes, seconds of each contestant, ratio."""
    cases = list(_cases(device, wanted))
    rows = []
    for index, case in enumerate(cases):
        tell(f"{case.what}, {case.kind}, {bytes_text(case.nbytes)}", index / len(cases))
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


def _print(told: dict[str, Any]) -> None:
    print_line(f"{told['device']}: {told['name']}")
    for name, reason in told["absent"].items():
        print_line(f"without {name}: {reason}", "yellow")
    names = told["contestants"]
    for what in dict.fromkeys(row["what"] for row in told["rows"]):
        rows = [_cells(row, names) for row in told["rows"] if row["what"] == what]
        columns = ("kind", ">size", *(f">{name}" for name in names), ">bandwidth", ">ratio")
        print_table(what, columns, rows)
    print_line()
    print_line("medians, taken in turn; bandwidth: Isthmus'; ratio: the time of the fastest peer")
    print_line("over that of Isthmus: above 1, Isthmus is faster. NumPy copies host memory only.")


def _cells(row: dict[str, Any], names: list[str]) -> list[str]:
    seconds = row["seconds"]
    copied = row["nbytes"] if "->" in row["what"] else 0
    return [
        row["kind"],
        bytes_text(row["nbytes"]) if row["nbytes"] else "",
        *(time_text(seconds[name]) if name in seconds else "" for name in names),
        rate_text(copied, seconds[names[0]]) if copied else "",
        "" if row["ratio"] is None else f"{row['ratio']:.2f}",
    ]
