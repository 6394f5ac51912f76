"""Holds the sources to the order of the rooms and to the house rules of size.

check_layers.py [ROOT]

A room includes itself and the rooms above it. Drivers' folders below `backend` include the seam,
`core` and `os`, not one another, and nobody names one of them but src/backend/drivers.cpp. The
system's #ifdefs are in `os`. Files have 400 lines of 100 columns at most.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOMS = ["core", "os", "backend", "memory", "transfer", "buffer", "array", "tracking", "unified"]
ROOMS += ["trace", "c"]
REGISTRY = Path("src/backend/drivers.cpp")
MAX_LINES = 400
MAX_COLUMNS = 100
SOURCES = {".h", ".hpp", ".c", ".cpp", ".ipp"}
COUNTED = {"src", "include", "python"}
EXEMPT = {Path("include/isthmus/isthmus.h")}  # the whole contract, in one file
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
SYSTEM = re.compile(
    r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*\b"
    r"(__linux__|__linux|__gnu_linux__|__unix__|__APPLE__|__FreeBSD__|__ANDROID__|_WIN32|_WIN64)\b",
    re.M,
)


def room_of(path: Path) -> tuple[str, str]:
    """("backend", "sim") for src/backend/sim/x.cpp, ("core", "") for src/core/x.hpp."""
    parts = path.parts[1:-1]
    return (parts[0] if parts else "", parts[1] if len(parts) > 1 else "")


def resolve(root: Path, path: Path, name: str) -> Path | None:
    """The source file that an include means, relative to the root; None for one of the system."""
    beside = (root / path).parent / name
    for candidate in (beside, root / "src" / name):
        if candidate.exists():
            return candidate.resolve().relative_to(root)
    first = name.split("/")[0]
    return Path("src") / name if first in ROOMS and "/" in name else None


def check_include(path: Path, target: Path) -> str | None:
    """What is wrong with `path` including `target`, both below src/."""
    room, driver = room_of(path)
    to_room, to_driver = room_of(target)
    if room not in ROOMS or to_room not in ROOMS:
        return None  # told once, by check_file
    if ROOMS.index(to_room) > ROOMS.index(room):
        return f"`{room}` may not include `{to_room}`, which comes after it"
    if to_room == "backend" and to_driver and to_driver != driver and path != REGISTRY:
        return f"only {REGISTRY} may name the driver `{to_driver}`"
    return None


def check_source(root: Path, path: Path, text: str) -> Iterator[tuple[int, str]]:
    if room_of(path)[0] not in ROOMS:
        yield 1, f"not in a room: one of {', '.join(ROOMS)}"
    for found in INCLUDE.finditer(text):
        line = text.count("\n", 0, found.start(1)) + 1
        if found[2].startswith("isthmus/"):
            users = "the C++ headers are for users; rooms share isthmus.h alone"
            fault = None if found[2] == "isthmus/isthmus.h" else users
        else:
            target = resolve(root, path, found[2])
            fault = check_include(path, target) if target else None
        if fault:
            yield line, fault


def check_module(text: str) -> Iterator[tuple[int, str]]:
    """The Python modules stand on the C ABI, like any user."""
    for found in INCLUDE.finditer(text):
        if found[2].split("/")[0] in ROOMS and "/" in found[2]:
            line = text.count("\n", 0, found.start(1)) + 1
            yield line, f"a Python module may not include {found[2]}: use <isthmus/...>"


def check_file(root: Path, path: Path) -> Iterator[tuple[int, str]]:
    text = (root / path).read_text()
    lines = text.count("\n")
    if path.parts[0] in COUNTED and lines > MAX_LINES and path not in EXEMPT:
        yield lines, f"{lines} lines; {MAX_LINES} at most"
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns; {MAX_COLUMNS} at most"
    if path.suffix not in SOURCES:
        return
    if path.parts[0] == "src":
        yield from check_source(root, path, text)
    if path.parts[:2] == ("python", "src"):
        yield from check_module(text)
    if path.parts[:2] != ("src", "os"):
        for found in SYSTEM.finditer(text):
            line = text.count("\n", 0, found.start(1)) + 1
            yield line, f"{found[1]} is for src/os alone"


def files(root: Path) -> Iterator[Path]:
    for top in ("src", "include", "python"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCES | {".py"} and path.is_file():
                yield path.relative_to(root)


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    checked = list(files(root))
    faults = [f"{p}:{n}: {fault}" for p in checked for n, fault in check_file(root, p)]
    print("\n".join(faults) if faults else f"{len(checked)} files keep the order of the rooms")
    return 1 if faults or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
