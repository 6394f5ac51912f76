# SPDX-License-Identifier: Apache-2.0
"""Moves the part of a C or C++ comment beyond column 100 to the next line of the comment.

wrap_comments.py FILE...

clang-format would reflow the whole comment, including lists and code examples. This script changes
only the lines that are too long and the line after each.
"""

import re
import sys
from pathlib import Path

COLUMNS = 100
COMMENT = re.compile(r"^(\s*(?://|/?\*)\s+)(\S.*)$")


def split(line: str) -> tuple[str, str]:
    """The part that fits and the rest; the end of a comment is not left alone on a line."""
    cut = line.rfind(" ", 0, COLUMNS + 1)
    if line[cut + 1 :] == "*/":
        cut = line.rfind(" ", 0, cut)
    return line[:cut], line[cut + 1 :]


def wrapped(lines: list[str]) -> list[str]:
    done = []
    while lines:
        line, lines = lines[0], lines[1:]
        comment = COMMENT.match(line)
        if len(line) > COLUMNS and comment:
            line, rest = split(line)
            prefix = comment[1].replace("/*", " *") + ("  " if comment[2].startswith("- ") else "")
            below = COMMENT.match(lines[0]) if lines else None
            joins = below and below[1] == prefix and not below[2].startswith("- ")
            if joins and not rest.endswith("*/"):
                lines = [f"{prefix}{rest} {below[2]}", *lines[1:]]
            else:
                lines = [prefix + rest, *lines]
        done.append(line)
    return done


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        text = path.read_text()
        changed = "\n".join(wrapped(text.split("\n")))
        if changed != text:
            path.write_text(changed)
