"""What the demo of arrays is asked for, and all that it tells."""

from __future__ import annotations

from dataclasses import dataclass, field

# Batches until everything that is made once is made: pools, the interpreter's and NumPy's memory.
WARM_UP = 20
# Of the process in RAM, which Python, NumPy and drivers use as they like.
RESIDENT_SLACK = 32 << 20


@dataclass(frozen=True)
class Wish:
    """What the command line asks for."""

    batches: int = 1000
    patches: int = 1000  # in a batch
    device: str = ""
    seed: int = 1
    beside: str = ""  # a CSV file, drawn too


@dataclass
class Seconds:
    """Of all batches together."""

    cut: float = 0.0
    upload: float = 0.0
    kernel: float = 0.0
    download: float = 0.0
    check: float = 0.0


@dataclass
class Memory:
    """Behind each batch: bytes of the pool's, of these in use, and of the process in RAM."""

    held: list[int] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    driver_allocations: list[int] = field(default_factory=list)


@dataclass
class Outcome:
    """All that the demo tells, as it goes into the table, JSON and the picture."""

    photographs: list[str]
    different_patches: int
    device: str
    device_name: str
    worker: str
    wish: Wish
    notes: list[str]
    nbytes: int = 0  # that went through the device
    seconds: Seconds = field(default_factory=Seconds)
    memory: Memory = field(default_factory=Memory)
    wrong_batches: list[int] = field(default_factory=list)
    wrong_results: int = 0
    least: float = 0.0  # contrast
    most: float = 0.0
    mean: float = 0.0
    picture: str = ""
    beside: list[int] = field(default_factory=list)  # held by another program behind each batch

    @property
    def exact(self) -> bool:
        """Whether every number of every batch was NumPy's."""
        return bool(self.memory.held) and self.wrong_results == 0

    @property
    def flat(self) -> bool | None:
        """Whether behind the warm-up no more was held, asked of the driver or taken in RAM.

        None: there was no batch behind it.
        What is in use behind a batch may be none of it, or one that the device has just left.
        """
        if len(self.memory.held) <= WARM_UP:
            return None
        held, asked, resident = (
            max(each) - max(each[:WARM_UP])
            for each in (self.memory.held, self.memory.driver_allocations, self.memory.resident)
        )
        return held == asked == 0 and resident <= RESIDENT_SLACK
