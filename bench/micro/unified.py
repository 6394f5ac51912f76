# SPDX-License-Identifier: Apache-2.0
"""Every bound of the unified buffer in one run, each compared with a whole copy.

Measures each device that ``--device`` names (several may be named), by default the first CUDA
device, the host and Intel's runtime, as far as they are present. Each buffer has two copies, pinned
if the driver supports it, and ``--size`` bytes (1 GiB on a GPU, 256 MiB elsewhere). The sections
are writes between two synchronizations, by a writer whose page faults count; the first rounds of
new buffers of several sizes (``defaults``); a buffer whose writes the kernel does not report;
access with nothing changed; creation; and many live buffers.

``time`` is the median of ``--rounds`` rounds and ``least`` the best of them. ``whole`` is the time
that the ratio and the bound refer to. On devices other than GPUs the bounds of ratios are 1.5 times
as large.

``--json`` prints the rows as one text. With ``--check`` the exit status is 1 if a bound was missed.
"""

from __future__ import annotations

import argparse
import sys

from _unified_defaults import defaults
from _unified_rounds import Place
from _unified_small import access, growth, making, many
from _unified_table import Table
from _unified_workloads import dense, part, untracked

import isthmus
from isthmus.cli.bench import sizes
from isthmus.cli.output import bytes_text

SECTIONS = {
    "part": lambda table, place, _live: part(table, place),
    "dense": lambda table, place, _live: dense(table, place),
    "defaults": defaults,
    "untracked": lambda table, place, _live: untracked(table, place),
    "access": lambda table, place, _live: access(table, place),
    "making": lambda table, place, _live: making(table, place),
    "many": many,
    "growth": growth,
}
DEFAULTS = ("cuda", "host", "opencl:cpu")


def main() -> None:
    """Prints a table for each device."""
    chosen = _options()
    table = Table(chosen.json)
    for name in chosen.device or [each for each in DEFAULTS if isthmus.devices(each)]:
        queue = isthmus.Queue(name)
        device = queue.device
        nbytes = chosen.size or (1 << 30 if device.backend == "cuda" else 256 << 20)
        place = Place(queue, nbytes, chosen.rounds)
        title = f"{device.filter}, {device.name}: {bytes_text(nbytes)}, {chosen.rounds} rounds"
        table.begin(device.filter, title)
        for section in chosen.only or SECTIONS:
            SECTIONS[section](table, place, chosen.live)
        place.close()
    table.finish()
    sys.exit(1 if chosen.check and not table.held() else 0)


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--device", action="append", help="such as cuda:0; several times")
    options.add_argument("--size", type=lambda text: sizes(text)[0], help="such as 1GiB")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--live", type=int, default=10_000, help="buffers that live at once")
    options.add_argument("--only", action="append", choices=list(SECTIONS), help="several times")
    options.add_argument("--json", action="store_true")
    options.add_argument("--check", action="store_true")
    return options.parse_args()


if __name__ == "__main__":
    main()
