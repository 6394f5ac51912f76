# SPDX-License-Identifier: Apache-2.0
"""Output of the subcommands: tables, progress, and numbers for readers.

Output to a pipe or file is plain lines of any width, without colour. On a terminal lines are
folded to its width, and nothing is cropped: see ``tables``. Progress goes to stderr, and only to a
terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from .tables import fact_lines, table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

# A line of text: its parts and their styles.
Line = Sequence[tuple[str, str]]
# The lines for a number of columns; None: of any width.
Render = Callable[["int | None"], Iterable[Line]]


def emit(render: Render) -> None:
    """Prints what ``render`` returns for the width of standard output.

    All output for readers goes through here. rich is loaded only for a terminal.
    """
    in_terminal = sys.stdout.isatty()
    if not in_terminal and "FORCE_COLOR" not in os.environ:
        for line in render(None):
            print("".join(text for text, _ in line).rstrip())
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in render(console.width if in_terminal else None):
        text = Text.assemble(*line)
        text.rstrip()
        console.print(text, soft_wrap=True)


def verdict(exact: bool) -> int:
    """The exit status of a demo; reports a result that differs from NumPy's."""
    if not exact:
        print("isthmus: a result differs from NumPy's: please report it", file=sys.stderr)
    return 0 if exact else 1


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, indent=2))


def print_line(text: str = "", style: str = "") -> None:
    """A line outside of a table. On a terminal it is folded between words, and continued two
    columns to the right of its start.
    """
    indent = " " * (len(text) - len(text.lstrip(" ")))
    print_fact(indent, text.lstrip(" "), style, hanging=indent + "  ")


def print_fact(label: str, text: str, style: str = "", hanging: str | None = None) -> None:
    """A line of a label and a text. Continuation lines of the text begin below its first word, or
    after ``hanging``.
    """
    emit(lambda width: [((line, style),) for line in fact_lines(label, text, width, hanging)])


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table, after an empty line: see ``tables.table_lines``."""
    cells = [tuple(row) for row in rows]

    def render(width: int | None) -> Iterator[Line]:
        yield ()
        for line in fact_lines("", title, width, "  "):
            yield ((line, "bold"),)
        for line in table_lines(columns, cells, width):
            yield ((line, ""),)

    emit(render)


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
