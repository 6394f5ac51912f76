# SPDX-License-Identifier: Apache-2.0
"""Conversion of 4,096 x 4,096 elements: to a device, back, within it, and on the host.

On a CUDA device the peers are CuPy, which converts with a kernel there and transfers elements as
they are, and PyTorch, both that way and with its own `copy_`. Isthmus converts with threads of the
host while it transfers. To the device and back it must be at least as fast as the best peer. Within
the device the peers do not cross the bus and Isthmus crosses it twice, so that line has no bound.
On the host it must reach 0.7 of NumPy's speed, and twice that speed with 16 processors.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import numpy as np
from _timing import Report, by_itself

import isthmus

SHAPE = (4096, 4096)
PAIRS = (("float64", "float32"), ("float32", "float16"), ("uint8", "float32"), ("int64", "int32"))


def on_cuda(report: Report, from_type: str, to_type: str) -> None:
    """Measures conversions to the device, back, and within it."""
    import cupy
    import torch

    source = np.random.default_rng(1).integers(0, 200, SHAPE).astype(from_type)
    result = np.empty(SHAPE, to_type)
    ours_to, ours_from = (
        isthmus.empty(SHAPE, each, device="cuda") for each in (to_type, from_type)
    )
    tensor_to, tensor_from = (
        torch.empty(SHAPE, dtype=getattr(torch, each), device="cuda")
        for each in (to_type, from_type)
    )
    array_from = cupy.asarray(source)
    wait = cupy.cuda.get_current_stream().synchronize
    host_from, host_to = torch.from_numpy(source), torch.from_numpy(result)
    tensor_from.copy_(host_from)
    isthmus.copyto(ours_from, source)
    ways = {
        "to the device": (
            lambda: isthmus.copyto(ours_to, source),
            {
                "CuPy": lambda: (cupy.asarray(source).astype(to_type), wait()),
                "PyTorch": lambda: tensor_to.copy_(host_from),
                "PyTorch, by a kernel": lambda: tensor_to.copy_(tensor_from.copy_(host_from)),
            },
        ),
        "back": (
            lambda: isthmus.copyto(result, ours_from),
            {
                "CuPy": lambda: array_from.astype(to_type).get(out=result),
                "PyTorch": lambda: host_to.copy_(tensor_from),
                "PyTorch, by a kernel": lambda: host_to.copy_(tensor_from.to(tensor_to.dtype)),
            },
        ),
        "within it": (
            lambda: isthmus.copyto(ours_to, ours_from),
            {
                "CuPy": lambda: (array_from.astype(to_type), wait()),
                "PyTorch": lambda: (tensor_to.copy_(tensor_from), torch.cuda.synchronize()),
            },
        ),
    }
    for way, (ours, peers) in ways.items():
        taken = {name: by_itself(work) for name, work in peers.items()}
        best = min(taken, key=lambda name: taken[name])
        most = float("inf") if way == "within it" else 1.0
        title = f"{from_type} to {to_type}, {way}"
        report.against(title, by_itself(ours), (best, taken[best]), most)


def on_host(report: Report, from_type: str, to_type: str, most: float) -> None:
    """Measures conversions within host memory."""
    source = np.random.default_rng(1).integers(0, 200, SHAPE).astype(from_type)
    ours = isthmus.empty(SHAPE, to_type, kind="host", device="host")
    result = np.empty(SHAPE, to_type)
    report.against(
        f"{from_type} to {to_type}, on the host",
        by_itself(lambda: isthmus.copyto(ours, source)),
        ("NumPy", by_itself(lambda: np.copyto(result, source, casting="same_kind"))),
        most,
    )


def main() -> None:
    """Prints a line for each pair of types and each direction."""
    report = Report()
    most = 1 / 2 if len(os.sched_getaffinity(0)) >= 16 else 1 / 0.7
    cuda = isthmus.devices("cuda") and find_spec("cupy") and find_spec("torch")
    for from_type, to_type in PAIRS:
        on_host(report, from_type, to_type, most)
        if cuda:
            on_cuda(report, from_type, to_type)
    if not cuda:
        print("a CUDA device, CuPy and PyTorch are needed for the rest")
    report.finish()


if __name__ == "__main__":
    main()
