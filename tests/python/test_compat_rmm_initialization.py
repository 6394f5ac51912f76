# SPDX-License-Identifier: Apache-2.0
"""Reinitializing memory by RMM's interface: options, hooks, rejected arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from compat_rmm_support import on
from support import has_gpu, python

import isthmus.compat.rmm as rmm
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.memory import live

if TYPE_CHECKING:
    from pathlib import Path

    from isthmus import Device

__all__ = ["on"]
pytestmark = pytest.mark.sim_and_host


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("pool", [False, True])
def test_what_is_chosen(on: Device, pool: bool, managed: bool) -> None:
    rmm.reinitialize(pool_allocator=pool, managed_memory=managed)
    resource: Any = mr.get_current_device_resource()
    wanted = mr.ManagedMemoryResource if managed else mr.CudaMemoryResource
    if pool:
        assert isinstance(resource, mr.PoolMemoryResource)
        resource = resource.get_upstream()
    assert type(resource) is wanted
    made = DeviceBuffer.to_device(b"abc")
    assert made.buffer.kind == ("shared" if managed else "device")
    assert made.tobytes() == b"abc"


def test_sizes(on: Device) -> None:
    rmm.reinitialize(pool_allocator=True, initial_pool_size="2MiB", maximum_pool_size=4 << 20)
    pool: Any = mr.get_current_device_resource()
    assert pool.pool_size() >= 2 << 20
    with pytest.raises(MemoryError):
        DeviceBuffer(size=8 << 20)
    rmm.reinitialize(initial_pool_size="1MiB", maximum_pool_size="1KiB")  # ignored without a pool
    assert DeviceBuffer(size=2 << 20).size == 2 << 20


def test_bad_arguments_change_nothing(on: Device) -> None:
    rmm.reinitialize(pool_allocator=True)
    before = mr.get_current_device_resource()
    bad: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"devices": 1000}, ValueError),
        ({"devices": [0, 1000]}, ValueError),
        ({"devices": -1}, OverflowError),
        ({"devices": "a"}, TypeError),
        ({"devices": 0.5}, TypeError),
        ({"initial_pool_size": "2k"}, ValueError),
        ({"maximum_pool_size": "2k"}, ValueError),
        ({"maximum_pool_size": -1}, OverflowError),
        ({"initial_pool_size": 1.5}, TypeError),
        ({"initial_pool_size": 4 << 20, "maximum_pool_size": "2MiB"}, RuntimeError),
        ({"logging": True}, ValueError),
    ]
    for arguments, error in bad:
        with pytest.raises(error):
            rmm.reinitialize(pool_allocator=True, **arguments)
        assert mr.get_current_device_resource() is before


def test_bad_arguments_call_no_hooks(on: Device, tmp_path: Path) -> None:
    called: list[int] = []
    rmm.register_reinitialize_hook(called.append, 1)
    try:
        for bad in (
            {"devices": [0, 1000]},
            {"pool_allocator": True, "maximum_pool_size": "2k"},
            {"logging": True, "log_file_name": str(tmp_path / "none" / "log.csv")},
        ):
            with pytest.raises(ValueError, match=r"1000|2k|none"):
                rmm.reinitialize(**bad)  # type: ignore[arg-type]
    finally:
        rmm.unregister_reinitialize_hook(called.append)
    assert called == []


def test_a_failure_leaves_the_former_ones(on: Device, tmp_path: Path) -> None:
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource())
    counted = mr.StatisticsResourceAdaptor(pool)
    mr.set_current_device_resource(counted)
    with pytest.raises(MemoryError):
        rmm.reinitialize(pool_allocator=True, initial_pool_size="4PiB")
    assert mr.get_current_device_resource() is counted
    (tmp_path / "a.dev0.csv").mkdir()
    log = mr.LoggingResourceAdaptor(counted, tmp_path / "b.csv")
    mr.set_current_device_resource(mr.LimitingResourceAdaptor(log, 1 << 20))
    with pytest.raises(ValueError, match=r"a\.dev0\.csv"):
        rmm.reinitialize(logging=True, log_file_name=tmp_path / "a.csv")
    assert mr.get_current_device_resource() is counted
    assert DeviceBuffer(size=10).mr is counted


def test_a_log_below_other_resources_ends(on: Device, tmp_path: Path) -> None:
    rmm.reinitialize(logging=True, log_file_name=tmp_path / "log.csv")
    log = mr.get_current_device_resource()
    mr.set_current_device_resource(mr.LimitingResourceAdaptor(log, 1 << 20))
    del log
    rmm.reinitialize(logging=True, log_file_name=tmp_path / "log.csv", devices=[0, 0])
    assert isinstance(mr.get_current_device_resource(), mr.LoggingResourceAdaptor)


def test_devices(on: Device) -> None:
    for devices in (None, 0, [0], (0,), {0}):
        rmm.reinitialize(pool_allocator=True, devices=devices)
        assert isinstance(mr.get_per_device_resource(0), mr.PoolMemoryResource)
    rmm.reinitialize(devices=[])
    assert isinstance(mr.get_per_device_resource(0), mr.CudaMemoryResource)


def test_buffers_outlive_it(on: Device) -> None:
    """RMM calls the use of such buffers undefined."""
    rmm.reinitialize(pool_allocator=True)
    made = DeviceBuffer.to_device(b"abc")
    rmm.reinitialize()
    other = DeviceBuffer.to_device(b"xyz")
    assert (made.tobytes(), other.tobytes()) == (b"abc", b"xyz")
    made.resize(100)
    assert made.tobytes()[:3] == b"abc"
    del made
    assert other.tobytes() == b"xyz"
    assert live()[0] >= 1


def test_hooks(on: Device) -> None:
    called: list[Any] = []

    def first(*args: Any, **kwargs: Any) -> None:
        called.append(("first", args, kwargs))

    def second() -> None:
        called.append(("second", mr.get_current_device_resource()))

    rmm.reinitialize(pool_allocator=True)
    pool = mr.get_current_device_resource()
    assert rmm.register_reinitialize_hook(first, 1, two=2) is first
    rmm.register_reinitialize_hook(second)
    rmm.register_reinitialize_hook(first)
    rmm.reinitialize()
    assert called == [("first", (), {}), ("second", pool), ("first", (1,), {"two": 2})]
    rmm.unregister_reinitialize_hook(first)
    called.clear()
    rmm.reinitialize()
    assert [name for name, *_ in called] == ["second"]
    rmm.unregister_reinitialize_hook(second)
    rmm.unregister_reinitialize_hook(second)
    called.clear()
    rmm.reinitialize()
    assert called == []
    with pytest.raises(TypeError, match="callable"):
        rmm.register_reinitialize_hook(3)  # type: ignore[arg-type]


def test_a_hook_that_fails(on: Device) -> None:
    def fail() -> None:
        raise KeyError("hook")

    rmm.reinitialize(pool_allocator=True)
    before = mr.get_current_device_resource()
    rmm.register_reinitialize_hook(fail)
    try:
        with pytest.raises(KeyError, match="hook"):
            rmm.reinitialize()
    finally:
        rmm.unregister_reinitialize_hook(fail)
    assert mr.get_current_device_resource() is before


def test_a_hook_may_register_and_reinitialize(on: Device) -> None:
    def once() -> None:
        rmm.unregister_reinitialize_hook(once)
        rmm.reinitialize(managed_memory=True)

    rmm.register_reinitialize_hook(once)
    rmm.reinitialize(pool_allocator=True)
    assert isinstance(mr.get_current_device_resource(), mr.PoolMemoryResource)


def test_error_class() -> None:
    told = rmm.RMMError(2, "no memory")
    assert (told.errcode, str(told)) == (2, "no memory")


def test_the_default_device() -> None:
    """CUDA's first device if there is one, or else Isthmus' current device."""
    program = """
import isthmus
from isthmus.compat import rmm
device = rmm.DeviceBuffer(size=1).buffer.device
found = isthmus.devices("cuda")
assert device == (found[0] if found else isthmus.current_device())
"""
    python(program)


def test_at_the_end_of_the_process(tmp_path: Path) -> None:
    """The process ends with a pool, buffers and addresses that were not freed, and a log."""
    program = """
import sys
from isthmus import Device
from isthmus.compat import rmm
with Device("host"):
    rmm.reinitialize(pool_allocator=True, logging=True, log_file_name=sys.argv[1])
    kept = [rmm.DeviceBuffer(size=n) for n in range(100)]
    address = rmm.mr.get_current_device_resource().allocate(100)
"""
    python(program, str(tmp_path / "log.csv"))
    assert len((tmp_path / "log.dev0.csv").read_text().splitlines()) >= 101


def test_the_import_opens_no_driver() -> None:
    python("""
import isthmus.compat.rmm, isthmus.compat.rmm.mr, isthmus.compat.rmm.statistics, sys
libraries = open("/proc/self/maps").read()
assert "libOpenCL" not in libraries and "libcuda.so" not in libraries
assert "cupy" not in sys.modules and "torch" not in sys.modules
""")


@pytest.mark.skipif(not has_gpu(), reason="no CUDA device")
def test_cuda_is_the_default() -> None:
    assert DeviceBuffer(size=1).buffer.device.filter == "cuda:gpu:0"
    rmm.reinitialize(devices=[])
