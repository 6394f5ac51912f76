# SPDX-License-Identifier: Apache-2.0
"""get_accelerator(): devices by number, and their free memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support import has_cuda, message_has, python, sim, trim_default_pools, until

import isthmus
from isthmus import Buffer, Device, Queue
from isthmus.memory import PoolResource, StatisticsResource
from isthmus.unified.accelerator import MemoryInfo, get_accelerator
from isthmus.unified.buffer import UnifiedBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20


def test_memory_info_unpacks_and_answers_to_keys() -> None:
    info = MemoryInfo(30, 100)
    free, total = info
    assert (free, total) == (30, 100) == info
    assert (info.free, info.total, info.used) == (30, 100, 70)
    assert (info["free"], info["total"], info["used"]) == (30, 100, 70)
    assert (info[0], info[-1], info[:1]) == (30, 100, (30,))
    assert dict(info) == {"free": 30, "total": 100, "used": 70}
    assert repr(info) == "MemoryInfo(free=30, total=100, used=70)"
    with pytest.raises(KeyError, match=r"count.*free, total, used"):
        info["count"]


def used_by(device: Device, make: Callable[[], object]) -> int:
    """Measures use as the document's monitoring code does, while the result of `make` is alive."""
    accelerator = get_accelerator()
    trim_default_pools(device)
    free_before, total = accelerator.get_memory_info(device)
    made = make()
    free_after, total_after = accelerator.get_memory_info(device)
    assert total == total_after
    assert 0 <= free_after <= free_before <= total
    del made
    return free_before - free_after


def touched(device: Device) -> UnifiedBuffer:
    buf = UnifiedBuffer((10_000_000,), dtype=np.float32, device=device)
    _ = buf.device
    return buf


def test_the_monitoring_code_prints_what_was_allocated(dev: Device) -> None:
    # One success suffices, because other processes may use the same GPU.
    assert until(lambda: 40_000_000 <= used_by(dev, lambda: touched(dev)) <= 48_000_000)


def test_what_a_pool_keeps_is_free(dev: Device) -> None:
    pool = PoolResource("device", dev, initial_bytes=64 * MIB)
    with isthmus.using(StatisticsResource(pool)):
        one = used_by(dev, lambda: Buffer(20 * MIB, device=dev))
        assert 20 * MIB <= one <= 24 * MIB
        assert used_by(dev, lambda: pool.allocate(20 * MIB).free()) == 0


def test_memory_by_number_is_that_devices() -> None:
    accelerator = get_accelerator()
    for number, device in enumerate(accelerator.devices):
        info = accelerator.get_memory_info(number)
        assert info.total > 0
        assert info.total == accelerator.get_memory_info(device).total
    assert accelerator.get_memory_info().total > 0


def test_devices() -> None:
    accelerator = get_accelerator()
    assert get_accelerator() is accelerator
    assert list(accelerator.devices) == isthmus.devices()
    assert accelerator.device_count == len(isthmus.devices()) >= 1
    assert accelerator.get_device(0) == isthmus.devices()[0]
    assert accelerator.get_device("host") == Device("host")
    assert accelerator.current_device == isthmus.current_device()
    assert accelerator.cuda_available == has_cuda()
    assert "host:cpu:0" in repr(accelerator)


@pytest.mark.parametrize("number", [-1, 1000])
def test_a_number_that_is_not_there(number: int) -> None:
    accelerator = get_accelerator()
    calls = (
        accelerator.get_device,
        accelerator.set_device,
        accelerator.get_memory_info,
        accelerator.synchronize,
    )
    for call in calls:
        with pytest.raises(ValueError) as caught:
            call(number)
        message_has(caught, [number, f"0 to {accelerator.device_count - 1}"])


def test_no_number() -> None:
    with pytest.raises(TypeError):
        get_accelerator().get_device(1.5)  # type: ignore[arg-type]


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


def test_set_device() -> None:
    before = isthmus.current_device()
    accelerator, other = get_accelerator(), sim()

    def choose() -> None:
        assert accelerator.set_device(other) == other
        assert isthmus.current_device() == other == accelerator.current_device
        assert Buffer(8).device == other
        accelerator.select_device("host")
        assert isthmus.current_device() == Device("host")
        with other:
            assert accelerator.current_device == other
        assert accelerator.set_device(0) == isthmus.devices()[0] == isthmus.current_device()

    in_a_thread(choose)
    assert isthmus.current_device() == before


def test_set_device_within_with() -> None:
    accelerator, other = get_accelerator(), sim()

    def choose() -> None:
        accelerator.set_device(other)
        with (
            Device("host") as host,
            pytest.raises(RuntimeError, match="reverse order"),
        ):
            accelerator.set_device(0)
        assert host.backend == "host"
        assert isthmus.current_device() == other

    in_a_thread(choose)


def test_synchronize(dev: Device, gate: isthmus.Event) -> None:
    accelerator, queue = get_accelerator(), Queue(dev)
    ran: list[str] = []
    if "run_functions" in dev.capabilities:
        dev.default_queue.submit(lambda: ran.append("default"), after=[gate])
        queue.submit(lambda: ran.append("current"), after=[gate])
        threading.Timer(0.05, gate.complete).start()
        with queue:
            accelerator.synchronize()
        assert sorted(ran) == ["current", "default"]
    accelerator.synchronize(dev)
    assert dev.default_queue.idle


def test_drivers_are_opened_on_first_use() -> None:
    python("""
import isthmus.unified.accelerator
accelerator = isthmus.unified.accelerator.get_accelerator()
mapped = open("/proc/self/maps").read()
assert "opencl" not in mapped.lower() and "libcuda" not in mapped
assert accelerator.device_count
""")
