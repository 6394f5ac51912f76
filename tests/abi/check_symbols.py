# SPDX-License-Identifier: Apache-2.0
"""Holds the shared library's binary interface to what is recorded.

check_symbols.py LIBRARY [--update | --names]

src/c/isthmus.map lists the exported functions, each in a version node. The library exports exactly
these. A function that experimental.h declares is in the node ISTHMUS_EXPERIMENTAL, any other in the
node of a version. isthmus.abi holds the types of the functions as libabigail's abidw records them;
they are compared if abidiff is installed. Additions of types pass only after --update; a removal or
a changed layout is for a new major version.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MAP = ROOT / "src" / "c" / "isthmus.map"
EXPERIMENTAL_HEADER = ROOT / "include" / "isthmus" / "experimental.h"
EXPERIMENTAL_NODE = "ISTHMUS_EXPERIMENTAL"
ABI = HERE / "isthmus.abi"
NO_CHANGE, ERROR_OR_USAGE = 0, 3  # bits of abidiff's exit status


def exported(library: Path) -> dict[str, str]:
    """The library's exported functions and data, with their version nodes."""
    nm = ["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)]
    lines = subprocess.run(nm, check=True, capture_output=True, text=True).stdout.splitlines()
    fields = [line.split() for line in lines]
    symbols = [f[-1] for f in fields if f[-2] != "A"]
    return {name: node for name, _, node in (s.replace("@@", "@").partition("@") for s in symbols)}


def mapped() -> dict[str, str]:
    """The functions of the export map, with their version nodes."""
    text = re.sub(r"#[^\n]*", "", MAP.read_text())
    found = {}
    for node, body in re.findall(r"([\w.]+)\s*\{(.*?)\}", text, re.S):
        names = re.findall(r"[^\s;:]+(?=;)", body.partition("local:")[0])
        found.update(dict.fromkeys(names, node))
    return found


def experimental_functions() -> set[str]:
    header = re.sub(r"/\*.*?\*/", "", EXPERIMENTAL_HEADER.read_text(), flags=re.S)
    return set(re.findall(r"\bisthmus_\w+(?=\()", header))


def check_names(symbols: dict[str, str]) -> list[str]:
    recorded = mapped()
    experimental = experimental_functions()
    faults = [f"not isthmus_*: {name}" for name in recorded if not name.startswith("isthmus_")]
    faults += [f"in {MAP.name}, but not exported: {n}" for n in recorded if n not in symbols]
    faults += [f"exported, but not in {MAP.name}: {n}" for n in symbols if n not in recorded]
    for name, node in symbols.items():
        if node != recorded.get(name, node):
            faults.append(f"{name} is exported as {node}, not {recorded[name]}")
        if (node == EXPERIMENTAL_NODE) != (name in experimental):
            faults.append(f"{name} is in {node}, but {EXPERIMENTAL_HEADER.name} says otherwise")
    return faults


def record_types(library: Path) -> None:
    command = ["abidw", "--exported-interfaces-only", "--no-comp-dir-path"]
    command += ["--no-corpus-path", "--short-locs", "--no-show-locs", "--drop-undefined-syms"]
    subprocess.run([*command, "--out-file", str(ABI), str(library)], check=True)


def check_types(library: Path, update: bool) -> list[str]:
    if update and shutil.which("abidw"):
        record_types(library)
    if not ABI.exists() or not shutil.which("abidiff"):
        print("types are not compared: " + ("no abidiff" if ABI.exists() else f"no {ABI.name}"))
        return []
    command = ["abidiff", "--exported-interfaces-only", "--no-show-locs"]
    command += ["--no-added-syms", "--fail-no-debug-info", str(ABI), str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == NO_CHANGE:
        return []
    if done.returncode & ERROR_OR_USAGE:
        return [f"abidiff failed: {done.stdout}{done.stderr}"]
    return [f"types differ from {ABI.name}:\n{done.stdout}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--update", action="store_true", help="record the types of the library")
    parser.add_argument("--names", action="store_true", help="compare names, not types")
    arguments = parser.parse_args()
    symbols = exported(arguments.library)
    faults = check_names(symbols)
    if not arguments.names:
        faults += check_types(arguments.library, arguments.update)
    print("\n".join(faults) if faults else f"{len(symbols)} symbols, as recorded")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
