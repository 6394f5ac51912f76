# SPDX-License-Identifier: Apache-2.0
"""A CUDA buffer into a fresh array, compared with PyTorch's ``.cpu()`` and CuPy's ``asnumpy``.

Warm: the previous array was dropped, as in a loop that inspects each result. Cold: all results are
kept, so that each uses pages that were not touched before. Finally, copies into one existing array
are measured, as it is and pinned by ``isthmus.pin``.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from _timing import Report

import isthmus

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"64 MiB": 64 << 20, "1 GiB": 1 << 30}
ROUNDS = 7
# Time of Isthmus over the peer's: at least 8 and 3 times as fast.
WARM_BOUND = 1 / 8
COLD_BOUND = 1 / 3


def warm(make: Callable[[], object]) -> float:
    """Returns the median seconds if the previous result was dropped."""
    make()
    return median(_seconds(make)[0] for _ in range(ROUNDS))


def cold(make: Callable[[], object]) -> float:
    """Returns the median seconds if no result is dropped."""
    taken = [_seconds(make) for _ in range(ROUNDS)]
    return median(seconds for seconds, _ in taken)


def have(nbytes: int) -> None:
    """Touches memory in advance: virtual machines obtain it at first touch, which is slow."""
    np.ones(nbytes, np.uint8)


def _seconds(make: Callable[[], object]) -> tuple[float, object]:
    start = perf_counter()
    made = make()
    return perf_counter() - start, made


def peers(data: np.ndarray) -> dict[str, Callable[[], object]]:
    """Returns the copies of the installed peers, each from its own memory."""
    found: dict[str, Callable[[], object]] = {}
    try:
        import torch

        tensor = torch.from_numpy(data).cuda()
        found["PyTorch"] = tensor.cpu
    except (ImportError, RuntimeError, AssertionError) as absent:
        print(f"without PyTorch: {absent}")
    try:
        import cupy

        array = cupy.asarray(data)
        found["CuPy"] = lambda: cupy.asnumpy(array)
    except ImportError as absent:
        print(f"without CuPy: {absent}")
    return found


def rate(nbytes: int, seconds: float) -> str:
    """Formats a rate in GB/s."""
    return f"{nbytes / seconds / 1e9:.1f} GB/s"


def main() -> None:
    """Prints a line for each size and peer, and the rates."""
    queue = isthmus.Queue("cuda")
    report = Report()
    for name, nbytes in SIZES.items():
        have((ROUNDS + 2) * nbytes)
        data = np.full(nbytes, 7, np.uint8)
        buffer = isthmus.Buffer(nbytes, queue=queue)
        buffer.copy_from(data)
        cold_seconds, warm_seconds = cold(buffer.to_numpy), warm(buffer.to_numpy)
        print(f"{name}: cold {rate(nbytes, cold_seconds)}, warm {rate(nbytes, warm_seconds)}")
        for peer, make in peers(data).items():
            theirs_cold, theirs_warm = cold(make), warm(make)
            told = f"{rate(nbytes, theirs_cold)}, {rate(nbytes, theirs_warm)}"
            report.against(f"{name}, cold ({told})", cold_seconds, (peer, theirs_cold), COLD_BOUND)
            report.against(f"{name}, warm", warm_seconds, (peer, theirs_warm), WARM_BOUND)
        given(name, buffer, data)
    report.finish()


def given(name: str, buffer: isthmus.Buffer, data: np.ndarray) -> None:
    """Measures copies to and from one array, without and with a pin, and the pin itself."""
    back = warm(lambda: buffer.copy_to(data))
    there = warm(lambda: buffer.copy_from(data))
    start = perf_counter()
    pinned = isthmus.pin(data, device=buffer.queue.device)
    registered = perf_counter() - start
    pinned_back = warm(lambda: buffer.copy_to(data))
    pinned_there = warm(lambda: buffer.copy_from(data))
    start = perf_counter()
    pinned.release()
    print(
        f"{name}, an array that is given: to it {rate(data.nbytes, back)}, "
        f"pinned {rate(data.nbytes, pinned_back)}; from it {rate(data.nbytes, there)}, pinned "
        f"{rate(data.nbytes, pinned_there)}; to pin {registered * 1e3:.1f} ms, to release "
        f"{(perf_counter() - start) * 1e3:.1f} ms"
    )


if __name__ == "__main__":
    if isthmus.devices("cuda"):
        main()
    else:
        print("no CUDA device: nothing is measured")
