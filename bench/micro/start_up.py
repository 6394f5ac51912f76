# SPDX-License-Identifier: Apache-2.0
"""``import isthmus`` and the first allocation on the host, each in new processes.

The import may take at most 60 ms, and the allocation at most 1 ms.
"""

from __future__ import annotations

from _timing import Report, fresh_process

_IMPORT = """
import time
began = time.perf_counter()
import {module}
print(time.perf_counter() - began)
"""
_ALLOCATE = """
import time, {imports}
began = time.perf_counter()
kept = {expression}
print(time.perf_counter() - began)
"""


def main() -> None:
    """Prints a line for each measurement."""
    report = Report()
    taken = fresh_process({name: _IMPORT.format(module=name) for name in ("isthmus", "numpy")})
    report.below("import isthmus", taken["isthmus"], 60e-3, ("import numpy", taken["numpy"]))
    taken = fresh_process(
        {
            "isthmus": _ALLOCATE.format(
                imports="isthmus", expression="isthmus.Buffer(1024, device='host')"
            ),
            "numpy": _ALLOCATE.format(imports="numpy", expression="numpy.empty(1024, 'u1')"),
        }
    )
    report.below(
        "first Buffer(1024, device='host')", taken["isthmus"], 1e-3, ("numpy.empty", taken["numpy"])
    )
    report.finish()


if __name__ == "__main__":
    main()
