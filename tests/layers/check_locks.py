# SPDX-License-Identifier: Apache-2.0
"""Checks with clang that fields are accessed only under the locks that guard them.

check_locks.py [ROOT]

The rules are the attributes of src/core/thread_safety.hpp. All sources of a layer are checked as
one, which takes a tenth of the time of checking each alone.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMPILER = os.environ.get("CLANGXX", "clang++")
FLAGS = [
    "-std=c++20",
    "-fsyntax-only",
    "-Wthread-safety",
    "-Werror=thread-safety",
    "-DISTHMUS_DEBUG=2",
]


def layers(root: Path) -> list[list[Path]]:
    """The sources of each layer; those of a driver's backend count as a layer."""
    found: dict[Path, list[Path]] = {}
    for path in sorted((root / "src").rglob("*.cpp")):
        parts = path.relative_to(root / "src").parts
        depth = 2 if parts[0] in {"backend", "memory"} and len(parts) > 2 else 1
        found.setdefault(Path(*parts[:depth]), []).append(path)
    return list(found.values())


def compile_text(root: Path, text: str) -> str:
    """The errors of the compiler."""
    command = [COMPILER, *FLAGS, f"-I{root}/src", f"-I{root}/include", "-x", "c++", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return result.stderr if result.returncode else ""


def findings(root: Path, sources: list[Path]) -> str:
    includes = (f'#include "{path.relative_to(root / "src")}"\n' for path in sources)
    return compile_text(root, "".join(includes))


# Accesses a guarded field without its lock: shows that the compiler makes the check at all.
SAMPLE = """
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
struct Counter {
  isthmus::Mutex lock;
  int count ISTHMUS_GUARDED_BY(lock) = 0;
  void raise() {
    { const isthmus::LockGuard hold{lock}; ++count; }
    ++count;
  }
};
"""


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    sample = compile_text(root, SAMPLE)
    if sample.count("[-Werror,-Wthread-safety") != 1:
        print(f"{COMPILER} does not check locks as expected:\n{sample}")
        return 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [text for text in pool.map(lambda each: findings(root, each), layers(root)) if text]
    print("".join(found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
