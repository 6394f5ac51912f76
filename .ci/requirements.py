# SPDX-License-Identifier: Apache-2.0
"""Prints what pyproject.toml requires for the given extras, one requirement per line.

`build` stands for the requirements of the build system, `run` for those of the package. An extra
that names another extra of this package, as in `isthmus[opencl]`, includes the requirements of that
one.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

DATA = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
GROUPS = {
    "build": DATA["build-system"]["requires"],
    "run": DATA["project"]["dependencies"],
    **DATA["project"]["optional-dependencies"],
}


def expand(name: str) -> Iterator[str]:
    for line in GROUPS[name]:
        own = re.fullmatch(r"isthmus\[(\w+)\]", line)
        yield from expand(own[1]) if own else [line]


if __name__ == "__main__":
    print("\n".join(sorted({line for name in sys.argv[1:] for line in expand(name)})))
