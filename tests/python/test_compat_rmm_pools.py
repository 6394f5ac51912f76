"""RMM's resources that keep memory and cut it up: sizes, limits, bins, what they stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from compat_rmm_support import on, stream
from support import message_has, sim, until

import isthmus.compat.rmm as rmm
from isthmus import Device
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.memory import PoolResource

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["on", "stream"]
pytestmark = pytest.mark.two_places


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        (1 << 20, 1 << 20),
        ("1MiB", 1 << 20),
        ("1 mib", 1 << 20),
        ("1024kib", 1 << 20),
        ("2097152", 1 << 21),
        ("1.5MiB", 3 << 19),
        ("2.MB", 2_000_000),
        ("1000000 b", 1_000_000),
        ("0.001gb", 1_000_000),
    ],
)
@pytest.mark.one_place
def test_sizes_as_text(on: Device, text: Any, nbytes: int) -> None:
    resource = mr.PoolMemoryResource(mr.CudaMemoryResource(), text, text)
    assert resource.pool_size() >= nbytes // 2
    DeviceBuffer(size=nbytes // 2, mr=resource)
    with pytest.raises(MemoryError):
        DeviceBuffer(size=nbytes + (2 << 20), mr=resource)


@pytest.mark.parametrize(
    "text", ["2k", "1 g", "", " 1", "-1", "1e6", "1MiB!", "MiB", "1 KiBi", "٣"]
)
@pytest.mark.one_place
def test_text_that_is_no_size(on: Device, text: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: mr.PoolMemoryResource(mr.CudaMemoryResource(), 0, text),
        lambda: mr.ArenaMemoryResource(mr.CudaMemoryResource(), text),
        lambda: rmm.reinitialize(pool_allocator=True, maximum_pool_size=text),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="no number of bytes") as told:
            call()
        message_has(told, [repr(text)])


def test_text_of_too_many(on: Device) -> None:
    with pytest.raises(OverflowError, match="initial_pool_size"):
        mr.PoolMemoryResource(mr.CudaMemoryResource(), "99999pib")
    for text in ("1" * 400, "9" * 5000, "1." + "1" * 5000):
        with pytest.raises(ValueError, match=r"initial_pool_size.*no number of bytes"):
            mr.PoolMemoryResource(mr.CudaMemoryResource(), text)


def test_large_sizes_as_text_are_exact(on: Device) -> None:
    with pytest.raises(ValueError, match="size 9007199254740993 exceeds"):
        mr.PoolMemoryResource(mr.CudaMemoryResource(), "9007199254740993", 1)
    with pytest.raises(ValueError, match="size 9007199254740993000 exceeds"):
        mr.PoolMemoryResource(mr.CudaMemoryResource(), "9007199254740.993MB", 1)


def test_pool(on: Device) -> None:
    below = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    pool = mr.PoolMemoryResource(below, "1MiB", "4MiB")
    assert pool.pool_size() == below.allocation_counts.current_bytes >= 1 << 20
    held = [DeviceBuffer(size=1 << 20, mr=pool) for _ in range(3)]
    assert 3 << 20 <= pool.pool_size() <= 4 << 20
    with pytest.raises(MemoryError, match="4 MiB"):
        DeviceBuffer(size=2 << 20, mr=pool)
    held.clear()
    DeviceBuffer(size=1 << 20, mr=pool)
    assert below.allocation_counts.current_bytes == pool.pool_size()


@pytest.mark.parametrize("error", [RuntimeError, ValueError])
@pytest.mark.one_place
def test_pool_sizes_that_contradict(on: Device, error: type[Exception]) -> None:
    with pytest.raises(error, match="2097152 exceeds maximum_pool_size 1048576"):
        mr.PoolMemoryResource(mr.CudaMemoryResource(), "2MiB", "1MiB")
    with pytest.raises(error, match="maximum_pool_size must be 1 or more"):
        mr.PoolMemoryResource(mr.CudaMemoryResource(), 0, 0)
    with pytest.raises(error, match="arena_size must be 1 or more"):
        mr.ArenaMemoryResource(mr.CudaMemoryResource(), 0)


@pytest.mark.parametrize(
    "below",
    [
        "PoolMemoryResource",
        "ArenaMemoryResource",
        "BinningMemoryResource",
        "StatisticsResourceAdaptor",
        "TrackingResourceAdaptor",
        "PrefetchResourceAdaptor",
    ],
)
def test_pools_over_anything(on: Device, below: str) -> None:
    for first in (mr.CudaMemoryResource(), mr.PoolMemoryResource(mr.CudaMemoryResource())):
        pool = mr.PoolMemoryResource(getattr(mr, below)(first), maximum_pool_size="8MiB")
        assert DeviceBuffer(size=100, mr=pool).size == 100
        assert pool.pool_size() >= 100
        with pytest.raises(MemoryError):
            pool.allocate(9 << 20)


def test_async(on: Device) -> None:
    resource = mr.CudaAsyncMemoryResource(initial_pool_size="1MiB", release_threshold=0)
    assert resource.resource.held_bytes >= 1 << 20
    assert isinstance(resource.resource, PoolResource)
    assert resource.resource.soft_limit_bytes == 1
    assert DeviceBuffer(size=100, mr=resource).buffer.kind == "device"
    with pytest.raises(RuntimeError, match="fabric"):
        mr.CudaAsyncMemoryResource(enable_fabric=True)
    with pytest.raises(OverflowError, match="release_threshold"):
        mr.CudaAsyncMemoryResource(release_threshold=-1)
    with pytest.raises(ValueError, match="initial_pool_size"):
        mr.CudaAsyncMemoryResource("2k")
    if "ipc" not in on.capabilities:
        with pytest.raises(RuntimeError, match="ipc"):
            mr.CudaAsyncMemoryResource(enable_ipc=True)
        return
    shared = DeviceBuffer(size=100, mr=mr.CudaAsyncMemoryResource(enable_ipc=True))
    assert shared.buffer.ipc_handle().nbytes == 100


def test_async_managed(on: Device) -> None:
    resource = mr.experimental.CudaAsyncManagedMemoryResource()
    assert DeviceBuffer(size=100, mr=resource).buffer.kind == "shared"
    with pytest.raises(RuntimeError, match="no handle"):
        resource.pool_handle()


@pytest.mark.parametrize("bad", [None, 3, "pool", object()])
@pytest.mark.one_place
def test_async_view_refuses(on: Device, bad: Any) -> None:
    with pytest.raises(ValueError, match="pool_handle must be"):
        mr.CudaAsyncViewMemoryResource(bad)


def test_arena(on: Device, caplog: pytest.LogCaptureFixture) -> None:
    for dumps in (False, True):
        arenas = mr.ArenaMemoryResource(mr.CudaMemoryResource(), "4MiB", dumps)
        kept = DeviceBuffer(size=1000, mr=arenas)
        caplog.clear()
        with caplog.at_level("ERROR", "isthmus.compat.rmm"), pytest.raises(MemoryError):
            DeviceBuffer(size=8 << 20, mr=arenas)
        texts = [record.getMessage() for record in caplog.records]
        # Asked again where memory of others was on its way back, it tells again.
        assert len(set(texts)) == dumps
        assert all(str(8 << 20) in text and on.filter in text for text in texts)
        del kept


def test_fixed_size(on: Device) -> None:
    below = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    fixed = mr.FixedSizeMemoryResource(below, 4096, 8)
    assert below.allocation_counts.total_count == 0  # RMM's takes the blocks here
    held = [DeviceBuffer(size=size, mr=fixed) for size in (1, 4096, 4000)]
    assert below.allocation_counts.current_count == 1
    assert below.allocation_counts.current_bytes >= 8 * 4096
    with pytest.raises(MemoryError, match="4097"):
        DeviceBuffer(size=4097, mr=fixed)
    with pytest.raises(ValueError, match="0 bytes"):
        mr.FixedSizeMemoryResource(below, 0)
    del held


def test_binning(on: Device) -> None:
    above = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    bins = mr.BinningMemoryResource(above, 10, 12)
    assert bins.bin_mrs == []
    DeviceBuffer(size=5000, mr=bins)
    assert above.allocation_counts.total_bytes == 5000
    mine = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    bins.add_bin(8192, mine)
    bins.add_bin(1 << 14)
    assert bins.bin_mrs == [mine]
    DeviceBuffer(size=5000, mr=bins)
    assert mine.allocation_counts.total_bytes == 5000
    other = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    held = DeviceBuffer(size=6000, mr=bins)
    bins.add_bin(8192, other)
    assert bins.bin_mrs == [mine, other]
    DeviceBuffer(size=5000, mr=bins)
    assert other.allocation_counts.total_bytes == 5000
    held.free()
    assert until(lambda: mine.allocation_counts.current_bytes == 0)


def test_binning_refuses(on: Device) -> None:
    bins = mr.BinningMemoryResource(mr.CudaMemoryResource())
    for bad in (300, -2, 63):
        with pytest.raises(OverflowError, match=str(bad)):
            mr.BinningMemoryResource(mr.CudaMemoryResource(), bad, 10)
    with pytest.raises(TypeError, match="bin_resource must be"):
        bins.add_bin(1024, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="0 bytes"):
        bins.add_bin(0)
    assert DeviceBuffer(size=10, mr=bins).size == 10
    with pytest.raises(OverflowError):
        mr.LimitingResourceAdaptor(bins, -1)
    bins.add_bin(1024)  # nothing stands on it
    mr.StatisticsResourceAdaptor(bins)
    with pytest.raises(RuntimeError, match="stands on"):
        bins.add_bin(1024)
    below = mr.BinningMemoryResource(mr.CudaMemoryResource())
    mr.BinningMemoryResource(mr.CudaMemoryResource()).add_bin(1024, below)
    with pytest.raises(RuntimeError, match="stands on"):
        below.add_bin(1024)


def test_bins_of_another_device() -> None:
    with Device("host"):
        other = mr.CudaMemoryResource()
    with sim():
        bins = mr.BinningMemoryResource(mr.CudaMemoryResource())
        with pytest.raises(ValueError, match="host:cpu:0"):
            bins.add_bin(1024, other)
        bins.add_bin(1024)
