# SPDX-License-Identifier: Apache-2.0
"""Parts, items, exact access, copies in and out: which ranges are transferred."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import filled
from unified_support import covered, numbers, read_on_device, two_copies, write_on_device

from isthmus import Array, BufferState, UnifiedBuffer
from isthmus.unified import UnifiedPart

if TYPE_CHECKING:
    from isthmus import Device

SHAPE = (200, 500)
MODEL = numbers(100_000).reshape(SHAPE)


def made(dev: Device, tracking: str | None = None, **options: Any) -> Any:
    buf = two_copies(dev, SHAPE, tracking, **options)
    buf.copy_from(MODEL)
    buf.sync_to_device()
    return buf


def test_parts_share_the_state(dev: Device) -> None:
    buf = made(dev)
    part = buf[50:60]
    assert isinstance(part, UnifiedPart)
    assert part.base is buf
    assert (part.shape, part.dtype, part.nbytes, len(part)) == ((10, 500), np.float32, 20_000, 10)
    assert (part.to_numpy() == MODEL[50:60]).all()
    part.host[3] = -1
    assert part.state is buf.state is BufferState.HOST_DIRTY
    assert (read_on_device(part)[3] == -1).all()
    buf.sync_to_device()
    write_on_device(part, -2, (0, 2))
    assert part.dirty_ranges().device == ((0, 1000),)
    assert buf.dirty_ranges().device == ((25_000, 26_000),)
    assert (buf.host[50:52] == -2).all()
    assert buf.dirty_ranges().device == ()


def test_parts_of_parts(dev: Device) -> None:
    buf = made(dev)
    part = buf[20:-20][10:20].reshape(50, 10, 10)[-10:]
    assert part.shape == (10, 10, 10)
    assert (part.host == MODEL[38:40].reshape(10, 10, 10)).all()
    assert np.shares_memory(part.host, buf.host)
    part.host[0, 0, 0] = -1
    assert buf.host[38, 0] == -1
    assert (read_on_device(part) == part.host).all()
    assert buf[:].shape == buf.shape
    assert repr(part) == f"<isthmus.UnifiedPart float32 (10, 10, 10) {part.state} on {dev.filter}>"


def test_a_part_fetches_and_sends_only_itself(dev: Device) -> None:
    buf = made(dev)
    write_on_device(buf, 0)
    buf[10:20].host  # noqa: B018
    assert buf.statistics.bytes_to_host == 10 * 2000
    assert buf.dirty_ranges().device == ((0, 5000), (10_000, 100_000))
    buf.synchronize()
    buf.mark_host_dirty()
    before = buf.statistics.bytes_to_device
    buf[:1].device  # noqa: B018
    assert buf.statistics.bytes_to_device == before + 2000


@pytest.mark.parametrize("wanted", [(50, 2000), (-1, 100), (100, -1), (100_000,), -1])
def test_reshape(dev: Device, wanted: Any) -> None:
    buf = made(dev)
    expected = MODEL.reshape(wanted)
    for part in (buf.reshape(wanted), *([buf.reshape(*wanted)] if wanted != -1 else [])):
        assert part.shape == expected.shape
        assert (part.host == expected).all()
        assert (read_on_device(part) == expected).all()
    assert two_copies(dev, (1, 1)).reshape(()).shape == ()
    assert two_copies(dev, ()).reshape(1).shape == (1,)


def test_items(dev: Device) -> None:
    buf = made(dev)
    write_on_device(buf, -5, (3, 4))
    assert buf[3, 7] == -5
    assert buf[-1, -1] == MODEL[-1, -1]
    assert (buf[0] == MODEL[0]).all()
    assert (buf[::3] == np.vstack([MODEL[0:3:3], [[-5] * 500], MODEL[6::3]])).all()
    assert buf[5:5].shape == (0, 500)
    assert (buf[:, 3] == buf.host[:, 3]).all()
    buf[7, 7] = 77
    buf[10:12] = [[1], [2]]
    buf[..., 499] = 3
    assert buf.state is BufferState.HOST_DIRTY
    got = read_on_device(buf)
    assert (got[7, 7], got[10, 0], got[11, 498], got[199, 499]) == (77, 1, 2, 3)
    buf[1:10] = buf[:9]
    assert (buf.host[2:7] == MODEL[1:6])[:, :499].sum() > 499 * 3, "NumPy sees the overlap"
    assert [len(row) for row in buf] == [500] * 200
    with pytest.raises(IndexError):
        buf[200]
    with pytest.raises(IndexError):
        buf[0, 0, 0] = 1


def test_exact_reads(dev: Device) -> None:
    buf = made(dev)
    write_on_device(buf, -1)
    with buf.host_read((5, 8)) as rows:
        assert rows.shape == (3, 500)
        assert not rows.flags.writeable
        assert (rows == -1).all()
    assert buf.statistics.bytes_to_host == 3 * 2000
    with buf.host_read() as rows:
        assert (rows == -1).all()
    assert buf.state is BufferState.SYNCHRONIZED
    buf.host[100] = 4
    with buf.device_read(slice(100, 101)) as row:
        assert row.shape == (1, 500)
        assert (row.to_numpy() == 4).all()
    assert not {50_000, 50_499} & covered(buf.dirty_ranges().host)


def test_exact_host_writes(dev: Device) -> None:
    buf = made(dev)
    kept = buf.host
    with buf.host_write((10, 20)) as rows:
        rows[2:4] = -1
    assert buf.dirty_ranges() == (((5000, 10_000),), ())
    assert (kept[12:14] == -1).all(), "views show it"
    assert (kept[10:12] == MODEL[10:12]).all(), "what was not written is as it was"
    with pytest.raises(ValueError, match="read-only"):
        rows[0, 0] = 5
    before = buf.statistics.bytes_to_device
    expected = MODEL.copy()
    expected[12:14] = -1
    assert (read_on_device(buf) == expected).all()
    assert buf.statistics.bytes_to_device == before + 20_000
    with pytest.raises(ZeroDivisionError), buf.host_write((0, 1)) as rows:  # noqa: PT012
        rows[0, 0] = 9
        _ = 1 / 0
    assert read_on_device(buf)[0, 0] == 9, "what was written before an error counts"


def test_exact_device_writes(dev: Device) -> None:
    buf = made(dev)
    kept = buf.host
    kept[10, 10] = -1
    with buf.device_write((10, 12)) as rows:
        assert isinstance(rows, Array)
        assert rows.to_numpy()[0, 10] == -1, "what the host owes is sent first"
        rows[1:].fill(-2)
    assert buf.dirty_ranges().device == ((5000, 6000),)
    kept[100] = -3  # in another granule
    assert 50_000 in covered(buf.dirty_ranges().host)
    expected = MODEL.copy()
    expected[10, 10], expected[11], expected[100] = -1, -2, -3
    assert (buf.host == expected).all()
    assert (read_on_device(buf) == expected).all()
    with pytest.raises(ZeroDivisionError), buf.device_write((0, 1)) as rows:  # noqa: PT012
        rows.fill(8)
        _ = 1 / 0
    assert (buf.host[0] == 8).all()


def test_empty_ranges(dev: Device) -> None:
    buf = made(dev)
    for access in (buf.host_read, buf.host_write, buf.device_read, buf.device_write):
        with access((7, 7)) as rows:
            assert rows.shape == (0, 500)
    buf.mark_host_dirty((3, 3))
    buf.mark_device_dirty(slice(3, 3))
    assert buf.sync_to_device((200, 200), blocking=False) is None
    assert buf.state is BufferState.SYNCHRONIZED


SOURCES: dict[str, tuple[Any, Any]] = {
    "array": (MODEL + 1, MODEL + 1),
    "doubles": (MODEL.astype(np.float64) / 4, MODEL / 4),
    "integers": (MODEL.astype(np.int64), MODEL),
    "list": (MODEL.tolist(), MODEL),
    "scalar": (2.5, np.full(SHAPE, 2.5)),
    "integer": (3, np.full(SHAPE, 3)),
    "true": (True, np.ones(SHAPE)),
    "row": (MODEL[3], np.broadcast_to(MODEL[3], SHAPE)),
    "column": (MODEL[:, :1], np.broadcast_to(MODEL[:, :1], SHAPE)),
    "strided": (np.repeat(MODEL, 2, axis=1)[:, ::2], MODEL),
    "fortran": (np.asfortranarray(MODEL), MODEL),
    "big_endian": (MODEL.astype(">f4"), MODEL),
    "memoryview": (memoryview(MODEL), MODEL),
    "backwards": (MODEL[::-1, ::-1], MODEL[::-1, ::-1]),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.sim_and_host
def test_copy_from(dev: Device, source: str) -> None:
    given, expected = SOURCES[source]
    buf = made(dev)
    kept = buf.host
    buf.fill(-9).sync_to_device()
    write_on_device(buf, -1)  # this write is dropped
    assert buf.copy_from(given) is buf
    assert buf.state is BufferState.HOST_DIRTY
    assert (kept == expected).all()
    assert (read_on_device(buf) == expected).all()


def test_copy_from_other_buffers(dev: Device) -> None:
    source, target = made(dev), two_copies(dev, SHAPE)
    write_on_device(source, -1, (0, 1))
    target.copy_from(source)
    assert (read_on_device(target) == np.vstack([[[-1] * 500], MODEL[1:]])).all()
    assert target.copy_from(source[5:6]).host[77, 2] == MODEL[5, 2]
    array = Array(filled(MODEL, kind=dev.kinds[0], queue=source.queue), SHAPE)
    assert (target.copy_from(array).host == MODEL).all()


@pytest.mark.parametrize("size", [50, 100_000])
def test_copy_from_itself(dev: Device, size: int) -> None:
    buf = two_copies(dev, size).copy_from(numbers(size))
    assert (buf.copy_from(buf.host[::-1]).host == numbers(size)[::-1]).all()
    assert (buf.copy_from(memoryview(buf)[::-1]).host == numbers(size)).all()
    with buf.host_read() as array:
        assert (buf.copy_from(array[::-1]).host == numbers(size)[::-1]).all()
    buf.copy_from(numbers(size))
    buf[1:].copy_from(buf[:-1])
    assert buf.host.tolist() == [1, *range(1, size)]
    buf[:-1].copy_from(np.frombuffer(buf, np.float32)[1:])
    assert buf.host[:5].tolist() == [1, 2, 3, 4, 5]


def test_parts_are_copied_to(dev: Device) -> None:
    buf = made(dev)
    buf[10:20].copy_from(7)
    assert buf.dirty_ranges().host == ((5000, 10_000),)
    buf[20:30].fill(8)
    buf[30:40].zeros()
    got = read_on_device(buf)
    assert (got[:10] == MODEL[:10]).all()
    assert got[10:40:5, 0].tolist() == [7, 7, 8, 8, 0, 0]


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "<u2", "i8", "u8", "f2", "f8", "D"])
@pytest.mark.sim_and_host
def test_fill_and_zeros(dev: Device, dtype: str) -> None:
    buf = UnifiedBuffer(100, dtype, device=dev)
    assert buf.fill(True) is buf
    assert (buf.host == 1).all()
    if dtype != "?":
        assert (buf.fill(100).host == 100).all()
        assert (buf.copy_from(list(range(100))).host == np.arange(100)).all()
    assert not buf.zeros().host.any()
    pair = UnifiedBuffer(3, [("a", "i4"), ("b", "f8")], device=dev)
    assert pair.zeros().host["b"].tolist() == [0, 0, 0]


def test_copy_to(dev: Device) -> None:
    buf = made(dev)
    write_on_device(buf, -1, (0, 1))
    for target in (np.empty(SHAPE, np.float32), np.empty(SHAPE, "F"), np.empty((2, *SHAPE), "f8")):
        buf.copy_to(target)
        assert (target[..., 0, :] == -1).all()
        assert (target[..., 1:, :] == MODEL[1:]).all()
    row = np.empty((10, 500), np.float32)
    buf[5:15].copy_to(row)
    assert (row == MODEL[5:15]).all()
    for bad, error in ((np.empty(SHAPE, np.int32), TypeError), (np.empty(3, "f4"), ValueError)):
        with pytest.raises(error):
            buf.copy_to(bad)


def test_as_an_array(dev: Device) -> None:
    buf = made(dev)
    write_on_device(buf, -1, (0, 1))
    array = np.asarray(buf)
    assert (array[0] == -1).all()
    assert np.shares_memory(array, buf.host)
    assert not np.shares_memory(np.array(buf), buf.host)
    assert np.asarray(buf, np.float64).dtype == np.float64
    assert buf.__array__(copy=True).base is None
    with pytest.raises(ValueError, match="copy"):
        buf.__array__(np.int32, copy=False)
    assert np.sum(buf) == array.sum()
    assert np.asarray(buf[3:5]).shape == (2, 500)
    assert np.shares_memory(np.asarray(buf[3:5]), array)
    assert np.concatenate([buf, buf[:1]]).shape == (201, 500)
