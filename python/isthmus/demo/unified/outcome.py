"""What the demo of the unified buffer is asked for, and all that it tells."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Wish:
    """What the command line asks for."""

    rows: int = 6400
    rounds: int = 12
    device: str = ""
    granularity: str = "page"
    one_copy: bool = False  # where the device reaches the host's memory; else two are kept
    seed: int = 1


@dataclass
class Round:
    """One round; bytes of all its movements, seconds of the synchronisation to the device."""

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


@dataclass
class Outcome:
    """All that the demo tells, as it goes into the table, JSON and the picture."""

    map: str
    shape: tuple[int, int]
    nbytes: int
    device: str
    device_name: str
    worker: str
    wish: Wish
    notes: list[str]
    rounds: list[Round] = field(default_factory=list)
    # Of each block of a coarse grid over the map: the share that the host had made dirty in the
    # last round, and the share of land.
    dirty: list[list[float]] = field(default_factory=list)
    land: list[list[float]] = field(default_factory=list)
    wrong_bytes_on_host: int = 0
    wrong_bytes_on_device: int = 0
    picture: str = ""

    @property
    def exact(self) -> bool:
        """Whether every count, band and byte was NumPy's."""
        wrong = sum(each.wrong_rows + each.wrong_cells for each in self.rounds)
        wrong += self.wrong_bytes_on_host + self.wrong_bytes_on_device
        return bool(self.rounds) and wrong == 0

    @property
    def bytes_moved(self) -> int:
        """In all rounds, both ways."""
        return sum(each.bytes_to_device + each.bytes_to_host for each in self.rounds)

    @property
    def whole_bytes(self) -> int:
        """What copies of the whole would have moved: each round there, and back for the stamps."""
        return 2 * self.nbytes * len(self.rounds)
