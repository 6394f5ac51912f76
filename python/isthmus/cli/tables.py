# SPDX-License-Identifier: Apache-2.0
"""Layout of tables as lines of text, for a given number of columns of the terminal.

A table that is too wide is never cropped. First the left-aligned columns, except the first, are
folded between words; if that is not enough, each row is printed as a block, one line a column.
Numbers are in right-aligned columns, which are never folded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_GAP = "  "  # between columns
_INDENT = "  "  # of the lines of a block


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
) -> list[str]:
    """The lines of the table; ``width`` None: of any width. Those of the head are the first two.

    A column whose name begins with '>' is right-aligned.
    """
    names = [name.removeprefix(">") for name in columns]
    is_number = [name.startswith(">") for name in columns]
    widths = _column_widths([names, *rows])
    if width is not None:
        _narrow(widths, [names, *rows], is_number, width)
        if _total(widths) > width:
            return _blocks(names, rows, width)
    lines = _grid_row(names, widths, is_number)
    lines.append("─" * _total(widths))
    for row in rows:
        lines += _grid_row(row, widths, is_number)
    return lines


def fold(text: str, width: int | None) -> list[str]:
    """``text`` in lines of at most ``width`` columns, folded between words. A longer word has a
    line of its own.
    """
    lines: list[str] = []
    for word in text.split(" "):
        if lines and (width is None or _cell_len(f"{lines[-1]} {word}") <= width):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def fact_lines(label: str, text: str, width: int | None, hanging: str | None = None) -> list[str]:
    """``text`` after ``label``, which includes the spaces between the two.

    Continuation lines begin with ``hanging``; by default with spaces up to the text, or, if the
    label takes more than half of the width, with two more spaces than the label.
    """
    if width is None or _cell_len(label + text) <= width:
        return [label + text]
    if hanging is None:
        wide = _cell_len(label) > width // 2
        hanging = " " * (_leading_spaces(label) + len(_INDENT) if wide else _cell_len(label))
    first, *others = fold(text, width - _cell_len(label))
    rest = fold(" ".join(others), width - _cell_len(hanging)) if others else []
    return [label + first, *(hanging + line for line in rest)]


def _cell_len(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # characters of East Asian names take two columns

    return cell_len(text)


def _leading_spaces(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(_cell_len, column)) for column in zip(*rows, strict=True)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _narrow(
    widths: list[int], rows: Sequence[Sequence[str]], is_number: Sequence[bool], width: int
) -> None:
    """Reduces the widths of the columns that may be folded, widest first, to the longest word."""
    longest = {
        index: max(_cell_len(word) for row in rows for word in row[index].split(" "))
        for index in range(1, len(widths))
        if not is_number[index]
    }
    while _total(widths) > width:
        foldable = [index for index in longest if widths[index] > longest[index]]
        if not foldable:
            return
        widths[max(foldable, key=widths.__getitem__)] -= 1
    for index in longest:  # what the words fill
        widths[index] = max(
            _cell_len(line) for row in rows for line in fold(row[index], widths[index])
        )


def _grid_row(row: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> list[str]:
    """The lines of a row: as many as its highest cell has."""
    cells = [fold(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for number in range(max(map(len, cells))):
        parts = [
            _justified(cell[number] if number < len(cell) else "", width, right)
            for cell, width, right in zip(cells, widths, is_number, strict=True)
        ]
        lines.append(_GAP.join(parts).rstrip())
    return lines


def _justified(text: str, width: int, right: bool) -> str:
    spaces = " " * (width - _cell_len(text))
    return spaces + text if right else text + spaces


def _blocks(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A block for each row: the first column, then the others below it, indented."""
    label_width = max(map(_cell_len, names)) + len(_INDENT + _GAP)
    lines = []
    for row in rows:
        for index, (name, cell) in enumerate(zip(names, row, strict=True)):
            if cell:
                label = _justified((_INDENT if index else "") + name, label_width, right=False)
                lines += fact_lines(label, cell, width)
    return lines
