# SPDX-License-Identifier: Apache-2.0
"""Devices, contexts and queues: filters, comparison, hashes, names, pickles."""

from __future__ import annotations

import pickle
import sys

import pytest
from support import message_has, sim

import isthmus
from isthmus import Buffer, Context, Device, Queue


@pytest.mark.parametrize("text", ["host", "host:cpu", "host:0", "host:cpu:0"])
def test_good_filters(text: str) -> None:
    assert Device(text).backend == "host"


@pytest.mark.parametrize("text", ["opencl", "opencl:cpu", "opencl:cpu:0"])
def test_good_opencl_filters(text: str) -> None:
    assert Device(text).backend == "opencl"


@pytest.mark.parametrize("text", ["host:gpu", "host:7", "opencl:accelerator:3", "cpu:99"])
def test_filters_that_nothing_fits(text: str) -> None:
    with pytest.raises(isthmus.DeviceNotFoundError) as error:
        Device(text)
    message_has(error, [text, "host"])
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("text", ["host:cpu:0:1", "vulkan"])
def test_what_is_no_filter(text: str) -> None:
    with pytest.raises(ValueError):
        Device(text)


@pytest.mark.parametrize("wrong", [1, 1.5, b"host", ["host"]])
def test_device_of_a_wrong_type(wrong: object) -> None:
    with pytest.raises(TypeError, match="filter string"):
        Device(wrong)  # type: ignore[arg-type]


def test_a_list_by_filter() -> None:
    assert [device.backend for device in isthmus.devices("host")] == ["host"]
    assert all(device.type == "cpu" for device in isthmus.devices("cpu"))
    assert isthmus.devices("host:gpu") == []


def test_devices_compare_equal(dev: Device) -> None:
    again = dev.default_queue.device
    assert again == dev
    assert hash(again) == hash(dev)
    assert len({dev, again, Queue(dev).device}) == 1
    assert dev != "host"
    assert dev is not None
    assert dev != 1
    assert Device(dev) == dev


def test_different_devices_differ() -> None:
    assert Device("host") != Device("opencl")
    assert sim() != sim()


def test_repr(dev: Device) -> None:
    assert repr(dev) == f'<isthmus.Device {dev.filter} "{dev.name}">'


@pytest.mark.parametrize("text", ["host", "opencl:cpu:0"])
def test_pickles_by_filter(text: str) -> None:
    device = Device(text)
    assert pickle.loads(pickle.dumps(device)) == device


def test_contexts_compare_equal(dev: Device) -> None:
    default = dev.default_context
    assert default == dev.default_context
    assert hash(default) == hash(dev.default_queue.context)
    own = Context(dev)
    assert own != default
    assert len({own, default, Queue(own).context, dev.default_context}) == 2
    assert own.devices == [dev]
    assert dev.filter in repr(own)
    assert own != dev


def test_context_of_a_list(dev: Device) -> None:
    assert Context([dev]).devices == [dev]
    with pytest.raises(ValueError):
        Context([])


def test_context_over_platforms() -> None:
    with pytest.raises(isthmus.WrongContextError):
        Context([Device("host"), Device("opencl")])


def test_queues_compare_equal(dev: Device) -> None:
    default = dev.default_queue
    assert default == dev.default_queue
    assert hash(default) == hash(dev.default_queue)
    mine = Queue(dev)
    assert mine != default
    assert mine != Queue(dev)
    assert mine != dev
    assert dev.filter in repr(mine)


def test_a_simulated_device_is_freed_after_use_of_its_default_queue() -> None:
    device = sim()
    before = sys.getrefcount(device)
    assert Buffer(8, device=device).queue == device.default_queue
    assert sys.getrefcount(device) == before


def test_every_queue_is_new() -> None:
    assert isthmus.SyclQueue is Queue
    assert len({isthmus.SyclQueue(), isthmus.SyclQueue(), Queue()}) == 3
    assert Queue("host").device == Device("host")


def test_queue_properties(dev: Device) -> None:
    queue = Queue(dev)
    assert queue.device == queue.sycl_device == dev
    assert queue.context == queue.sycl_context == dev.default_context
    assert queue.backend == dev.backend
    assert queue.is_in_order
    assert queue.idle


def test_queue_of_a_context(dev: Device) -> None:
    own = Context(dev)
    assert Queue(own).context == own
    assert Queue(dev, context=own).context == own
    assert Queue(context=own).device == dev
    with pytest.raises(TypeError):
        Queue(own, context=own)
    with pytest.raises(isthmus.WrongContextError):
        Queue(sim(), context=own)


def test_native_handles(dev: Device) -> None:
    queue = Queue(dev)
    handles = [dev.native_handle, queue.context.native_handle, queue.native_handle]
    lent = "export_handles" in dev.capabilities
    # CUDA identifies devices by numbers that start at 0.
    assert [handle != 0 for handle in handles] == [lent and dev.backend != "cuda", lent, lent]


def test_handles_of_no_use(dev: Device) -> None:
    if "export_handles" in dev.capabilities:
        pytest.skip("this back-end has handles")
    with pytest.raises(isthmus.UnsupportedError):
        Context.from_handle(1, dev)
    with pytest.raises(isthmus.UnsupportedError):
        Queue.from_handle(1, dev)
