# SPDX-License-Identifier: Apache-2.0
"""Reading a trace takes time in proportion to its size, whatever its content."""

from __future__ import annotations

import contextlib
import itertools
import pickle
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from isthmus.trace import ALLOCATE, FREE, TraceError, load
from isthmus.trace import _load as readers
from isthmus.trace import _plain_pickle as plain
from isthmus.trace import _trace as numbering

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MERSENNE = 2**61 - 1  # hash(n) == n % MERSENNE for an integer n >= 0


def probes(keys: Iterable[Any]) -> int:
    """The number of probes that CPython's dictionary makes to insert these keys."""
    bits, used = 3, 0
    slots: dict[int, Any] = {}
    seen = 0
    for key in keys:
        if 3 * (used + 1) > 2 << bits:
            bits += 1
            old, slots = slots, {}
            for kept in old.values():
                slots[_slot(kept, bits, slots)[0]] = kept
        at, looked = _slot(key, bits, slots)
        slots[at] = key
        used = len(slots)
        seen += looked
    return seen


def _slot(key: Any, bits: int, slots: dict[int, Any]) -> tuple[int, int]:
    mask = (1 << bits) - 1
    perturb = hash(key) & (2**64 - 1)
    at, looked = perturb & mask, 1
    while at in slots and slots[at] != key:
        perturb >>= 5
        at = (5 * at + perturb + 1) & mask
        looked += 1
    return at, looked


def colliding(bits: int) -> list[int]:
    """Small integers for a dictionary of 2**bits entries, each of which needs many probes."""
    size, mask = 1 << bits, (1 << bits) - 1
    arc = list(itertools.accumulate(range(size // 3), lambda at, _: (5 * at + 1) & mask, initial=0))
    taken = set(arc)
    keys = arc
    for key in range(size, size << 5):
        at = perturb = key
        at &= mask
        while perturb and at in taken:
            perturb >>= 5
            at = (5 * at + perturb + 1) & mask
        if not perturb and at in taken:
            keys.append(key)
        if len(keys) == 2 * size // 3 - 1:
            break
    return keys


def test_the_count_of_probes() -> None:
    """The model shows what the readers must avoid, and that hashes of bytes avoid it."""
    small, large = colliding(10), colliding(12)
    each_small, each_large = probes(small) / len(small), probes(large) / len(large)
    assert each_small > 20
    assert each_large > 3 * each_small
    assert probes(str(key) for key in large) < 5 * len(large)
    assert probes(range(len(large))) < 5 * len(large)


def events(names: Iterable[int]) -> Iterator[numbering.Event]:
    for place, name in enumerate(names):
        yield place, ALLOCATE, name, 8, name % 1000
    for place, name in enumerate(names):
        yield place, FREE, name, 8, name % 1000


@pytest.mark.parametrize("bits", [10, 12])
def test_names_of_blocks_and_streams(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = colliding(bits)
    kept: list[Any] = []

    class Numbering(numbering._Numbering):
        def __init__(self, recorded: bool) -> None:
            super().__init__(recorded)
            kept.append(self)

        def add(self, *event: Any) -> None:
            super().add(*event)
            if len(self._live) == len(names):
                kept.append(list(self._live))

    monkeypatch.setattr(numbering, "_Numbering", Numbering)
    trace = numbering.from_events("x", events(names), recorded=True)
    assert trace.requested[len(names) - 1] == 8 * len(names)
    used, live = kept
    assert len(live) == len(used._freed) == len(names)
    for keys in (live, used._freed, used.queues):
        assert probes(keys) < 5 * len(keys)


@pytest.mark.parametrize("bits", [10, 12])
def test_addresses_of_a_snapshot(bits: int) -> None:
    freeing = readers._Freeing()
    names = colliding(bits)
    for name in names:
        freeing.allocated(name)
        assert freeing.is_first(name, "free_completed")
    assert len(freeing._seen) == len(names)
    assert probes(freeing._seen) < 5 * len(names)


class Counted(int):
    """Counts the comparisons that a dictionary makes for keys with equal hashes."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_equal_hashes_are_not_compared() -> None:
    names = [Counted(k * MERSENNE) for k in range(500)]
    Counted.compared = 0
    with pytest.raises(TraceError, match=r"event 0: 0 cannot name a block"):
        numbering.from_events("x", events(names))
    assert Counted.compared == 0
    with pytest.raises(TraceError, match=r"event 8: an integer of 65 bits cannot name a block"):
        numbering.from_events("x", events([k * MERSENNE for k in range(1, 500)]))


def test_names_that_are_too_long() -> None:
    for wrong, told in (
        (2**64, "65 bits"),
        (-(2**63) - 1, "64 bits"),
        (1 << 100_000, "100001 bits"),
        ("x" * 4097, "'xxxx"),
        (True, "True"),
        ((1, 2), "(1, 2)"),
    ):
        for block, stream in ((wrong, 0), (1, wrong)):
            event: Any = (3, ALLOCATE, block, 8, stream)
            with pytest.raises(TraceError) as raised:
                numbering.from_events("x", [event])
            assert told in str(raised.value)
    with pytest.raises(TraceError, match=r"allocates \(an integer of 100001 bits\) bytes"):
        numbering.from_events("x", [(0, ALLOCATE, 1, 1 << 100_000, 0)])
    ends: list[numbering.Event] = [
        (0, ALLOCATE, 2**64 - 1, 8, "x" * 4096),
        (1, ALLOCATE, -(2**63), 8, -1),
        (2, ALLOCATE, "-1", 8, "-1"),
    ]
    assert numbering.from_events("x", ends).queues == 3


# ---- pickles -------------------------------------------------------------------------------------


def long1(value: int) -> bytes:
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def put(slot: int) -> bytes:
    return b"r" + slot.to_bytes(4, "little")


def text(value: bytes) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value


TUPLE = b"(" + b"K\1" * 17 + b"t"
ATTACKS: dict[str, tuple[bytes, str]] = {
    "a_long_tuple": (
        b"\x80\4(" + b"K\1" * 20_000 + b"t\x94}(" + b"h\0N" * 10_000 + b"u.",
        "a tuple of more than 16 members",
    ),
    "a_tuple_of_17": (b"}" + TUPLE + b"Ns.", "a tuple of more than 16 members"),
    "in_a_set": (b"\x8f(" + TUPLE + b"\x90.", "a tuple of more than 16 members"),
    "in_a_frozenset": (b"(" + TUPLE + b"\x91.", "a tuple of more than 16 members"),
    "in_a_dict_of_protocol_0": (b"(" + TUPLE + b"Nd.", "a tuple of more than 16 members"),
    "equal_hashes": (
        b"}(" + b"".join(long1(k * MERSENNE) + b"N" for k in range(20_000)) + b"u.",
        "an integer of 65 bits",
    ),
    "equal_hashes_below_0": (b"}" + long1(-(2**63) - 1) + b"Ns.", "an integer of 64 bits"),
    "in_a_tuple": (b"}" + long1(2**64) + b"\x85Ns.", "an integer of 65 bits"),
    "a_long_integer_of_protocol_0": (b"}L" + b"9" * 4000 + b"L\nNs.", "bits, at most 64"),
    "chosen_probes": (
        b"}(" + b"".join(long1(key) + b"N" for key in colliding(10)) + b"u.",
        "more than 256 keys",
    ),
    "chosen_probes_one_by_one": (
        b"}" + b"".join(long1(key) + b"Ns" for key in colliding(10)) + b".",
        "more than 256 keys",
    ),
    "floats": (
        b"\x8f("
        + b"".join(b"G" + bytes([63, k >> 8, k & 255, *[0] * 5]) for k in range(257))
        + b"\x90.",
        "more than 256 keys",
    ),
    "nested_tuples": (b"}" + b")" + b"\x85" * 2 + b"Ns.", "a key is, or contains, a tuple"),
    "equal_texts": (
        text(b"a" * 1025)
        + b"\x94"
        + text(b"a" * 1025)
        + b"\x940"
        + b"0}h\0Ns"
        + b"("
        + b"h\1N" * 10_000
        + b"u.",
        "a key has 1025 characters",
    ),
    "equal_bytes": (b"}B\1\4\0\0" + b"a" * 1025 + b"Ns.", "a key has 1025 characters"),
    "a_text_in_a_tuple": (b"}" + text(b"a" * 1025) + b"\x85Ns.", "a key has 1025 characters"),
    "memo_entries": (
        b"N" + b"".join(map(put, colliding(10))) + b".",
        "memo entry is beyond the next free one, 2",
    ),
    "memo_entries_of_protocol_0": (b"Np0\np7\n.", "memo entry is beyond the next free one, 1"),
    "memo_entries_below_0": (b"Np0\n0g-1\n.", "a memo entry is below 0"),
    "digits": (b"I" + b"0" * 5000 + b"\n.", "a number has 5000 digits"),
    "digits_of_a_fraction": (b"F" + b"0" * 5000 + b"\n.", "a number has 5000 digits"),
    "digits_of_a_memo_entry": (b"Np0\n0g" + b"0" * 5000 + b"\n.", "a number has 5000 digits"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_would_take_quadratic_time(name: str, tmp_path: Path) -> None:
    data, told = ATTACKS[name]
    with pytest.raises(ValueError) as raised:
        plain.loads(data)
    assert told in str(raised.value)
    (tmp_path / "some.pickle").write_bytes(data)
    with pytest.raises(TraceError, match=r"some\.pickle: not a \.pickle trace file"):
        load(tmp_path / "some.pickle")


@pytest.mark.parametrize("key", ["addr", "size", "stream"])
@pytest.mark.parametrize(
    "value", [2**64, -(2**63) - 1, 1 << 100_000], ids=["above", "below", "far"]
)
@pytest.mark.parametrize("action", ["alloc", "free_requested", "free_completed", "free"])
def test_fields_above_64_bits(key: str, value: int, action: str, tmp_path: Path) -> None:
    entry = {"action": action, "addr": 1, "size": 8, "stream": 0, key: value}
    (tmp_path / "some.pickle").write_bytes(pickle.dumps({"device_traces": [[entry]]}))
    told = f"entry 0 of the history: {key} has {value.bit_length()} bits: at most 64 are supported"
    with pytest.raises(TraceError, match=told):
        load(tmp_path / "some.pickle")


def test_a_tuple_is_checked_once() -> None:
    """This holds however often the memo refers to it as a key."""
    reader = plain._Reader(b"")
    checked = []

    class Members(dict):  # replaces the set of tuples that were found valid
        def __setitem__(self, key: int, value: Any) -> None:
            checked.append(value)
            super().__setitem__(key, value)

    reader.data = b"K\1K\2\x86\x94}(" + b"h\0N" * 1000 + b"u."
    reader.checked_tuples = Members()
    with pytest.raises(ValueError, match="more than 256 keys"):
        reader.load()
    assert checked == [(1, 2)]


class Walked(list):
    """Counts the entries that are visited."""

    looked = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            Walked.looked += 1
            yield each


def test_one_history_for_many_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """One list, to which each device refers again in two bytes."""
    history = Walked([{"action": "snapshot"}] * 1000)
    whole = {"device_traces": [history] * 1000}
    monkeypatch.setattr(plain, "loads", lambda data: whole)
    Walked.looked = 0
    assert list(readers._snapshot(b"")) == []
    assert Walked.looked <= 3 * len(history)


def containers(value: Any) -> Iterator[Any]:
    """All containers in the value, each once."""
    found: dict[int, Any] = {}
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, (dict, list, tuple, set, frozenset)) and id(each) not in found:
            found[id(each)] = each
            pending += each
            pending += each.values() if isinstance(each, dict) else ()
    return iter(found.values())


OPERATIONS = [b"(", b"}", b"]", b")", b"\x8f", b"u", b"s", b"e", b"a", b"t", b"\x91", b"\x90", b"d"]
OPERATIONS += [b"\x85", b"\x86", b"\x87", b"\x94", b"0", b"N", b"\x88", b"h\0", b"h\1", b"h\2"]
operations = st.one_of(
    st.sampled_from(OPERATIONS),
    st.integers(-(2**70), 2**70).map(long1),
    st.integers(0, 600).map(lambda count: b"(" + b"K\7" * count + b"t"),
    st.integers(0, 600).map(lambda many: b"".join(b"K\7" + long1(n << 20) for n in range(many))),
    st.integers(0, 2000).map(lambda count: text(b"k" * count)),
    st.integers(0, 4).map(put),
)


@settings(database=None, derandomize=True, max_examples=150)
@given(parts=st.lists(operations, max_size=60))
def test_what_is_read_has_few_keys_with_chosen_hashes(parts: list[bytes]) -> None:
    reader = plain._Reader(b"".join(parts) + b".")
    with contextlib.suppress(ValueError, LookupError):
        reader.load()  # objects created before the error are checked too
    for made in containers([*reader.memo, *reader.stack]):
        if isinstance(made, (list, tuple)):
            continue
        others = [key for key in made if type(key) not in (str, bytes)]
        assert len(others) <= 256
        for key in made:
            members = key if isinstance(key, tuple) else (key,)
            assert len(members) <= 16
            assert all(numbering.fits_64_bits(each) for each in members if type(each) is int)
            assert all(len(each) <= 1024 for each in members if isinstance(each, (str, bytes)))


# ---- logs ----------------------------------------------------------------------------------------


def test_a_log_with_many_columns(tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("Action,Pointer,Size," + "a," * 1500 + "b\n")
    with pytest.raises(TraceError, match=r"1500 columns are named 'a' in the first line"):
        load(file)
