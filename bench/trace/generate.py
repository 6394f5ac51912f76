# SPDX-License-Identifier: Apache-2.0
"""Writes data/streams.npz: eight concurrent streams, and blocks that cross between them.

Each stream takes batches through the same steps: a staging block from a copying stream, results of
mixed sizes on the stream itself, and scratch memory that is freed after the step. The staging block
of a batch is allocated on one of two copying streams and freed on the stream that used it last. One
result in eight is passed to another stream, which frees it. The same seed produces the same file,
byte for byte.
"""

from __future__ import annotations

import io
import zipfile
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 8
STREAMS = 8
COPYING = (0, 1)  # the streams on which staging blocks are allocated
BATCHES = 300  # of each other stream
HANDED_ON = 1 / 8
DATA = Path(__file__).with_name("data") / "streams.npz"


class Recorder:
    """Events in order of time, and the sizes of all blocks."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int]] = []
        self._sizes: list[int] = []

    def allocate(self, nbytes: int, stream: int) -> int:
        """Records an allocation; returns the new block's id."""
        self._sizes.append(nbytes)
        self.rows.append((1, len(self._sizes) - 1, nbytes, stream))
        return len(self._sizes) - 1

    def free(self, block: int, stream: int) -> None:
        """Records a free, on the stream that used the block last."""
        self.rows.append((0, block, self._sizes[block], stream))


def size(random: np.random.Generator, median: float) -> int:
    """Returns a log-normal size, as arrays have: a multiple of 8 bytes, 64 MiB at most."""
    return 8 * (1 + min(int(random.lognormal(np.log(median / 8), 1.2)), (8 << 20) - 1))


def batches(recorder: Recorder, stream: int, random: np.random.Generator) -> Iterator[float]:
    """Does one stream's work; yields how long each computation takes."""
    layers = int(random.integers(3, 7))
    weights = [recorder.allocate(size(random, 4 << 20), stream) for _ in range(layers)]
    for _ in range(BATCHES):
        staging = recorder.allocate(size(random, 256 << 10), int(random.choice(COPYING)))
        yield float(random.exponential(0.3))
        results = []
        for _ in weights:
            scratch = recorder.allocate(size(random, 16 << 10), stream)
            results.append(recorder.allocate(size(random, 512 << 10), stream))
            yield float(random.exponential(1.0))
            recorder.free(scratch, stream)
        recorder.free(staging, stream)
        for block in reversed(results):
            other = int(random.integers(2, STREAMS))
            recorder.free(block, other if random.random() < HANDED_ON else stream)
        yield float(random.exponential(0.3))
    for block in weights:
        recorder.free(block, stream)


def record() -> Recorder:
    """Records all streams, in the order in which their steps end."""
    recorder = Recorder()
    due: list[tuple[float, int]] = []
    work = {}
    for stream in range(len(COPYING), STREAMS):
        work[stream] = batches(recorder, stream, np.random.default_rng([SEED, stream]))
        heappush(due, (0.0, stream))
    while due:
        now, stream = heappop(due)
        taken = next(work[stream], None)
        if taken is not None:
            heappush(due, (now + taken, stream))
    return recorder


def write(recorder: Recorder, file: Path) -> None:
    """Writes an .npz file whose bytes do not depend on the time of writing."""
    columns = zip(*recorder.rows, strict=True)
    types = {"op": "u1", "id": "u4", "size": "u8", "stream": "u2"}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for (name, dtype), values in zip(types.items(), columns, strict=True):
            array = io.BytesIO()
            np.lib.format.write_array(array, np.array(values, dtype))
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), array.getvalue(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    write(record(), DATA)
