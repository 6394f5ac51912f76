# SPDX-License-Identifier: Apache-2.0
"""Generates isthmus/_*.pyi, the typed interface of the compiled modules.

generate_stubs.py PACKAGE OUTPUT

PACKAGE is the folder of the built modules, OUTPUT the folder of the stubs. nanobind writes a stub
from the signatures in the modules. This program then makes two types precise that the signatures
cannot express: the result of a function depends on `blocking`, and a kind is one of three strings.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PATTERNS = Path(__file__).parent / "src" / "stub_patterns.nb"
BLOCKING = re.compile(
    r"(?P<indent> *)def (?P<name>\w+)\((?P<parameters>.*), blocking: bool = True\)"
    r" -> Event \| None:(?P<body>.*)\n"
)
KIND_PARAMETER = re.compile(r"\b(kind|usm_type): str\b")
KIND_PROPERTY = re.compile(r"( *def (?:kind|usm_type)\(self\) -> )str:")
KINDS_PROPERTY = re.compile(r"( *def kinds\(self\) -> tuple\[)str,")
CLASS = re.compile(r"class (\w+)")


def write_stub(module: Path, output: Path) -> None:
    """Writes the stub of one compiled module."""
    name = module.name.partition(".")[0]
    stub = output / f"{name}.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-P", "-m", name]
    subprocess.run(
        [*command, "-i", module.parent, "-p", PATTERNS, "-o", stub], check=True, timeout=300
    )
    lines = stub.read_text().splitlines(keepends=True)
    stub.write_text("".join(with_overloads(with_kinds(lines))))


def with_kinds(lines: list[str]) -> Iterator[str]:
    """The lines with the type Kind for kinds of memory."""
    owner = ""
    for line in lines:
        owner = match[1] if (match := CLASS.match(line)) else owner
        if owner == "DType" or "def sim_calls" in line:  # kinds of elements and of driver calls
            yield line
        else:
            line = KIND_PARAMETER.sub(r"\1: Kind", line)
            line = KINDS_PROPERTY.sub(r"\1Kind,", line)
            yield KIND_PROPERTY.sub(r"\1Kind:", line)


def with_overloads(lines: Iterator[str]) -> Iterator[str]:
    """The lines with two more overloads of each function that has a parameter `blocking`."""
    for line in lines:
        match = BLOCKING.fullmatch(line)
        if match is None:
            yield line
            continue
        indent, name, parameters, body = match.group("indent", "name", "parameters", "body")
        head = f"{indent}@overload\n{indent}def {name}({parameters}, blocking: "
        yield f"{head}Literal[True] = True) -> None:{body}\n"
        if not body:
            yield from docstring(lines)
        yield f"\n{head}Literal[False]) -> Event: ...\n"
        yield f"\n{head}bool) -> Event | None: ...\n"


def docstring(lines: Iterator[str]) -> Iterator[str]:
    """The lines of a docstring."""
    first = next(lines)
    yield first
    if first.count('"""') == 1:
        for line in lines:
            yield line
            if line.rstrip().endswith('"""'):
                return


if __name__ == "__main__":
    package, output = map(Path, sys.argv[1:])
    output.mkdir(parents=True, exist_ok=True)
    for module in sorted(package.glob("_*.so")):
        write_stub(module, output)
