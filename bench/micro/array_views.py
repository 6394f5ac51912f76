# SPDX-License-Identifier: Apache-2.0
"""Views and elements of an ``isthmus.Array``, compared with those of NumPy's ``ndarray``.

A slice, a reshape and a transpose may take at most twice NumPy's time, and an element of a host
array at most 1.5 times. Both arrays have the same shape and type, and are in host memory.
"""

from __future__ import annotations

from timeit import Timer

import numpy as np
from _timing import Report, interleaved

import isthmus

VIEWS = (
    "row[10:500]",
    "row[::-2]",
    "table[1:9]",
    "table[1:9, ::2]",
    "table[..., 3]",
    "table[2]",
    "table[None]",
    "table.T",
    "table.transpose()",
    "table.transpose(1, 0)",
    "table.reshape(1000)",
    "table.reshape(20, 50)",
    "table.reshape(-1, 8)",
    "table.T.reshape(100, 2, 5)",
    "table.swapaxes(0, 1)",
    "table.view('int32')",
)
READS = ("row[7]", "row[-1]", "table[3, 5]", "whole[7]")
WRITES = ("row[7] = 1.5", "table[3, 5] = 2.0", "whole[7] = 3")


def arrays(queue: isthmus.Queue) -> dict[str, isthmus.Array]:
    """Returns arrays with one and two dimensions and one of integers, and NumPy's equivalents."""

    def made(shape: tuple[int, ...], dtype: str) -> isthmus.Array:
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        buffer = isthmus.Buffer(nbytes, kind="host", queue=queue)
        return isthmus.Array(buffer, shape, dtype)

    return {
        "row": made((1000,), "float32"),
        "table": made((10, 100), "float32"),
        "whole": made((1000,), "int64"),
    }


def main() -> None:
    """Prints a line for each operation."""
    ours = arrays(isthmus.Queue("host"))
    theirs = {name: np.zeros(each.shape, each.dtype) for name, each in ours.items()}
    report = Report()
    for title, statements, most in (
        ("Views:", VIEWS, 2.0),
        ("Elements, read:", READS, 1.5),
        ("Elements, written:", WRITES, 1.5),
    ):
        print(title)
        for each in statements:
            taken = interleaved(
                {"isthmus": Timer(each, globals=ours), "NumPy": Timer(each, globals=theirs)}
            )
            report.against(each, taken["isthmus"], ("NumPy", taken["NumPy"]), most)
    report.finish()


if __name__ == "__main__":
    main()
