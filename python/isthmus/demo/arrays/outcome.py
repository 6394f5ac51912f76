# SPDX-License-Identifier: Apache-2.0
"""The options and results of the demo of arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

# The number of batches after which one-time allocations are done: pools, interpreter, NumPy.
WARM_UP = 20
# Tolerated growth of resident memory, since Python, NumPy and drivers allocate, too.
RESIDENT_SLACK = 32 << 20


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    batches: int = 1000
    patches: int = 1000  # in a batch
    device: str = ""
    seed: int = 1
    beside: str = ""  # a CSV file, drawn too


@dataclass
class Seconds:
    """The times of all batches together."""

    cut: float = 0.0
    upload: float = 0.0
    kernel: float = 0.0
    download: float = 0.0
    check: float = 0.0


@dataclass
class Memory:
    """In each batch: bytes held by the pool, bytes in use, and resident memory."""

    held: list[int] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    driver_allocations: list[int] = field(default_factory=list)


@dataclass
class Comparison:
    """The array of a batch from a pool and from the driver: created, filled and freed."""

    batches: int  # with each
    nbytes: int  # of the array
    pool_seconds: float  # the median of the batches
    driver_seconds: float
    pool_driver_allocations: int  # in all batches together
    driver_allocations: int


@dataclass
class Outcome:
    """The results of the demo, as shown in the table, JSON and the picture."""

    photographs: list[str]
    different_patches: int
    device: str
    device_name: str
    worker: str
    options: Options
    notes: list[str]
    nbytes: int = 0  # processed by the device
    seconds: Seconds = field(default_factory=Seconds)
    memory: Memory = field(default_factory=Memory)
    wrong_batches: list[int] = field(default_factory=list)
    wrong_results: int = 0
    least: float = 0.0  # contrast
    most: float = 0.0
    mean: float = 0.0
    comparison: Comparison | None = None
    picture: str = ""
    beside: list[int] = field(default_factory=list)  # held by another program after each batch

    @property
    def exact(self) -> bool:
        """Whether every number of every batch equals NumPy's."""
        return bool(self.memory.held) and self.wrong_results == 0

    @property
    def flat(self) -> bool | None:
        """Whether held memory, driver allocations and resident memory stopped growing after
        warm-up.

        None: there was no batch after the warm-up. Memory in use is not compared: it depends on
        whether the device had just finished with a batch.
        """
        if len(self.memory.held) <= WARM_UP:
            return None
        held, allocations, resident = (
            max(each) - max(each[:WARM_UP])
            for each in (self.memory.held, self.memory.driver_allocations, self.memory.resident)
        )
        return held == allocations == 0 and resident <= RESIDENT_SLACK
