# SPDX-License-Identifier: Apache-2.0
"""Contexts and queues created by another library, imported by handle; here pyopencl's."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np
import pytest
from support import filled, intel_device, noise, until

import isthmus
from isthmus import Buffer, Context, Device, Queue

cl = pytest.importorskip("pyopencl")

DATA = noise(4096)
DOUBLE = "kernel void twice(global uint* data) { data[get_global_id(0)] *= 2; }"


@pytest.fixture
def foreign() -> Any:
    """A context of pyopencl on the device that Isthmus uses."""
    device = cl.Device.from_int_ptr(intel_device().native_handle)
    return cl.Context([device])


def test_a_device(foreign: Any) -> None:
    (theirs,) = foreign.devices
    assert Device.from_handle(theirs.int_ptr, "opencl") == intel_device()


def test_no_device() -> None:
    with pytest.raises(isthmus.DeviceNotFoundError, match="0x10"):
        Device.from_handle(16, "opencl")
    with pytest.raises(isthmus.DeviceNotFoundError, match="host"):
        Device.from_handle(16, "host")
    with pytest.raises(isthmus.InvalidArgumentError, match=r"'opencl:cpu'.*opencl"):
        Device.from_handle(16, "opencl:cpu")
    for handle in (0, -1, 1 << 64):
        with pytest.raises(ValueError):
            Device.from_handle(handle, "opencl")
    with pytest.raises(TypeError):
        Device.from_handle("16", "opencl")  # type: ignore[arg-type]
    with pytest.raises(UnicodeEncodeError):
        Device.from_handle(16, "\udc80")


def test_a_context(foreign: Any) -> None:
    context = Context.from_handle(foreign.int_ptr, intel_device())
    assert context.native_handle == foreign.int_ptr
    assert context != intel_device().default_context
    assert context == Context.from_handle(foreign.int_ptr, "opencl")
    buffer = filled(DATA, kind="device", queue=Queue(context))
    del foreign
    assert buffer.tobytes() == DATA.tobytes()


@pytest.mark.parametrize("out_of_order", [False, True])
def test_a_queue(foreign: Any, out_of_order: bool) -> None:
    flag = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE if out_of_order else 0
    theirs = cl.CommandQueue(foreign, properties=flag)
    queue = Queue.from_handle(theirs.int_ptr, intel_device())
    assert queue.native_handle == theirs.int_ptr
    assert queue == Queue.from_handle(theirs.int_ptr, intel_device())
    buffer = Buffer(4096, queue=queue)
    for value in range(50):
        buffer.fill(value, blocking=False)
    buffer.copy_from(DATA, blocking=False)
    assert buffer.tobytes() == DATA.tobytes(), "in order, on a queue that is not"


def test_owners_are_kept(foreign: Any) -> None:
    class Owner:
        theirs = cl.CommandQueue(foreign)

    owner = Owner()
    gone = weakref.ref(owner)
    queue = Queue.from_handle(owner.theirs.int_ptr, intel_device(), owner)
    del owner
    assert gone() is not None
    buffer = Buffer(64, queue=queue)
    del queue
    assert gone() is not None
    del buffer
    assert until(lambda: gone() is None)


@pytest.mark.parametrize("kind", ["device", "shared", "host"])
def test_a_kernel_of_theirs_on_memory_of_ours(kind: str) -> None:
    ours = Queue(intel_device())
    context = cl.Context.from_int_ptr(ours.context.native_handle)
    theirs = cl.CommandQueue.from_int_ptr(ours.native_handle)
    numbers = np.arange(1024, dtype=np.uint32)
    buffer = filled(numbers, kind=kind, queue=ours)
    # The device is the CPU, whose memory of every kind is host-accessible.
    array = np.frombuffer((ctypes.c_uint8 * buffer.nbytes).from_address(buffer.ptr), np.uint32)
    kernel = cl.Program(context, DOUBLE).build().twice
    kernel(theirs, (1024,), None, cl.SVM(array))
    assert (buffer.to_numpy().view(np.uint32) == numbers * 2).all()


@pytest.mark.parametrize("handle", [-1, 2**64, "a", None])
def test_what_is_no_handle(handle: Any) -> None:
    for adopt in (Queue.from_handle, Context.from_handle):
        with pytest.raises((TypeError, ValueError)):
            adopt(handle, intel_device())


def test_null_handles() -> None:
    for adopt in (Queue.from_handle, Context.from_handle):
        with pytest.raises(ValueError):
            adopt(0, intel_device())
    assert isthmus.Device("opencl").native_handle
