# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots as written by PyTorch 2.1 to 2.12, its XPU and NPU builds and other tools."""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from isthmus.trace import ALLOCATE, TraceError, load

if TYPE_CHECKING:
    from pathlib import Path

    from isthmus.trace import Trace

BOTH = ("free_requested", "free_completed")
# The actions that represent a free in a history. `skip_actions` of PyTorch 2.10 omits some.
SPELLINGS: dict[str, list[tuple[str, ...]]] = {
    "both": [BOTH],
    "requested": [("free_requested",)],
    "completed": [("free_completed",)],
    "free": [("free",)],
    "free_and_completed": [("free", "free_completed")],
    "all_three": [("free_requested", "free", "free_completed")],
    # Frees by a checkpoint of a CUDA graph's pool, among those by the program.
    "a_checkpoint_between": [BOTH, ("free_completed",), BOTH],
    "any": [BOTH, ("free_completed",), ("free_requested",), ("free",)],
}
# Keys of entries other than `action`, `addr`, `size` and `stream`, by the tool that writes them.
KEYS: dict[str, dict[str, Any]] = {
    "2.1": {"frames": [{"filename": "train.py", "name": "step", "line": 7}]},
    "2.2": {"time_us": 1_700_000_000_000_000, "frames": []},
    "2.7": {"time_us": 1, "frames": [], "compile_context": "Torch-Compiled Region: 0/0"},
    "2.10": {"time_us": 1, "frames": [], "user_metadata": "step 7", "segment_pool_id": (0, 1)},
    "npu": {},
}
HIGH = 0xFF00_0000_0000_0000  # the addresses of Intel's devices


@dataclass
class Block:
    """What the program did: the reference from which the history is written."""

    nbytes: int
    allocated: int  # index of its entry
    freed: int | None = None  # index of the first entry that reports the free


@dataclass
class Program:
    """Allocates and frees at random, and records it as PyTorch does."""

    spellings: list[tuple[str, ...]]
    keys: dict[str, Any]
    is_signed: bool = False
    entries: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def record(self, action: str, address: int, nbytes: int, stream: int = 0) -> None:
        if self.is_signed:  # as the C++ pickler writes it
            address -= 1 << 64
        where = "device_free" if action == "oom" else "addr"
        entry = {"action": action, where: address, "size": nbytes, "stream": stream}
        self.entries.append(entry | self.keys)

    def run(self, chance: random.Random, steps: int, reuse: bool) -> None:
        free_addresses = [HIGH + (n << 21) for n in range(8 if reuse else steps)]
        live: list[tuple[int, Block, int]] = []
        pending: list[tuple[int, list[str], Block]] = []  # freed, but in use by a stream
        for step in range(steps):
            self.other_entries(chance)
            if live and (chance.random() < 0.5 or not free_addresses):
                address, block, stream = live.pop(chance.randrange(len(live)))
                left = list(self.spellings[step % len(self.spellings)])
                pending.append((address, left, block))
            elif free_addresses:
                address = free_addresses.pop(chance.randrange(len(free_addresses)) if reuse else 0)
                block = Block(chance.randrange(1, 1 << 30), len(self.entries))
                stream = chance.choice([0, 0, 94_000_000])
                self.record("alloc", address, block.nbytes, stream)
                self.blocks.append(block)
                live.append((address, block, stream))
            for each in list(pending):
                if chance.random() < 0.6:
                    self.tell(each)
                    if not each[1]:
                        pending.remove(each)
                        if reuse:
                            free_addresses.append(each[0])

    def tell(self, freed: tuple[int, list[str], Block]) -> None:
        address, left, block = freed
        if block.freed is None:
            block.freed = len(self.entries)
        self.record(left.pop(0), address, block.nbytes)

    def other_entries(self, chance: random.Random) -> None:
        action = chance.choice(
            ["segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "oom"]
            + ["empty_cache", "user_defined"]
            + [""] * 8
        )
        if action:
            self.record(action, HIGH, 2 << 20)

    def live_bytes(self, first: int = 0) -> list[int]:
        """Live bytes after each allocation and free, of the blocks allocated from ``first`` on."""
        known = [block for block in self.blocks if block.allocated >= first]
        places = sorted(
            [block.allocated for block in known]
            + [block.freed for block in known if block.freed is not None]
        )
        return [
            sum(
                block.nbytes
                for block in known
                if block.allocated <= place and (block.freed is None or block.freed > place)
            )
            for place in places
        ]


def whole(device_traces: Any, version: str = "2.10") -> dict[str, Any]:
    segment = {"device": 0, "address": HIGH, "total_size": 2 << 20, "segment_pool_id": (0, 1)}
    segment |= {"stream": 0, "segment_type": "large", "is_expandable": True, "frames": []}
    segment["blocks"] = [{"address": HIGH, "size": 512, "requested_size": 8, "state": "inactive"}]
    divisions = {str(1 << n): 0 for n in range(16)}
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False}
    settings["roundup_power2_divisions"] = divisions
    annotations = [{"name": "## step ##", "stage": "START", "device": 0, "time_us": 1}]
    snapshot: dict[str, Any] = {"segments": [segment], "device_traces": device_traces}
    if version != "npu":
        snapshot |= {"allocator_settings": settings, "external_annotations": annotations}
    return snapshot


def read(tmp_path: Path, snapshot: Any, protocol: int = 4) -> Trace:
    file = tmp_path / "some.pickle"
    file.write_bytes(pickle.dumps(snapshot, protocol))
    return load(file)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("version", KEYS)
@pytest.mark.parametrize("reuse", [True, False], ids=["reused", "fresh"])
def test_one_free_for_each_block(spelling: str, version: str, reuse: bool, tmp_path: Path) -> None:
    for seed in range(5):
        program = Program(SPELLINGS[spelling], KEYS[version], is_signed=seed == 3)
        program.run(random.Random(f"{spelling} {version} {seed}"), 300, reuse)
        protocol = 2 if seed == 3 else 4  # protocol 2 is the C++ pickler's
        trace = read(tmp_path, whole([program.entries], version), protocol)
        assert trace.requested.tolist() == program.live_bytes()
        assert trace.frees_before == 0
        assert len(trace.events) > 250


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("reuse", [True, False], ids=["reused", "fresh"])
def test_a_ring_that_lost_its_beginning(spelling: str, reuse: bool, tmp_path: Path) -> None:
    program = Program(SPELLINGS[spelling], KEYS["2.10"])
    program.run(random.Random(spelling), 300, reuse)
    for first in range(0, len(program.entries), 41):
        trace = read(tmp_path, whole([program.entries[first:]]))
        assert trace.requested.tolist() == program.live_bytes(first)


def entry(action: str, address: int = 64, nbytes: int = 100) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": nbytes, "stream": 0}


def test_the_peak_of_a_loop_is_one_block(tmp_path: Path) -> None:
    """New addresses, each freed before the next is allocated, without `free_requested`."""
    history = [
        entry(action, address) for address in range(5) for action in ("alloc", "free_completed")
    ]
    assert read(tmp_path, whole([history])).peak_requested_bytes == 100


@pytest.mark.parametrize("first", ["free_requested", "free_completed", "free"])
@pytest.mark.parametrize("second", ["free_requested", "free_completed", "free"])
def test_two_frees(first: str, second: str, tmp_path: Path) -> None:
    """The same action again is another free; a different action reports the same free."""
    for before in ([entry("alloc")], []):
        history = [*before, entry(first), entry(second)]
        if first == second:
            with pytest.raises(TraceError, match="frees block 64, which is not allocated"):
                read(tmp_path, whole([history]))
        else:
            trace = read(tmp_path, whole([history]))
            assert len(trace.events) == 2 * len(before)
            assert trace.frees_before == 1 - len(before)
        again = [*before, entry(first), entry("alloc", nbytes=7), entry(second)]
        assert read(tmp_path, whole([again])).requested.tolist()[-2:] == [7, 0]


def test_allocated_twice(tmp_path: Path) -> None:
    for between in ([], [entry("segment_free"), entry("snapshot"), entry("oom")]):
        with pytest.raises(TraceError, match="allocates block 64, which is already allocated"):
            read(tmp_path, whole([[entry("alloc"), *between, entry("alloc")]]))


ONLY_SNAPSHOT = [entry("snapshot", 0)]
ONE = [entry("alloc"), entry("free_requested"), entry("free_completed")]


@pytest.mark.parametrize(
    "before",
    [[[]], [[], []], [ONLY_SNAPSHOT], [[], ONLY_SNAPSHOT, []], [[entry("segment_alloc")]]],
    ids=["empty", "two_empty", "snapshot", "both", "segment"],
)
def test_the_first_device_that_was_used(before: list[Any], tmp_path: Path) -> None:
    """A process that uses only device 1 has an entry for its snapshot on device 0."""
    other = [entry("alloc", nbytes=5)]
    trace = read(tmp_path, whole([*before, ONE, other]))
    assert trace.requested.tolist() == [100, 0]
    assert len(read(tmp_path, whole([*before, ONLY_SNAPSHOT])).events) == 0


def test_workspaces_of_an_npu(tmp_path: Path) -> None:
    """Their entries precede the history, in which their addresses may have been used meanwhile."""
    workspaces = [
        entry(action, address, 1000)
        for address in (64, 128)
        for action in ("workspace_snapshot", "segment_alloc", "alloc")
    ]
    history = [*workspaces, *ONE, entry("alloc", 128, 7), *ONE, entry("free_completed", 128, 7)]
    trace = read(tmp_path, whole([history], "npu"))
    assert trace.requested.tolist() == [1000, 2000, 2100, 2000, 2007, 2107, 2007, 2000]
    allocated = trace.events[trace.events["action"] == ALLOCATE]
    assert allocated["nbytes"].tolist() == [1000, 1000, 100, 7, 100]


def test_a_history_without_allocations(tmp_path: Path) -> None:
    """`skip_actions=["alloc"]`: frees of blocks whose allocation was not recorded."""
    history = [entry("free_requested", 1), entry("free_completed", 1), entry("free_requested", 2)]
    trace = read(tmp_path, whole([history]))
    assert (len(trace.events), trace.frees_before) == (0, 2)
