# SPDX-License-Identifier: Apache-2.0
"""``isthmus.empty((1000,))``, created and dropped, compared with ``numpy.empty((1000,))``.

It may take at most twice as long, on the host and on a CUDA device if there is one. CuPy and
PyTorch are measured for information if they are installed. Then 10^6 temporary arrays of random
sizes are created: the pool must hold no more after them than after the first tenth, and must not
call the driver meanwhile.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from random import Random
from time import perf_counter
from timeit import Timer
from typing import Any

import numpy as np
from _timing import Report, interleaved

import isthmus

BOUND = 2.0
ROUNDS, LARGEST = 1_000_000, 256 * 1024
NUMPY = "numpy.empty((1000,))"
WAYS = (
    "empty((1000,))",
    "empty((1000,), float64)",
    "empty((1000,), numpy.float64)",
    "empty((1000,), 'f8', kind='shared')",
    "empty((1000,), dtype=float32, queue=queue)",
    "empty(shape, kind='host', device=device)",
    "empty_like(like)",
)
PEERS = {
    "cupy": "cupy.empty((1000,))",
    "torch": "torch.empty((1000,), device=where)",
}


def main() -> None:
    """Prints a line for each form of call and device."""
    report = Report()
    for device in devices():
        with device:
            compare(report, device)
            loop(report, device)
    report.finish()


def devices() -> list[isthmus.Device]:
    """Returns the host, and one CUDA device if there is any."""
    cuda = [each for each in isthmus.devices() if each.backend == "cuda"]
    return [isthmus.Device("host"), *cuda[:1]]


def compare(report: Report, device: isthmus.Device) -> None:
    """Measures all forms, NumPy and the peers alternately, and reports the medians."""
    names: dict[str, Any] = {name: getattr(isthmus, name) for name in isthmus.__all__}
    names |= {"numpy": np, "device": device, "queue": device.default_queue, "shape": (1000,)}
    names["like"] = isthmus.empty((1000,))
    names["where"] = "cuda" if device.backend == "cuda" else "cpu"
    beside = {name: code for name, code in PEERS.items() if is_there(name, device, names)}
    taken = interleaved(
        {each: Timer(each, globals=names) for each in (NUMPY, *WAYS, *beside.values())}, budget=4.0
    )
    print(f"On {device.filter}:")
    for each in WAYS:
        report.against(each, taken[each], (NUMPY, taken[NUMPY]), BOUND)
    for code in beside.values():
        print(
            f"{code:<78} {taken[code] * 1e9:6.0f} ns   {taken[code] / taken[NUMPY]:5.2f} of NumPy's"
        )


def is_there(name: str, device: isthmus.Device, names: dict[str, Any]) -> bool:
    """Imports a peer; returns whether it is installed and can use the device."""
    try:
        names[name] = importlib.import_module(name)
    except ImportError:
        return False
    return name == "torch" or device.backend == "cuda"


def loop(report: Report, device: isthmus.Device) -> None:
    """Creates temporary arrays of random sizes, one live at a time."""
    random = Random(1)
    sizes = [random.randrange(1, LARGEST) for _ in range(ROUNDS // 10)]
    assert len(set(sizes)) > ROUNDS // 20, "of random sizes"
    pool = isthmus.default_pool("device", device)
    pools, residents, begin = [], [], perf_counter()
    for _ in range(10):
        for size in sizes:
            isthmus.empty(size, "u1")
        pools.append((pool.held_bytes, pool.maps))
        residents.append(resident_bytes())
    nanoseconds = (perf_counter() - begin) / ROUNDS * 1e9
    is_flat = pools[0] == pools[-1] and residents[-1] - residents[0] < 1 << 20
    print(
        f"{ROUNDS} temporaries up to {LARGEST} bytes: {nanoseconds:.0f} ns each; held "
        f"{pools[-1][0] / 2**20:.1f} MiB, maps {pools[0][1]} to {pools[-1][1]}, resident "
        f"{residents[0] / 2**20:.1f} to {residents[-1] / 2**20:.1f} MiB: "
        f"{'flat' if is_flat else 'NOT FLAT'}",
        flush=True,
    )
    report.held = report.held and is_flat


def resident_bytes() -> int:
    """Returns the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


if __name__ == "__main__":
    sys.exit(main())
