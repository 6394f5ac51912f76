# SPDX-License-Identifier: Apache-2.0
"""Holds the shared library's binary interface to what was recorded beside this script.

check_symbols.py LIBRARY [--update | --names]

symbols.txt lists the exported functions, isthmus_* alone. isthmus.abi holds the types behind them
as libabigail's abidw sees them; it is compared where abidiff is installed. Additions pass only
after --update; a removal or a changed layout is for a new major version.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SYMBOLS = HERE / "symbols.txt"
ABI = HERE / "isthmus.abi"
NO_CHANGE, ERROR_OR_USAGE = 0, 3  # bits of abidiff's exit status


def exported(library: Path) -> list[str]:
    """Names of the library's exported functions and data, sorted."""
    nm = ["nm", "-D", "--defined-only", str(library)]
    lines = subprocess.run(nm, check=True, capture_output=True, text=True).stdout.splitlines()
    fields = [line.split() for line in lines]
    return sorted(f[-1].split("@")[0] for f in fields if f[-2] != "A")


def check_names(names: list[str], update: bool) -> list[str]:
    faults = [f"exported, but not isthmus_*: {n}" for n in names if not n.startswith("isthmus_")]
    if update:
        SYMBOLS.write_text("".join(f"{n}\n" for n in names))
    if not SYMBOLS.exists():
        return [*faults, f"{SYMBOLS} is missing: run with --update"]
    recorded = SYMBOLS.read_text().split()
    faults += [f"no longer exported: {n}" for n in recorded if n not in names]
    faults += [f"newly exported, run with --update: {n}" for n in names if n not in recorded]
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
    parser.add_argument("--update", action="store_true", help="record the library as it is")
    parser.add_argument("--names", action="store_true", help="compare names, not types")
    arguments = parser.parse_args()
    names = exported(arguments.library)
    faults = check_names(names, arguments.update)
    if not arguments.names:
        faults += check_types(arguments.library, arguments.update)
    print("\n".join(faults) if faults else f"{len(names)} symbols, as recorded")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
