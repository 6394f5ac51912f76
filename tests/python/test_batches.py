# SPDX-License-Identifier: Apache-2.0
"""batches(): slices, and smaller ones where memory is insufficient."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from support import message_has

import isthmus
from isthmus import Buffer, Device
from isthmus.memory import LimitResource, ProviderResource
from isthmus.unified.batches import batches
from isthmus.unified.buffer import UnifiedBuffer


@pytest.mark.parametrize(("length", "size"), [(0, 3), (1, 3), (3, 3), (10, 3), (10, 1), (10, 100)])
def test_slices_of_an_array(length: int, size: int) -> None:
    data = np.arange(2 * length).reshape(length, 2)
    found = list(batches(data, size=size))
    assert [len(each) for each in found[:-1]] == [size] * (len(found) - 1)
    assert len(found) == -(-length // size)
    assert all(np.shares_memory(each, data) for each in found)
    assert np.array_equal(np.concatenate([data[:0], *found]), data)


def test_sequences_and_buffers() -> None:
    assert list(batches([1, 2, 3], size=2)) == [[1, 2], [3]]
    assert list(batches("abc", size=np.int64(2))) == ["ab", "c"]
    buf = UnifiedBuffer((5, 2), np.int32)
    buf.host[:] = np.arange(10).reshape(5, 2)
    assert [each.shape for each in batches(buf, size=2)] == [(2, 2), (2, 2), (1, 2)]
    sums = batches(buf, lambda part: int(part.host.sum()), size=2)
    assert list(sums) == [6, 22, 17]


def test_all_at_once_where_memory_suffices() -> None:
    assert list(batches(np.arange(10), len)) == [10]
    assert list(batches(np.arange(10), len, size=4)) == [4, 4, 2]
    assert list(batches(np.arange(0), len)) == []


class Short:
    """Has memory for `limit` elements."""

    def __init__(self, limit: int, error: Exception) -> None:
        self.limit, self.error = limit, error
        self.tried: list[int] = []

    def __call__(self, batch: Any) -> list[int]:
        self.tried.append(len(batch))
        if len(batch) > self.limit:
            raise self.error
        return list(batch)


def foreign(module: str, name: str) -> Exception:
    """An error as the library `module` defines it, which need not be installed."""
    base = type(name, (RuntimeError,), {"__module__": f"{module}.inner"})
    error: Exception = type("Derived", (base,), {"__module__": "elsewhere"})("no memory")
    return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("none"),
        isthmus.USMAllocationError("none"),
        foreign("torch", "OutOfMemoryError"),
        foreign("cupy", "OutOfMemoryError"),
        foreign("pyopencl", "MemoryError"),
    ],
    ids=["python", "isthmus", "torch", "cupy", "pyopencl"],
)
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_the_batch_is_halved(limit: int, error: Exception) -> None:
    short = Short(limit, error)
    found = list(batches(list(range(50)), short))
    assert [number for batch in found for number in batch] == list(range(50))
    assert max(map(len, found)) <= limit
    halvings = [50, 25, 12, 6, 3, 1]
    first = next(at for at, size in enumerate(halvings) if size <= limit)
    assert short.tried[: first + 1] == halvings[: first + 1]
    # The smaller size is kept, so nothing fails afterwards.
    assert all(size <= limit for size in short.tried[first:])


def test_memory_that_gets_short_later() -> None:
    short = Short(8, MemoryError())
    results = batches(list(range(40)), short, size=8)
    found = [next(results), next(results)]
    short.limit = 3
    found += results
    assert [number for batch in found for number in batch] == list(range(40))
    assert [len(batch) for batch in found[:3]] == [8, 8, 2]


def test_one_element_that_does_not_fit() -> None:
    short = Short(0, MemoryError("none at all"))
    with pytest.raises(MemoryError, match="none at all") as caught:
        list(batches(list(range(10)), short))
    assert short.tried == [10, 5, 2, 1]
    notes = caught.value.__notes__  # type: ignore[attr-defined]
    assert len(notes) == 1
    assert "element 0" in notes[0]
    assert "10, 5, 2, 1" in notes[0]


@pytest.mark.parametrize("error", [ValueError("x"), foreign("mine", "OutOfMemoryError")])
def test_other_errors_are_raised_at_once(error: Exception) -> None:
    short = Short(0, error)
    with pytest.raises(type(error)):
        list(batches(list(range(10)), short))
    assert short.tried == [10]


def test_memory_of_a_failed_batch_is_freed_before_the_retry() -> None:
    large: list[weakref.ref[np.ndarray]] = []

    def work(batch: np.ndarray) -> int:
        assert all(each() is None for each in large)
        temporary = np.ones(len(batch))
        large.append(weakref.ref(temporary))
        if len(batch) > 2:
            raise MemoryError
        return len(batch)

    assert sum(batches(np.arange(9), work)) == 9


def test_devices_out_of_memory(dev: Device) -> None:
    limited = LimitResource(ProviderResource("device", dev), 40_000)

    def work(batch: np.ndarray) -> int:
        memory = Buffer(batch.nbytes, resource=limited)
        memory.copy_from(batch)
        total = int(memory.to_numpy().view(np.int32).sum())
        memory.free()
        dev.default_queue.wait()
        return total

    data = np.arange(100_000, dtype=np.int32) % 1000
    found = list(batches(data, work))
    assert len(found) == 16  # 6250 elements each: the first halving that fits
    assert sum(found) == data.sum()


def test_nothing_runs_before_the_first_iteration() -> None:
    short = Short(5, MemoryError())
    results = batches(list(range(10)), short, size=5)
    assert short.tried == []
    next(results)
    assert short.tried == [5]


def test_progress_into_no_terminal_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(list(batches([1, 2, 3], size=1, progress=True))) == 3
    assert capsys.readouterr() == ("", "")


def test_bad_arguments() -> None:
    for size in (0, -7):
        with pytest.raises(ValueError) as caught:
            batches([1], size=size)
        message_has(caught, ["size", 1, size])
    with pytest.raises(TypeError, match="size must be an integer, not float"):
        batches([1], size=2.0)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="needs size="):
        batches([1])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="use size="):
        batches([1], 2)  # type: ignore[call-overload]
    for data in (5, {1: 2}, {1, 2}, (k for k in range(3)), np.array(3)):
        with pytest.raises(TypeError, match=type(data).__name__):
            batches(data, size=2)  # type: ignore[call-overload]
