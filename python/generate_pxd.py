# SPDX-License-Identifier: Apache-2.0
"""Generates isthmus/__init__.pxd, Cython's declarations of the C interface, from isthmus.h.

generate_pxd.py [check]

`check` only compares: the status is 1 if the file is out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
HEADER = FOLDER.parent / "include" / "isthmus" / "isthmus.h"
DECLARATIONS = FOLDER / "isthmus" / "__init__.pxd"
MAX_COLUMNS = 100

HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# The C interface for Cython, callable without the interpreter's lock, and the handles inside of
# Python's objects. Generated from isthmus.h, which documents each function, by generate_pxd.py.
#
#     from isthmus cimport queue_handle, isthmus_copy, ...
#
# Compile with include_dirs=[isthmus.get_include()] and link with the library that is loaded:
# library_dirs=[os.path.dirname(isthmus.get_library())], libraries=[":libisthmus.so.0"].

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t

cdef extern from "isthmus/isthmus.h" nogil:
"""
TAIL = """
# The handle inside of a Python object, borrowed: it lives as long as the object. TypeError for
# other objects.
cdef isthmus_device_t* device_handle(object device) except NULL
cdef isthmus_context_t* context_handle(object context) except NULL
cdef isthmus_queue_t* queue_handle(object queue) except NULL
cdef isthmus_event_t* event_handle(object event) except NULL
cdef isthmus_buffer_t* buffer_handle(object buffer) except NULL

# Raises the exception of a status with this thread's message: `if status: raise_error(status)`.
cdef int raise_error(isthmus_status_t status) except -1
"""

OPAQUE = re.compile(r"typedef struct (\w+) \1;")
STRUCT = re.compile(r"typedef struct \w+ \{ (.*) \} (\w+);")
ENUM = re.compile(r"enum \{ (.*?),? \};")
ALIAS = re.compile(r"typedef (\w+) (\w+);")
CALLBACK = re.compile(r"typedef (.+\(\*\w+\)\(.*\));")
FUNCTION = re.compile(r"([\w *]+?\w+\(.*\));")


def header() -> str:
    """The header's text, in which the lengths of arrays are numbers, as Cython requires."""
    text = HEADER.read_text()
    numbers = dict(re.findall(r"\b(ISTHMUS_\w+) = (\d+)\b", text))
    return re.sub(r"(?<=\[)ISTHMUS_\w+(?=\])", lambda found: numbers[found[0]], text)


def statements(text: str) -> Iterator[str]:
    """The declarations of the header, each on one line, without macros and comments."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)
    text = re.sub(r'extern "C" \{|\bISTHMUS_(?:API|NOEXCEPT)\b', "", text)
    depth, begin = 0, 0
    for found in re.finditer(r"[{};]", text):
        depth += {"{": 1, "}": -1, ";": 0}[found[0]]
        if found[0] == ";" and depth == 0:
            statement = re.sub(r"\s+", " ", text[begin : found.end()]).strip()
            yield statement.replace("( ", "(").replace(" ;", ";")
            begin = found.end()


def qualified(declaration: str) -> str:
    """Adds to a pointer to a function what Cython assumes for functions alone."""
    return declaration + " noexcept nogil" if "(*" in declaration else declaration


def lines_of(statement: str) -> list[str]:
    if found := OPAQUE.fullmatch(statement):
        return [f"ctypedef struct {found[1]}:", "    pass"]
    if found := STRUCT.fullmatch(statement):
        members = [f"    {qualified(each.strip())}" for each in found[1].split(";")[:-1]]
        return [f"ctypedef struct {found[2]}:", *members]
    if found := ENUM.fullmatch(statement):
        return ["enum:", *(f"    {each.split('=')[0].strip()}" for each in found[1].split(","))]
    if found := ALIAS.fullmatch(statement):
        return [f"ctypedef {found[1]} {found[2]}"]
    if found := CALLBACK.fullmatch(statement):
        return [qualified(f"ctypedef {found[1]}")]
    if found := FUNCTION.fullmatch(statement):
        return [found[1].replace("(void)", "()")]
    raise ValueError(f"{HEADER.name}: a declaration of a form that is not known: {statement}")


def wrapped(line: str) -> str:
    """The line, with the indentation of the block. Breaks it after commas, inside of parentheses,
    where Cython continues it.
    """
    indent = "    " + line[: len(line) - len(line.lstrip())]
    lines = [indent]
    for part in re.split(r"(?<=,) ", line.strip()):
        space = "" if lines[-1].isspace() else " "
        if space and len(lines[-1]) + len(part) >= MAX_COLUMNS:
            lines.append(indent + "    ")
            space = ""
        lines[-1] += space + part
    return "\n".join(lines)


def generated() -> str:
    lines = [line for each in statements(header()) for line in lines_of(each)]
    return HEAD + "".join(f"{wrapped(line)}\n" for line in lines) + TAIL


def main() -> int:
    text = generated()
    if sys.argv[1:] == ["check"]:
        if text == DECLARATIONS.read_text():
            return 0
        print(f"{DECLARATIONS} is not what {Path(__file__).name} generates from {HEADER.name}")
        return 1
    DECLARATIONS.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
