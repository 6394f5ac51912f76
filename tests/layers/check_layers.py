# SPDX-License-Identifier: Apache-2.0
"""Checks the dependencies between layers, and the licence line of each file.

check_layers.py [ROOT]

A layer may include itself and the layers before it in LAYERS. A driver's folder below `backend` may
include the backend interface, `core` and `os`, but no other driver; only src/backend/drivers.cpp
includes the drivers. The folder WORKAROUNDS belongs to the backend interface. The folders of
python/src follow the same rule, in the order of MODULE_LAYERS; files beside them may include any of
them. Only `memory` converts a resource to a pool (AS_POOL). Only `os` contains system #ifdefs. A
line has at most 100 columns. No committed file is larger than 256 KiB.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MEMORY = ["memory/base", "memory/pool", "memory/records", "memory/resources"]
LAYERS = ["core", "os", "recorder", "backend", *MEMORY, "transfer", "buffer", "array", "tracking"]
LAYERS += ["unified", "c"]
FOLDERS = {layer.split("/")[0] for layer in LAYERS}
MODULE_LAYERS = ["core", "layout", "memory", "buffer", "transfer", "interop", "array", "unified"]
MODULE_LAYERS += ["frameworks", "dpctl"]
MODULES = Path("python/src")
# Headers that need none of the library's functions.
SHARED = [
    "isthmus/isthmus.h",
    "isthmus/experimental.h",
    "isthmus/float16.hpp",
    "isthmus/detail/dtype_facts.hpp",
]
REGISTRY = Path("src/backend/drivers.cpp")
WORKAROUNDS = "workarounds"  # for defects of drivers; below `backend`
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENCE_LINE = re.compile(rf"^(//|#|/\*) {re.escape(LICENCE)}( \*/)?$", re.M)
LICENCE_WITHIN = 200  # characters from the start of a file
AS_POOL = re.compile(r"\bas_pool\b")
MAX_COLUMNS = 100
MAX_BYTES = 256 << 10
SOURCES = {".h", ".hpp", ".c", ".cpp", ".ipp"}
LICENSED = SOURCES | {".py", ".pxd"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
SYSTEM = re.compile(
    r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*\b"
    r"(__linux__|__linux|__gnu_linux__|__unix__|__APPLE__|__FreeBSD__|__ANDROID__|_WIN32|_WIN64)\b",
    re.M,
)


def layer_of(path: Path) -> tuple[str, str]:
    """("backend", "sim") for src/backend/sim/x.cpp, ("core", "") for src/core/x.hpp,
    ("memory/pool", "") for src/memory/pool/x.hpp.
    """
    parts = path.parts[1:-1]
    if parts[:1] == ("memory",):
        return "/".join(parts), ""
    below = parts[1] if len(parts) > 1 else ""
    return (parts[0] if parts else "", "" if below == WORKAROUNDS else below)


def resolve(root: Path, path: Path, name: str) -> Path | None:
    """The source file that an include refers to, relative to the root; None for a system header."""
    beside = (root / path).parent / name
    top = MODULES if path.is_relative_to(MODULES) else Path("src")
    for candidate in (beside, root / top / name):
        if candidate.is_file():
            return candidate.resolve().relative_to(root)
    first = name.split("/")[0]
    return Path("src") / name if first in FOLDERS and "/" in name else None


def check_include(path: Path, target: Path) -> str | None:
    """The rule that `path` violates by including `target`, both below src/; None if it violates
    none.
    """
    layer, driver = layer_of(path)
    to_layer, to_driver = layer_of(target)
    if layer not in LAYERS or to_layer not in LAYERS:
        return None  # reported once, by check_source
    if LAYERS.index(to_layer) > LAYERS.index(layer):
        return f"`{layer}` may not include `{to_layer}`, which comes after it"
    if to_layer == "backend" and to_driver and to_driver != driver and path != REGISTRY:
        return f"only {REGISTRY} may include the driver `{to_driver}`"
    return None


def check_source(root: Path, path: Path, text: str) -> Iterator[tuple[int, str]]:
    layer = layer_of(path)[0]
    if layer not in LAYERS:
        yield 1, f"not in a layer: one of {', '.join(LAYERS)}"
    if layer not in MEMORY:
        for found in AS_POOL.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield line, "as_pool is for src/memory alone: use is_pool or pool_of"
    for found in INCLUDE.finditer(text):
        line = text.count("\n", 0, found.start(1)) + 1
        if found[2].startswith("isthmus/"):
            users = f"the C++ headers are for users; the layers include only {', '.join(SHARED)}"
            fault = None if found[2] in SHARED else users
        else:
            target = resolve(root, path, found[2])
            fault = check_include(path, target) if target else None
        if fault:
            yield line, fault


def check_module(root: Path, path: Path, text: str) -> Iterator[tuple[int, str]]:
    """The Python modules use the C ABI, as any other client does."""
    layers = [*MODULE_LAYERS, ""]  # the last one is python/src itself
    layer = path.parts[2] if len(path.parts) > 3 else ""
    if layer not in layers:
        yield 1, f"not in a folder of the modules: one of {', '.join(MODULE_LAYERS)}"
        return
    for found in INCLUDE.finditer(text):
        target = resolve(root, path, found[2])
        if target is None:
            continue
        line = text.count("\n", 0, found.start(1)) + 1
        if not target.is_relative_to(MODULES):
            yield line, f"a Python module may not include {found[2]}: use <isthmus/...>"
        elif layers.index(target.parts[2] if len(target.parts) > 3 else "") > layers.index(layer):
            yield line, f"`{layer}` may not include {found[2]}, whose folder comes after it"


def check_file(root: Path, path: Path) -> Iterator[tuple[int, str]]:
    text = (root / path).read_text()
    if path.suffix in LICENSED and not LICENCE_LINE.search(text[:LICENCE_WITHIN]):
        yield 1, f"no line with the licence alone: {LICENCE}"
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns; {MAX_COLUMNS} at most"
    if path.suffix not in SOURCES:
        return
    if path.parts[0] == "src":
        yield from check_source(root, path, text)
    if path.is_relative_to(MODULES):
        yield from check_module(root, path, text)
    if path.parts[:2] != ("src", "os"):
        for found in SYSTEM.finditer(text):
            line = text.count("\n", 0, found.start(1)) + 1
            yield line, f"{found[1]} is for src/os alone"


def files(root: Path) -> Iterator[Path]:
    for top in ("src", "include", "python"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCES | {".py"} and path.is_file():
                yield path.relative_to(root)


def check_sizes(root: Path) -> Iterator[str]:
    """Every clone downloads each committed file: no packages, no build results."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    for name in listing.stdout.decode().split("\0"):  # nothing, if this is no git checkout
        path = root / name
        if name and path.is_file() and path.stat().st_size > MAX_BYTES:
            yield f"{name}: {path.stat().st_size:,} bytes; {MAX_BYTES:,} at most"


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    checked = list(files(root))
    faults = [f"{p}:{n}: {fault}" for p in checked for n, fault in check_file(root, p)]
    faults += check_sizes(root)
    print("\n".join(faults) if faults else f"{len(checked)} files respect the layers")
    return 1 if faults or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
