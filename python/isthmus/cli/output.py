# SPDX-License-Identifier: Apache-2.0
"""Output of the subcommands: tables, progress, and numbers for readers.

Output to a pipe or file is plain lines of any width, without colour; on a terminal its width is
respected. Progress goes to stderr, and only to a terminal.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

_PIPE_WIDTH = 500


def console() -> Console:
    """Standard output."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(highlight=False, soft_wrap=False, width=width)


def verdict(exact: bool) -> int:
    """The exit status of a demo; reports a result that differs from NumPy's."""
    if not exact:
        print("isthmus: a result differs from NumPy's: please report it", file=sys.stderr)
    return 0 if exact else 1


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, indent=2))


def print_line(text: str = "", style: str = "") -> None:
    """A line outside of a table; brackets are printed, not interpreted as markup."""
    from rich.text import Text

    output = console()
    if output.is_terminal:
        output.print(Text(text, style))
    else:
        print(text)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table, after an empty line.

    A column whose name begins with '>' is right-aligned. On a terminal that is too narrow the
    columns on the left are folded, except the first.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for index, name in enumerate(columns):
        number = name.startswith(">")
        table.add_column(
            name.removeprefix(">"),
            justify="right" if number else "left",
            no_wrap=number or index == 0,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    print()
    print_line(title, "bold")
    output = console()
    if output.is_terminal:
        output.print(table)
        return
    with output.capture() as captured:
        output.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


class Progress(Protocol):
    """The callback by which a running command reports progress."""

    def __call__(self, step: str, fraction: float) -> None:
        """Reports the current ``step``, and the completed ``fraction`` of all work, 0 to 1."""


@contextmanager
def progress(title: str, quiet: bool = False) -> Iterator[Progress]:
    """A progress bar on stderr if that is a terminal, else nothing."""
    if quiet or not sys.stderr.isatty():
        yield lambda step, fraction: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(title),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda step, fraction: bar.update(task, description=step, completed=fraction)


def bytes_text(nbytes: float) -> str:
    """``134217728`` as ``128 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.4g} TiB"


def time_text(seconds: float) -> str:
    """``0.0000123`` as ``12.3 us``."""
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:.0f} s"


def rate_text(nbytes: float, seconds: float) -> str:
    """Bytes in that many seconds as ``12.3 GB/s``; nothing for a time of 0."""
    return f"{nbytes / seconds / 1e9:.3g} GB/s" if seconds > 0 else ""
