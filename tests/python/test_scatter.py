# SPDX-License-Identifier: Apache-2.0
"""scatter() and gather(): split like numpy.array_split, on several devices concurrently."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import has_cuda, has_gpu, is_memory_released, message_has, noise, sim, until

import isthmus
from isthmus import Array, Buffer, Device, Queue
from isthmus.memory import LimitResource, ProviderResource, StatisticsResource, live
from isthmus.testing import sim_calls, sim_configure, sim_state

if TYPE_CHECKING:
    from collections.abc import Callable

SEVERAL = [1, 2, 3, 5]
HOST = Device("host")


def several(count: int, **options: Any) -> list[Device]:
    return [sim(effect="late", **options) for _ in range(count)]


@pytest.mark.parametrize("count", SEVERAL)
@pytest.mark.parametrize("length", [0, 1, 2, 7, 10])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_are_numpys(count: int, length: int, axis: int) -> None:
    shape = [3, 4, 5]
    shape[axis] = length
    data = noise(int(np.prod(shape))).reshape(shape)
    devices = several(count)
    parts = isthmus.scatter(data, devices, axis)
    expected = np.array_split(data, count, axis)
    assert [part.device for part in parts] == devices
    for part, piece in zip(parts, expected, strict=True):
        assert part.shape == piece.shape
        assert np.array_equal(part.to_numpy(), piece)
    assert np.array_equal(isthmus.gather(parts, axis=axis), data)


def test_what_numpy_has_no_type_for() -> None:
    parts = [isthmus.full(2, value, "bfloat16", device="host") for value in (1, 2)]
    out = isthmus.empty(4, "bfloat16", device="host")
    assert isthmus.gather(parts, out).astype("f4").to_numpy().tolist() == [1, 1, 2, 2]
    try:
        isthmus.bfloat16.dtype  # noqa: B018
    except AttributeError:
        with pytest.raises(AttributeError, match="install ml_dtypes"):
            isthmus.gather(parts)
    else:
        assert isthmus.gather(parts).astype("f4").tolist() == [1, 1, 2, 2]


@given(
    shape=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    count=st.integers(1, 5),
    dtype=st.sampled_from(["?", "u1", "i2", "f2", "f4", "f8", "c16"]),
    data=st.data(),
)
def test_there_and_back(shape: list[int], count: int, dtype: str, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    steps = tuple(slice(None, None, data.draw(st.integers(1, 3))) for _ in shape)
    whole = noise(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    if dtype == "?":
        whole &= 1
    source = whole.view(dtype).reshape(shape)[steps]
    parts = isthmus.scatter(source, [HOST] * count, axis)
    for part, piece in zip(parts, np.array_split(source, count, axis), strict=True):
        assert part.to_numpy().tobytes() == piece.tobytes()
    assert isthmus.gather(parts, axis=axis).tobytes() == source.tobytes()


def test_every_back_end(dev: Device, kind: str) -> None:
    data = noise(10_000).reshape(100, 100)
    parts = isthmus.scatter(data, [dev, "host", Queue(dev)], kind="device")
    assert [part.device for part in parts] == [dev, HOST, dev]
    assert np.array_equal(isthmus.gather(parts), data)
    parts = isthmus.scatter(data, [dev] * 3, kind=kind)
    assert {part.kind for part in parts} == {kind}
    out = np.zeros((100, 200), np.uint8)[:, ::2]
    assert isthmus.gather(parts, out) is out
    assert np.array_equal(out, data)


def test_arrays_of_devices_are_scattered_and_gathered(dev: Device) -> None:
    data = np.arange(100, dtype=np.float32).reshape(10, 10)
    source = Array(Buffer(400, device=dev), (10, 10))
    source.copy_from(data)
    parts = isthmus.scatter(source, several(3), 1)
    assert np.array_equal(parts[1].to_numpy(), data[:, 4:7])
    out = Array(Buffer(400, device=dev), (10, 10))
    assert isthmus.gather(parts, out, 1) is out
    assert np.array_equal(out.to_numpy(), data)
    mixed = [parts[0], data[:, 4:7], parts[2]]
    assert np.array_equal(isthmus.gather(mixed, out, 1).to_numpy(), data)
    assert np.array_equal(isthmus.gather(mixed, axis=1), data)


def test_what_numpy_makes_an_array_of() -> None:
    parts = isthmus.scatter([1, 2, 3], ["host", "host"])
    assert [part.to_numpy().tolist() for part in parts] == [[1, 2], [3]]
    buf = isthmus.UnifiedBuffer(6, np.int16).fill(4)
    assert isthmus.gather(isthmus.scatter(buf, several(4))).tolist() == [4] * 6


def test_a_small_computation_on_each_device() -> None:
    """The document's fifth pattern: each device computes on its part."""
    data = np.arange(1000, dtype=np.float32)
    parts = isthmus.scatter(data, several(4))

    def double(view: memoryview) -> None:
        numbers = np.frombuffer(view, np.float32)
        numbers *= 2

    for part in parts:
        part.queue.submit(double, part.buffer)
    assert np.array_equal(isthmus.gather(parts), data * 2)


def test_copies_to_all_devices_run_at_the_same_time() -> None:
    """Every queue is blocked until each has its copy, so none may be waited for before that."""
    devices = several(3)
    queues = [Queue(dev) for dev in devices]
    data = np.arange(30)

    def all_at_once(copies: Callable[[], Any]) -> Any:
        gate = isthmus.Event()
        before = [sim_calls(dev, "copy") for dev in devices]
        for queue in queues:
            queue.fence(gate)
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(copies)
            got = [
                until(lambda dev=dev, n=n: sim_calls(dev, "copy") > n)
                for dev, n in zip(devices, before, strict=True)
            ]
            gate.complete()
            assert got == [True] * 3, "a copy comes behind the end of another"
            return made.result()

    parts = all_at_once(lambda: isthmus.scatter(data, queues))
    assert np.array_equal(all_at_once(lambda: isthmus.gather(parts)), data)


def test_memory_comes_from_the_current_resources() -> None:
    first, second = several(2)
    counted = StatisticsResource(ProviderResource("device", first))
    with isthmus.using(counted):
        parts = isthmus.scatter(np.zeros(10, np.uint8), [first, second])
    assert counted.current_bytes == 5
    del parts


def held(devices: list[Device]) -> list[int]:
    """The bytes that each simulated device has allocated, except free memory of default pools."""
    for dev in devices:
        isthmus.default_pool("device", dev).trim()
    return [sim_state(dev).device_bytes for dev in devices]


def test_out_of_memory_on_one_device_frees_the_other_parts() -> None:
    before = live()
    devices = [*several(2), sim(capacity="1MiB")]
    with pytest.raises(isthmus.USMAllocationError):
        isthmus.scatter(np.zeros(30 << 20, np.uint8), devices)
    assert is_memory_released(before)
    assert held(devices) == [0, 0, 0]


def test_a_limit_that_is_met() -> None:
    dev = sim()
    limited = LimitResource(ProviderResource("device", dev), 99)
    with isthmus.using(limited), pytest.raises(isthmus.USMAllocationError, match="99"):
        isthmus.scatter(np.zeros(100, np.uint8), [dev, dev])
    gc.collect()
    assert limited.in_use_bytes == 0


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_copy_that_fails(failing: int) -> None:
    """The first failure is raised once all other copies have completed, and no memory leaks."""
    before = live()
    devices = several(3)
    sim_configure(devices[failing], fail={"copy": 1})
    data = noise(3 << 16)
    with pytest.raises(isthmus.Error):
        isthmus.scatter(data, devices)
    assert is_memory_released(before)
    assert held(devices) == [0, 0, 0]
    parts = isthmus.scatter(data, devices)
    sim_configure(devices[failing], fail={"copy": 1})
    out = np.zeros_like(data)
    with pytest.raises(isthmus.Error):
        isthmus.gather(parts, out)
    pieces = list(zip(np.array_split(out, 3), np.array_split(data, 3), strict=True))
    assert all(np.array_equal(got, sent) for got, sent in pieces[:failing])
    assert not pieces[failing][0].any()
    assert np.array_equal(isthmus.gather(parts), data)


@pytest.mark.parametrize("effect", ["early", "late"])
def test_each_call_of_a_driver_fails_in_turn(effect: str) -> None:
    before = live()
    data = noise(3 << 12)
    failures = 0
    for number in range(1, 100):
        devices = [sim(effect=effect), sim(effect=effect, fail=f"any:{number}")]
        try:
            made = isthmus.gather(isthmus.scatter(data, devices))
        except isthmus.Error:
            failures += 1
        else:
            assert np.array_equal(made, data)
            if sim_calls(devices[1]) < number:
                break
        assert is_memory_released(before)
        assert held(devices) == [0, 0]
    assert failures >= 3


def test_bad_scatters() -> None:
    data = np.zeros((4, 5))
    for wrong, parts in ((2, [2, 2]), (-3, [-3, 2])):
        with pytest.raises(ValueError) as caught:
            isthmus.scatter(data, [HOST], wrong)
        message_has(caught, ["axis", *parts])
    with pytest.raises(TypeError):
        isthmus.scatter(data, [HOST], 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="without dimensions"):
        isthmus.scatter(np.array(5), [HOST])
    with pytest.raises(ValueError, match="devices is empty"):
        isthmus.scatter(data, [])
    for single in (HOST, "host", HOST.default_queue):
        with pytest.raises(TypeError, match="a list"):
            isthmus.scatter(data, single)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="devices must be iterable, not int"):
        isthmus.scatter(data, 5)  # type: ignore[arg-type]
    with pytest.raises(isthmus.DeviceNotFoundError):
        isthmus.scatter(data, ["host", "host:gpu"])
    with pytest.raises(TypeError):
        isthmus.scatter(data, [5])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="kind"):
        isthmus.scatter(data, [HOST], kind="managed")
    with pytest.raises(TypeError):
        isthmus.scatter(np.array(["a", None]), [HOST])
    with pytest.raises(TypeError):
        isthmus.scatter(np.zeros(3, "M8[s]"), [HOST])


def test_bad_gathers() -> None:
    parts = isthmus.scatter(np.zeros((4, 5), np.float32), [HOST, HOST])
    with pytest.raises(ValueError, match="parts is empty"):
        isthmus.gather([])
    with pytest.raises(TypeError, match="parts must be iterable, not int"):
        isthmus.gather(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"axis 2"):
        isthmus.gather(parts, axis=2)
    with pytest.raises(ValueError, match="part 1 has shape"):
        isthmus.gather([parts[0], np.zeros((2, 4), np.float32)])
    with pytest.raises(ValueError, match="part 1 has shape"):
        isthmus.gather([parts[0], np.zeros(5, np.float32)])
    with pytest.raises(TypeError, match="float64"):
        isthmus.gather([parts[0], np.zeros((2, 5))])
    with pytest.raises(ValueError, match=r"\(4, 6\)"):
        isthmus.gather(parts, np.zeros((4, 6), np.float32))
    with pytest.raises(TypeError, match="float64"):
        isthmus.gather(parts, np.zeros((4, 5)))
    with pytest.raises(TypeError, match="bytearray"):
        isthmus.gather(parts, bytearray(80))
    constant = np.zeros((4, 5), np.float32)
    constant.flags.writeable = False
    seen = isthmus.broadcast_to(isthmus.zeros((4, 5), device=HOST), (4, 5))
    for sources in (parts, [part.to_numpy() for part in parts]):
        for out in (constant, seen):
            with pytest.raises(isthmus.ReadOnlyError, match="out of type"):
                isthmus.gather(sources, out)
    with pytest.raises(ValueError, match="without dimensions"):
        isthmus.gather([np.array(5)])


def test_a_part_that_was_freed() -> None:
    parts = isthmus.scatter(np.arange(6), several(3))
    parts[1].buffer.free()
    out = np.full(6, -1)
    with pytest.raises(isthmus.ClosedError):
        isthmus.gather(parts, out)
    assert out[:2].tolist() == [0, 1]  # this copy was waited for


def test_two_gpus() -> None:
    if not has_cuda() or len(isthmus.devices("cuda")) < 2:
        pytest.skip("fewer than two CUDA devices")
    devices = isthmus.devices("cuda")
    data = noise((256 if has_gpu() else 4) << 20).reshape(1 << 10, -1)
    for axis in (0, 1):
        parts = isthmus.scatter(data, devices, axis)
        assert [part.device for part in parts] == devices
        assert np.array_equal(isthmus.gather(parts, axis=axis), data)
        out = Array(Buffer(data.nbytes, device=devices[0]), data.shape, "uint8")
        isthmus.gather(parts, out, axis)
        assert np.array_equal(out.to_numpy(), data)


def test_arrays_of_dpnps() -> None:
    if not isthmus.devices("sycl"):
        pytest.skip("no SYCL device")
    dpnp = pytest.importorskip("dpnp")
    parts = isthmus.scatter(dpnp.arange(7), ["host", "sycl"])
    assert [part.tolist() for part in parts] == [[0, 1, 2, 3], [4, 5, 6]]
    assert isthmus.gather([dpnp.arange(2), dpnp.arange(3)]).tolist() == [0, 1, 0, 1, 2]


def test_one_array_is_no_list_of_parts() -> None:
    with pytest.raises(TypeError, match="list of arrays"):
        isthmus.gather(isthmus.zeros(3))
