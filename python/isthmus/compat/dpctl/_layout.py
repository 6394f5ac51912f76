# SPDX-License-Identifier: Apache-2.0
"""Checks that dpctl's memory objects have the ABI layout that the native module assumes."""

from __future__ import annotations

import os
import re
from typing import Any

# The declarations of _Memory in dpctl's public dpctl/memory/_memory.pxd: the fields of an object
# and the functions of its function table, in order.
_FIELDS = ("_memory_ptr", "_opaque_ptr", "nbytes", "queue", "refobj")
_FUNCTIONS = (
    "_cinit_empty",
    "_cinit_alloc",
    "_cinit_other",
    "_getbuffer",
    "copy_to_host",
    "copy_from_host",
    "copy_from_device",
    "memset",
    "tobytes",
    "get_data_ptr",
    "get_opaque_ptr",
    "get_pointer_device",
    "get_pointer_type",
    "get_pointer_type_enum",
    "create_from_usm_pointer_size_qref",
)
_WORD = 8
_HEAD = 2 + 1  # words: the header of every Python object, and the function table


def check(module: Any) -> None:
    """Raises ImportError unless dpctl's ``module`` has this ABI layout."""
    path = os.path.join(os.path.dirname(module.__file__), "_memory.pxd")
    try:
        with open(path, encoding="utf-8") as file:
            fields, functions = declared(file.read())
    except OSError as missing:
        raise ImportError(f"dpctl's declarations of its memory cannot be read: {missing}") from None
    size = module._Memory.__basicsize__
    expected = (_HEAD + len(_FIELDS)) * _WORD
    if (fields, functions, size) != (_FIELDS, _FUNCTIONS, expected):
        raise ImportError(
            "isthmus.compat.dpctl does not support the ABI layout of this dpctl's memory objects: "
            f"{size} bytes for {expected}, fields {fields}, functions {functions} in {path}. It "
            "knows dpctl 0.22; isthmus.memory has the same classes for any"
        )


def declared(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields and functions that the text of a pxd file declares for _Memory."""
    found = re.search(r"^cdef public api class _Memory .*?:\n(.*?)(?=^\S|\Z)", text, re.M | re.S)
    fields, functions = [], []
    for line in re.findall(r"^    (?:cdef|cpdef) (.*)$", found[1] if found else "", re.M):
        function = re.search(r"(\w+)\(", line)
        if function:
            functions.append(function[1])
        else:
            fields.append(line.split()[-1])
    return tuple(fields), tuple(functions)
