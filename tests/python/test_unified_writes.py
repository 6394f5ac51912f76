# SPDX-License-Identifier: Apache-2.0
"""Every kind of write to the host copy is detected, and no kind of read counts as a write."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from unified_support import each_means, numbers, read_on_device, two_copies, write_on_device

from isthmus import BufferState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isthmus import Device

SIZE = 50_000


def by_torch(array: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    torch.from_numpy(array)[7] = -1


def by_a_memoryview(array: np.ndarray) -> None:
    memoryview(array)[SIZE - 1] = -1.0


def by_numpy_from_a_buffer(array: np.ndarray) -> None:
    np.frombuffer(array, np.uint32)[3] = 0x7F000000


def by_another_type(array: np.ndarray) -> None:
    array.view(np.uint8)[-1] = 1


def by_a_socket(array: np.ndarray) -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"\1" * 1000)
        assert other.recv_into(memoryview(array).cast("B")[5000:], 1000, socket.MSG_WAITALL)


def by_a_pipe(array: np.ndarray) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"\2" * 3000)
    with open(reader, "rb", buffering=0) as file:
        file.readinto(memoryview(array).cast("B")[100:3100])
    os.close(writer)


WAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "item": lambda array: array.__setitem__(SIZE // 2, -1),
    "slice": lambda array: array.__setitem__(slice(None, None, 100), -1),
    "mask": lambda array: array.__setitem__(array > SIZE - 10, -1),
    "out": lambda array: np.add(array, 1, out=array),
    "in_place": lambda array: array.__imul__(2),
    "at": lambda array: np.add.at(array, [5, 5, 9], 1),
    "sort": lambda array: array[::-1].sort(),
    "fill": lambda array: array[10:20].fill(-3),
    "put": lambda array: np.put(array, [3], [-4]),
    "copyto": lambda array: np.copyto(array[100:200], -1),
    "reshaped": lambda array: array.reshape(100, -1).T[5].__setitem__(slice(None), -2),
    "shuffle": lambda array: np.random.default_rng(1).shuffle(array),
    "random": lambda array: np.random.default_rng(1).random(dtype=np.float32, out=array),
    "memoryview": by_a_memoryview,
    "frombuffer": by_numpy_from_a_buffer,
    "other_type": by_another_type,
    "pipe": by_a_pipe,
    "socket": by_a_socket,
    "torch": by_torch,
}


@each_means
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sim_and_host
def test_writes_are_detected(dev: Device, tracking: str, way: str) -> None:
    buf = two_copies(dev, SIZE, tracking)
    buf.copy_from(numbers(SIZE))
    kept = buf.host
    buf.sync_to_device()
    assert buf.state is BufferState.SYNCHRONIZED
    expected = numbers(SIZE)
    WAYS[way](expected)
    WAYS[way](kept)
    assert buf.state is BufferState.HOST_DIRTY
    assert (read_on_device(buf).view("u4") == expected.view("u4")).all()
    assert buf.state is BufferState.SYNCHRONIZED


@each_means
@pytest.mark.parametrize("pinned", [False, True])
def test_files_are_read_into_it(dev: Device, tmp_path: Path, tracking: str, pinned: bool) -> None:
    data = numbers(SIZE)
    (tmp_path / "data").write_bytes(data.tobytes())
    buf = two_copies(dev, SIZE, tracking, pinned=pinned)
    kept = buf.host
    for start in (0, 1, 4000):
        kept[:] = 0
        buf.sync_to_device()
        with (tmp_path / "data").open("rb", buffering=0) as file:
            assert file.readinto(memoryview(kept)[start:]) == 4 * (SIZE - start)
        got = read_on_device(buf)
        assert (got[start:] == data[: SIZE - start]).all()
        assert not got[:start].any()


@each_means
def test_by_its_own_buffer_protocol(dev: Device, tracking: str) -> None:
    buf = two_copies(dev, SIZE, tracking)
    view = memoryview(buf)
    assert (view.format, view.shape, view.readonly) == ("f", (SIZE,), False)
    array = np.asarray(buf)
    assert np.shares_memory(array, buf.host)
    assert np.shares_memory(array, view)
    for number, write in enumerate((view, array, np.frombuffer(buf, np.float32)), 1):
        buf.sync_to_device()
        write[number] = number
        assert buf.state is BufferState.HOST_DIRTY
        assert read_on_device(buf)[number] == number


READS: dict[str, Callable[[np.ndarray], Any]] = {
    "sum": np.sum,
    "copy": np.copy,
    "tobytes": lambda array: array.tobytes(),
    "compare": lambda array: array == array[::-1],
    "item": lambda array: array[17],
    "cast": lambda array: array.astype(np.int64),
}


@each_means
@pytest.mark.parametrize("way", READS)
@pytest.mark.sim_and_host
def test_reads_are_none(dev: Device, tracking: str, way: str) -> None:
    buf = two_copies(dev, SIZE, tracking)
    kept = buf.host
    kept[:] = numbers(SIZE)
    buf.sync_to_device()
    READS[way](kept)
    assert buf.state is BufferState.SYNCHRONIZED
    write_on_device(buf, 3, (5, 10))
    READS[way](kept)
    assert buf.host[4:11].tolist() == [5, 3, 3, 3, 3, 3, 11], "no conflict"


@each_means
def test_marks_are_writes_too(dev: Device, tracking: str) -> None:
    buf = two_copies(dev, SIZE, tracking)
    buf.host[:] = numbers(SIZE)
    buf.sync_to_device()
    buf.mark_host_dirty((10, 20))
    assert buf.dirty_ranges() == (((10, 20),), ())
    assert buf.state is BufferState.HOST_DIRTY
    before = buf.statistics.bytes_to_device
    buf.sync_to_device()
    assert buf.statistics.bytes_to_device - before == 40
    buf.mark_host_dirty()
    assert buf.dirty_ranges().host == ((0, SIZE),)


@pytest.mark.parametrize("size", [1, 1000, 10_000])
def test_small_ones_are_exact(dev: Device, size: int) -> None:
    buf = two_copies(dev, size)
    kept = buf.host
    kept[:] = 1
    buf.sync_to_device()
    assert buf._info()["tracking"] == "bytes"
    kept[size // 2] = 2
    kept[size // 2] = 1
    assert buf.state is BufferState.SYNCHRONIZED, "the same bytes again"
    kept[size // 2] = 2
    assert buf.dirty_ranges().host == ((size // 2, size // 2 + 1),)
    kept[:] = 3
    assert buf.dirty_ranges().host == ((0, size),)
