# SPDX-License-Identifier: Apache-2.0
"""Errors of isthmus.compat.pydotcompute: its classes, caught as those of both libraries."""

from __future__ import annotations

import builtins
import copy
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydotcompute_support import NEW, OLD, SIZE, STATES, in_state, new_buffer
from support import message_has, sim
from unified_support import write_on_device

import isthmus
from isthmus import ConflictError, DriverError, InvalidArgumentError, USMAllocationError
from isthmus._core import sim_configure
from isthmus.compat.pydotcompute import BufferState, UnifiedBuffer, exceptions
from isthmus.compat.pydotcompute.exceptions import (
    BackendError,
    BackendNotAvailableError,
    BufferNotAllocatedError,
    BufferSyncError,
    CUDAError,
    MetalError,
    PyDotComputeError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Device

pytestmark = pytest.mark.sim_and_host
BASES = {
    PyDotComputeError: Exception,
    exceptions.BufferError: PyDotComputeError,
    BufferNotAllocatedError: exceptions.BufferError,
    BufferSyncError: exceptions.BufferError,
    BackendError: PyDotComputeError,
    BackendNotAvailableError: BackendError,
    CUDAError: BackendError,
    MetalError: BackendError,
}


def test_the_tree() -> None:
    assert {each.__name__ for each in BASES} == set(exceptions.__all__)
    assert all(each.__bases__ == (base,) for each, base in BASES.items())
    assert not issubclass(exceptions.BufferError, builtins.BufferError)


def test_they_are_made_as_there() -> None:
    assert str(BufferNotAllocatedError())
    cause = ValueError("of some kind")
    told = BufferSyncError("host->device", cause)
    assert (told.direction, told.cause) == ("host->device", cause)
    assert "host->device" in str(told)
    assert "of some kind" in str(told)
    absent = BackendNotAvailableError("metal", "no such driver")
    assert (absent.backend_name, absent.reason) == ("metal", "no such driver")
    assert "no such driver" in str(absent)


SENDS: dict[str, Callable[[Any], Any]] = {
    "device": lambda buf: buf.device,
    "allocate": lambda buf: buf.allocate(),
    "synchronize": lambda buf: buf.synchronize(),
    "sync_to_device": lambda buf: buf.sync_to_device(),
    "device_read": lambda buf: buf.device_read().__enter__(),
    "part": lambda buf: buf.reshape(2, 5)[:1].device,
}
FETCHES: dict[str, Callable[[Any], Any]] = {
    "host": lambda buf: buf.host,
    "to_numpy": lambda buf: buf.to_numpy(),
    "sync_to_host": lambda buf: buf.sync_to_host(),
    "copy_to": lambda buf: buf.copy_to(np.empty(SIZE)),
    "item": lambda buf: buf[3],
    "set_item": lambda buf: buf.__setitem__(3, 1),
    "rows": lambda buf: list(buf),
    "array": lambda buf: buf.__array__(),
    "host_read": lambda buf: buf.host_read().__enter__(),
    "part": lambda buf: buf.reshape(2, 5)[:1].host,
    "pickle": pickle.dumps,
}


either_life = pytest.mark.parametrize("freed", [False, True], ids=["new", "freed_before"])


def fresh(freed: bool) -> Any:
    made = new_buffer(sim()).allocate()
    if freed:
        made.free()
    return made.copy_from(OLD)


def fails(call: Callable[[Any], Any], buf: Any, direction: str) -> None:
    """A failure leaves both copies and the dirty ranges unchanged, and the next attempt works."""
    device, state = buf.queue.device, buf.state
    sim_configure(device, "fail=copy:1,fail=copy_ranges:1")
    with pytest.raises(PyDotComputeError) as told:
        call(buf)
    sim_configure(device, "fail=none")
    assert isinstance(told.value, BufferSyncError)
    assert isinstance(told.value, DriverError)
    assert told.value.direction == direction
    assert type(told.value.cause) is DriverError
    assert told.value.__cause__ is told.value.cause
    assert buf.state is state
    call(buf)


@either_life
@pytest.mark.parametrize("send", SENDS)
def test_a_failed_upload(freed: bool, send: str) -> None:
    fails(SENDS[send], fresh(freed), "host->device")


@either_life
@pytest.mark.parametrize("fetch", FETCHES)
def test_a_failed_download(freed: bool, fetch: str) -> None:
    buf = fresh(freed)
    write_on_device(buf, NEW)
    fails(FETCHES[fetch], buf, "device->host")


@either_life
async def test_a_failure_while_one_waits(freed: bool) -> None:
    buf = fresh(freed)
    device = buf.queue.device
    for ensure, direction in (
        (buf.ensure_on_device, "host->device"),
        (buf.ensure_on_host, "device->host"),
    ):
        sim_configure(device, "fail=copy:1,fail=copy_ranges:1")
        with pytest.raises(BufferSyncError) as told:
            await ensure()
        sim_configure(device, "fail=none")
        assert isinstance(told.value, DriverError)
        assert told.value.direction == direction
        await ensure()
        write_on_device(buf, NEW)
    assert (buf.host == NEW).all()


def test_a_conflict(dev: Device) -> None:
    buf = in_state(dev, BufferState.HOST_DIRTY)
    buf.mark_device_dirty()
    with pytest.raises(BufferSyncError) as told:
        buf.synchronize()
    assert isinstance(told.value, ConflictError)
    message_has(told, ["0 to 40"])


def test_a_lost_device() -> None:
    device = sim()
    buf = new_buffer(device).copy_from(OLD)
    sim_configure(device, "lost=now")
    with pytest.raises(BufferSyncError) as told:
        buf.device  # noqa: B018
    assert isinstance(told.value, isthmus.DeviceLostError)
    assert (buf.host == OLD).all()


@pytest.mark.parametrize("mark", ["mark_host_dirty", "mark_device_dirty", "mark_metal_dirty"])
def test_marks_of_nothing(dev: Device, mark: str) -> None:
    buf = new_buffer(dev)
    with pytest.raises(BufferNotAllocatedError):
        getattr(buf, mark)()
    assert buf.state is BufferState.UNINITIALIZED


def test_marks_of_a_side_that_is_not_there(dev: Device) -> None:
    for buf, mark in (
        (in_state(dev, BufferState.HOST_ONLY), "mark_device_dirty"),
        (in_state(dev, BufferState.DEVICE_ONLY), "mark_host_dirty"),
    ):
        with pytest.raises(BufferNotAllocatedError, match="copy") as told:
            getattr(buf, mark)()
        assert isinstance(told.value, InvalidArgumentError)


def test_metal(dev: Device) -> None:
    buf = new_buffer(dev)
    with pytest.raises(BufferNotAllocatedError):
        buf.metal  # noqa: B018
    buf.allocate()
    for ask in (lambda: buf.metal, buf.mark_metal_dirty):
        with pytest.raises(MetalError, match="device"):
            ask()
    assert buf.state is BufferState.SYNCHRONIZED


def test_out_of_memory_has_the_same_details() -> None:
    device = sim(capacity="1MiB")
    buf = new_buffer(device, 1 << 20)
    with pytest.raises(MemoryError) as told:
        buf.allocate()
    value: Any = told.value
    assert isinstance(value, BufferSyncError)
    assert isinstance(value, USMAllocationError)
    assert vars(value) == {"direction": "host->device", "cause": value.cause} | vars(value.cause)


def test_they_can_be_pickled() -> None:
    buf = new_buffer(sim(capacity="1MiB"), 1 << 20)
    with pytest.raises(BufferSyncError) as told:
        buf.allocate()
    again = pickle.loads(pickle.dumps(told.value))
    assert type(again) is type(told.value)
    assert (again.direction, str(again)) == (told.value.direction, str(told.value))
    absent = pickle.loads(pickle.dumps(BackendNotAvailableError("metal", "none")))
    assert (absent.backend_name, absent.reason) == ("metal", "none")
    assert str(pickle.loads(pickle.dumps(BufferNotAllocatedError()))) == str(
        BufferNotAllocatedError()
    )


def test_errors_of_both_cross_processes(dev: Device) -> None:
    buf = in_state(dev, BufferState.HOST_ONLY)
    with pytest.raises(BufferNotAllocatedError) as told:
        buf.mark_device_dirty()
    told.value.noted = 5  # type: ignore[attr-defined]
    for again in (pickle.loads(pickle.dumps(told.value)), copy.copy(told.value)):
        assert type(again) is type(told.value)
        assert isinstance(again, InvalidArgumentError)
        assert (str(again), again.noted) == (str(told.value), 5)


BAD: dict[str, tuple[Callable[[], Any], type[Exception], list[Any]]] = {
    "negative": (lambda: UnifiedBuffer(-1), ValueError, [-1]),
    "empty": (lambda: UnifiedBuffer((3, 0)), ValueError, ["(3, 0)"]),
    "text": (lambda: UnifiedBuffer("ten"), TypeError, []),  # type: ignore[arg-type]
    "fraction": (lambda: UnifiedBuffer(1.5), TypeError, []),  # type: ignore[arg-type]
    "objects": (lambda: UnifiedBuffer(3, object), TypeError, ["objects"]),
    "dtype": (lambda: UnifiedBuffer(3, "quux"), TypeError, ["quux"]),
    "huge": (lambda: UnifiedBuffer((1 << 40, 1 << 40)), MemoryError, ["2**63"]),
    "device": (lambda: UnifiedBuffer(3, device="quantum"), ValueError, ["quantum"]),
    "unknown": (lambda: UnifiedBuffer(3, colour="red"), TypeError, ["colour"]),
    "positional": (lambda: UnifiedBuffer(3, "f4", True), TypeError, []),  # type: ignore[misc]
    "resource": (lambda: UnifiedBuffer(3, resource=5), TypeError, ["resource"]),
}


@pytest.mark.parametrize("which", BAD)
def test_bad_arguments(which: str) -> None:
    call, error, parts = BAD[which]
    with pytest.raises(error) as told:
        call()
    message_has(told, parts)


SOURCES: dict[str, tuple[Any, type[Exception]]] = {
    "shape": (np.zeros((3, 5)), ValueError),
    "longer": (np.zeros(SIZE + 1), ValueError),
    "more_axes": (np.zeros((2, SIZE)), ValueError),
    "text": ("abc", TypeError),
    "nothing": (None, TypeError),
    "complex": (1j, TypeError),
}


@pytest.mark.parametrize("state", STATES, ids=str)
def test_bad_sources_change_nothing(dev: Device, state: BufferState) -> None:
    buf = in_state(dev, state)
    for which, (source, error) in SOURCES.items():
        with pytest.raises(error):
            buf.copy_from(source)
        assert buf.state is state, which


@pytest.mark.parametrize("target", [np.zeros(SIZE + 1), np.zeros(SIZE, np.int32), None, [0] * SIZE])
def test_bad_targets(dev: Device, target: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        new_buffer(dev).copy_from(OLD).copy_to(target)


def test_bad_indices(dev: Device) -> None:
    buf = new_buffer(dev).copy_from(OLD)
    for key in (SIZE, -SIZE - 1, "one", (0, 0)):
        with pytest.raises(IndexError):
            buf[key]
        with pytest.raises(IndexError):
            buf[key] = 1
    with pytest.raises(TypeError):
        len(new_buffer(dev, ()))
