# SPDX-License-Identifier: Apache-2.0
"""``isthmus bench``: measures every direction and kind, and compares with the peers that are
installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import isthmus

from .arguments import byte_count
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
    import argparse
    from collections.abc import Iterator

    from .contestants import Case, Contestant, Work

_HELP = "bandwidth and latency of every direction and kind, and the cost of an allocation"
_SIZES = [64, 4 << 10, 1 << 20, 64 << 20]
_DEFAULT_SIZES = [1 << 10, 1 << 20]
_UNIFIED_SIZES = [4 << 20, 64 << 20]
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
    return [byte_count(part.strip()) for part in text.split(",")]


def run(args: argparse.Namespace) -> int:
    """Measures, then prints everything at once."""
    from isthmus.testing import open_device

    from .contestants import gather, import_dpctl
    from .first_use import FirstUse

    first_use = FirstUse()
    first_use.drivers()
    import_dpctl()
    device = open_device(args.device)
    first_use.memory(device)
    contestants, absent = gather(device)
    wanted = args.sizes or (_QUICK_SIZES if args.quick else _SIZES)
    too_large = [size for size in wanted if size > device.max_allocation]
    if too_large:
        raise ValueError(
            f"--sizes: {too_large[0]} bytes are more than the largest allocation on "
            f"{device.filter}, {device.max_allocation} bytes"
        )
    with device, progress("bench") as report:
        rows = measure(device, contestants, wanted, args.quick, report)
    summary = {
        "version": isthmus.__version__,
        "device": device.filter,
        "name": device.name.strip(),
        "contestants": [each.name for each in contestants],
        "absent": absent,
        "first_use": first_use.rows,
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
    quick: bool,
    report: Progress,
) -> list[dict[str, Any]]:
    """A row for each case: its name, kind, bytes, seconds of each contestant, ratio."""
    cases = list(_cases(device, wanted, quick))
    rows = []
    for index, case in enumerate(cases):
        report(f"{case.what}, {case.kind}, {bytes_text(case.nbytes)}", index / len(cases))
        rows.append(_row(case, contestants, 0.1 if quick else 0.5))
    return rows


def _cases(device: isthmus.Device, wanted: list[int], quick: bool) -> Iterator[Case]:
    from .contestants import ALLOCATE, DEFAULTS, DIRECTIONS, FENCE, POOL, UNIFIED, Case

    for what in (*DIRECTIONS, POOL, ALLOCATE):
        for kind in device.kinds:
            for nbytes in wanted:
                yield Case(what, kind, nbytes)
    if "device" in device.kinds:
        for nbytes in _UNIFIED_SIZES[:1] if quick else _UNIFIED_SIZES:
            if nbytes <= device.max_allocation:
                yield Case(UNIFIED, "device", nbytes)
    yield Case(FENCE, "", 0)
    for what in DEFAULTS:
        for nbytes in _DEFAULT_SIZES:
            yield Case(what, "device", nbytes)


def _row(case: Case, contestants: list[Contestant], budget: float) -> dict[str, Any]:
    from .measure import interleaved

    works = _works(case, contestants)
    seconds = interleaved({name: work for name, work in works.items() if work}, budget=budget)
    own = contestants[0].name
    host_only = {each.name for each in contestants if not each.on_device}
    # Memory of the device, which a driver may have to copy, is not compared with the host's.
    peers = [
        taken
        for name, taken in seconds.items()
        if name != own and (case.kind == "host" or name.split(",")[0] not in host_only)
    ]
    return {
        "what": case.what,
        "kind": case.kind,
        "nbytes": case.nbytes,
        "seconds": seconds,
        "ratio": min(peers) / seconds[own] if peers else None,
    }


def _works(case: Case, contestants: list[Contestant]) -> dict[str, Work | None]:
    """What each contestant does in the case, by the name of its column."""
    import numpy as np

    from .contestants import DEFAULTS, POOL, UNIFIED, UPLOAD, Case

    if case.what == POOL:
        return {each.name: each.pool(case) for each in contestants}
    if case.what in DEFAULTS:
        return {each.name: each.default(case) for each in contestants}
    source = np.full(case.nbytes, 7, np.uint8)
    destination = np.zeros(case.nbytes, np.uint8)
    if case.what != UNIFIED:
        return {each.name: each.work(case, source, destination) for each in contestants}
    own, whole = contestants[0], Case(UPLOAD, case.kind, case.nbytes)
    works = {f"{each.name}, whole copy": each.work(whole, source, destination)
             for each in contestants}  # fmt: skip
    return {own.name: own.work(case, source, destination), **works}


def _print(summary: dict[str, Any]) -> None:
    print_line(f"{summary['device']}: {summary['name']}")
    _print_absent(summary["absent"])
    for what in dict.fromkeys(row["what"] for row in summary["rows"]):
        _print_table(what, [row for row in summary["rows"] if row["what"] == what])
    first = [(row["what"], time_text(row["seconds"])) for row in summary["first_use"]]
    print_table("first use, once; n = 4 MiB", ("step", ">isthmus"), first)
    print_line()
    print_line(
        "Medians of interleaved calls, warm, except first use. bandwidth: that of Isthmus. ratio: "
        "time of the fastest peer over that of Isthmus; above 1, Isthmus is faster. NumPy has host "
        "memory only, so it is no peer for the device and shared kinds. dpctl has no pool."
    )


def _print_absent(absent: dict[str, str]) -> None:
    missing = [name for name, reason in absent.items() if reason.endswith("is not installed")]
    if missing:
        print_line(f"not installed: {', '.join(missing)}", "dim")
    for name, reason in absent.items():
        if name not in missing:  # in JSON the reason has the exception's type and place too
            print_line(f"not compared: {name}: {reason.rpartition(': ')[2]}", "dim")


def _print_table(what: str, rows: list[dict[str, Any]]) -> None:
    """Without the columns that are empty in each row."""
    names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
    columns = ("kind", ">size", *(f">{name}" for name in names), ">bandwidth", ">ratio")
    cells = [_table_row(row, names) for row in rows]
    kept = [index for index in range(len(columns)) if any(row[index] for row in cells)]
    print_table(
        what, [columns[index] for index in kept], [[row[index] for index in kept] for row in cells]
    )


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
