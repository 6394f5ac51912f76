"""Writes data/streams.npz: eight streams at work at once, and blocks that cross between them.

Each stream takes batches through the same steps: a staging block from a copying stream, results of
mixed sizes of its own, scratch memory that goes with the step. What a batch is made of comes on one
of two copying streams and is freed on the stream that used it last; one result in eight is handed
to another stream, which frees it. The same seed gives the same file, byte by byte.
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
COPYING = (0, 1)  # of these streams staging blocks come
BATCHES = 300  # of each other stream
HANDED_ON = 1 / 8
DATA = Path(__file__).with_name("data") / "streams.npz"


class Recorder:
    """Events in the order of time, and the blocks that are still there."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int]] = []
        self._sizes: list[int] = []

    def allocate(self, nbytes: int, stream: int) -> int:
        """The new block's id."""
        self._sizes.append(nbytes)
        self.rows.append((1, len(self._sizes) - 1, nbytes, stream))
        return len(self._sizes) - 1

    def free(self, block: int, stream: int) -> None:
        """On the stream that used it last."""
        self.rows.append((0, block, self._sizes[block], stream))


def size(random: np.random.Generator, median: float) -> int:
    """Log-normal, as sizes of arrays are; a whole number of 8 bytes, 64 MiB at most."""
    return 8 * (1 + min(int(random.lognormal(np.log(median / 8), 1.2)), (8 << 20) - 1))


def batches(recorder: Recorder, stream: int, random: np.random.Generator) -> Iterator[float]:
    """One stream's work; yields how long it computes before it goes on."""
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
    """All streams, in the order in which their steps end."""
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
    """An .npz file whose bytes do not tell when it was written."""
    columns = zip(*recorder.rows, strict=True)
    types = {"op": "u1", "id": "u4", "size": "u8", "stream": "u2"}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for (name, dtype), values in zip(types.items(), columns, strict=True):
            array = io.BytesIO()
            np.lib.format.write_array(array, np.array(values, dtype))
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), array.getvalue(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    write(record(), DATA)
