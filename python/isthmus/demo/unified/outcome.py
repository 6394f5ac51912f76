# SPDX-License-Identifier: Apache-2.0
"""The options and results of the demo of the unified buffer."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    rows: int = 6400
    rounds: int = 12
    device: str = ""
    granularity: str = "auto"
    one_copy: bool = False  # if the device can access host memory; otherwise there are two copies
    seed: int = 1


@dataclass
class Round:
    """The results of one round: bytes of all its transfers, and times of its steps."""

    number: int
    state: str  # after the host's edits
    dirty_ranges: int
    dirty_bytes: int
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    sync_seconds: float = 0.0
    whole_seconds: float = 0.0
    count_seconds: float = 0.0
    stamped_state: str = ""  # after the device's stamps
    read_seconds: float = 0.0
    land_km2: float = 0.0
    wrong_rows: int = 0
    wrong_cells: int = 0

    @property
    def bytes_moved(self) -> int:
        """The bytes copied in both directions."""
        return self.bytes_to_device + self.bytes_to_host


@dataclass
class Outcome:
    """The results of the demo, as shown in the table, JSON and the picture."""

    map: str
    shape: tuple[int, int]
    nbytes: int
    device: str
    device_name: str
    worker: str
    options: Options
    notes: list[str]
    rounds: list[Round] = field(default_factory=list)
    # For each block of a coarse grid over the map: the share that the host made dirty in the last
    # round, and the share of land.
    dirty: list[list[float]] = field(default_factory=list)
    land: list[list[float]] = field(default_factory=list)
    wrong_bytes_on_host: int = 0
    wrong_bytes_on_device: int = 0
    picture: str = ""

    @property
    def exact(self) -> bool:
        """Whether every count, band and byte equals NumPy's."""
        wrong = sum(each.wrong_rows + each.wrong_cells for each in self.rounds)
        wrong += self.wrong_bytes_on_host + self.wrong_bytes_on_device
        return bool(self.rounds) and wrong == 0

    @property
    def later_bytes(self) -> tuple[int, int]:
        """The bytes copied after the first round, and those of whole copies in these rounds.

        The first round copies the whole array in any case.
        """
        later = self.rounds[1:]
        moved = sum(each.bytes_moved for each in later)
        return moved, 2 * self.nbytes * len(later)

    @property
    def later_seconds(self) -> tuple[float, float]:
        """The times to update the device after the first round, and those of whole copies."""
        later = self.rounds[1:]
        return sum(each.sync_seconds for each in later), sum(each.whole_seconds for each in later)

    @property
    def bytes_moved(self) -> int:
        """The bytes copied in all rounds, in both directions."""
        return sum(each.bytes_moved for each in self.rounds)

    @property
    def whole_bytes(self) -> int:
        """The bytes of copying the whole array to the device and back in each round."""
        return 2 * self.nbytes * len(self.rounds)
