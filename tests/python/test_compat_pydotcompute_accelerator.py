# SPDX-License-Identifier: Apache-2.0
"""get_accelerator() of isthmus.compat.pydotcompute: devices by number, and free memory."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import has_cuda, has_gpu, message_has, sim

import isthmus
from isthmus import Device
from isthmus.compat.pydotcompute import Accelerator, UnifiedBuffer, get_accelerator
from isthmus.compat.pydotcompute.core.accelerator import (
    DeviceProperties,
    DeviceType,
    MemoryInfo,
    cuda_available,
    metal_available,
)

if TYPE_CHECKING:
    from collections.abc import Callable

accelerator = get_accelerator()


def in_a_thread(what: Callable[[], None]) -> None:
    """Runs `what` on a new thread, whose settings end with it."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            what()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def test_there_is_one() -> None:
    assert Accelerator() is Accelerator() is get_accelerator()


def test_devices() -> None:
    devices = accelerator.devices
    assert devices == [accelerator.get_device(number) for number in range(len(devices))]
    assert [each.device_id for each in devices] == list(range(accelerator.device_count))
    assert all(each.is_available and each.name and each.total_memory > 0 for each in devices)
    assert [each.device_type for each in devices].count(DeviceType.CPU) == 1
    assert devices[-1].device_type is DeviceType.CPU
    devices.clear()  # the caller's own copy of the list
    assert accelerator.device_count >= 1


def test_what_is_available() -> None:
    assert accelerator.cuda_available == cuda_available() == has_cuda()
    assert not accelerator.metal_available
    assert not metal_available()
    types = {each.device_type for each in accelerator.devices}
    assert (DeviceType.CUDA in types) == has_cuda()


def test_the_processors_properties() -> None:
    cpu = accelerator.devices[-1]
    assert cpu.name == Device("host").name
    assert (cpu.compute_capability, cpu.compute_capability_str) == (None, "N/A")
    assert cpu.multiprocessor_count == Device("host").compute_units
    assert (cpu.max_threads_per_block, cpu.warp_size) == (1, 1)
    assert cpu.max_block_dims == cpu.max_grid_dims == (1, 1, 1)
    assert cpu.total_memory_gb == cpu.total_memory / 1024**3
    with pytest.raises(dataclasses.FrozenInstanceError):
        cpu.name = "other"  # type: ignore[misc]


@pytest.mark.skipif(not has_cuda(), reason="no CUDA device")
def test_a_cuda_devices_properties() -> None:
    gpu = next(each for each in accelerator.devices if each.device_type is DeviceType.CUDA)
    assert gpu.compute_capability is not None
    major, minor = gpu.compute_capability
    assert gpu.compute_capability_str == f"{major}.{minor}"
    if has_gpu():
        assert (gpu.warp_size, gpu.max_threads_per_block) == (32, 1024)
        assert gpu.max_block_dims == (1024, 1024, 64)
        assert gpu.max_grid_dims == (2**31 - 1, 65535, 65535)


@pytest.mark.parametrize("number", [-1, 1000])
def test_a_number_that_is_not_there(number: int) -> None:
    calls: list[Callable[[int], Any]] = [
        accelerator.get_device,
        accelerator.set_device,
        accelerator.select_device,
        accelerator.get_memory_info,
    ]
    for call in calls:
        with pytest.raises(ValueError) as told:
            call(number)
        message_has(told, [number, f"0-{accelerator.device_count - 1}"])


@pytest.mark.parametrize("number", ["0", 0.0, None])
def test_no_number(number: Any) -> None:
    for call in (accelerator.get_device, accelerator.set_device):
        with pytest.raises(TypeError):
            call(number)


def test_current_device(dev: Device) -> None:
    with dev:
        current = accelerator.current_device
    if dev.type == "cpu":  # a driver's CPU device counts as the host here
        assert current == accelerator.devices[-1]
    elif dev.backend == "sim":
        assert (current.device_id, current.device_type) == (-1, DeviceType.OTHER)
    else:
        assert current in accelerator.devices
    assert isinstance(current, DeviceProperties)


def test_set_device() -> None:
    def choose() -> None:
        with sim():
            pass
        assert accelerator.set_device(accelerator.device_count - 1) is None
        assert accelerator.current_device == accelerator.devices[-1]
        assert UnifiedBuffer(3).queue.device == Device("host")
        accelerator.select_device(0)
        assert accelerator.current_device == accelerator.devices[0]

    before = accelerator.current_device
    in_a_thread(choose)
    assert accelerator.current_device == before


def test_memory_info() -> None:
    info = MemoryInfo(30, 100)
    free, total = info
    assert (free, total) == (30, 100) == info
    assert (info["free"], info["total"], info["used"]) == (30, 100, 70)
    assert all(key in info for key in ("free", "total", "used"))
    assert "count" not in info
    assert 30 in info
    assert (info.get("used"), info.get("count"), info.get("count", 5)) == (70, None, 5)
    assert dict(info) == dict(info.items()) == {"free": 30, "total": 100, "used": 70}
    assert info.values() == (30, 100, 70)
    with pytest.raises(KeyError, match=r"count.*free, total, used"):
        info["count"]


def test_memory_of_devices() -> None:
    for number in range(accelerator.device_count):
        free, total = accelerator.get_memory_info(number)
        assert 0 < free <= total == accelerator.get_memory_info(device_id=number)["total"]
    assert accelerator.get_memory_info().total > 0


def test_memory_of_the_current_device() -> None:
    with sim(capacity="64MiB"):
        before = accelerator.get_memory_info()
        assert before.total == 64 << 20
        kept = UnifiedBuffer(1 << 20)
        _ = kept.device
        assert before.free - accelerator.get_memory_info().free >= 4 << 20


def test_synchronize(dev: Device) -> None:
    buf: Any = UnifiedBuffer(100_000, np.float32, device=dev, separate=True)
    buf.fill(1).sync_to_device()
    last = dev.default_queue.fence()  # a queue whose handle was exported is never idle itself
    with dev:
        accelerator.synchronize()
    if dev.type != "cpu" or dev.backend == "host":
        assert last.done


def test_repr() -> None:
    told = repr(accelerator)
    assert f"devices={accelerator.device_count}" in told
    assert accelerator.current_device.name in told
    assert isthmus.get_accelerator() is not accelerator


def test_a_subclass_has_its_own_instance() -> None:
    class Named(Accelerator):
        pass

    before = get_accelerator()
    assert type(Named()) is Named
    assert Named() is Named() is not before
    assert type(before) is Accelerator
    assert get_accelerator() is before
