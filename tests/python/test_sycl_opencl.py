# SPDX-License-Identifier: Apache-2.0
"""One cl_context for both the SYCL and the OpenCL backend: memory of dpctl used by OpenCL."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from support import noise

import isthmus
from isthmus import Buffer, Context, Device, Queue
from isthmus.memory import query

if os.environ.get("ISTHMUS_ALLOW_NO_OPENCL") == "1":
    pytest.importorskip("dpctl")
assert isthmus.devices("sycl"), isthmus.absent()

import dpctl  # noqa: E402
import dpctl.memory as dm  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = noise(4096)
THEIRS = {
    "device": dm.MemoryUSMDevice,
    "shared": dm.MemoryUSMShared,
    "host": dm.MemoryUSMHost,
}


@pytest.fixture
def theirs() -> Any:
    return dpctl.SyclQueue("opencl:cpu")


def opencl_device(of: Any) -> Device:
    """The OpenCL device of the SYCL device."""
    return next(each for each in isthmus.devices("opencl") if each.name == of.sycl_device.name)


@pytest.fixture
def ours(theirs: Any) -> Queue:
    device = opencl_device(theirs)
    return Queue(device, context=Context.from_sycl(theirs.sycl_context).share_with(device))


@pytest.mark.parametrize("kind", THEIRS)
def test_memory_of_dpctls_under_opencl(theirs: Any, ours: Queue, kind: str) -> None:
    memory = THEIRS[kind](DATA.nbytes, queue=theirs)
    memory.copy_from_host(DATA)
    known = query(memory._pointer, context=ours.context)
    assert known.kind == kind
    seen = Buffer.adopt(memory._pointer, memory.nbytes, kind=kind, queue=ours, owner=memory)
    assert seen.tobytes() == DATA.tobytes()
    seen.fill(7)
    assert set(memory.copy_to_host()) == {7}


def test_the_context_is_the_same(theirs: Any, ours: Queue) -> None:
    again = Context.from_sycl(theirs.sycl_context).share_with(ours.device)
    assert again == ours.context
    assert again.native_handle == ours.context.native_handle != 0
    assert again != ours.device.default_context


def test_each_reference_is_released(theirs: Any, ours: Queue) -> None:
    cl = pytest.importorskip("pyopencl")
    seen = cl.Context.from_int_ptr(ours.context.native_handle)
    before = seen.reference_count
    home = Context.from_sycl(theirs.sycl_context)
    kept = [home.share_with(ours.device) for _ in range(10)]
    assert seen.reference_count == before + len(kept)
    del kept
    assert seen.reference_count == before


def refused_device(_: Queue) -> object:
    return Context.from_sycl(dpctl.SyclContext("opencl:cpu")).share_with("host")


def refused_context(ours: Queue) -> object:
    return Device("host").default_context.share_with(ours.device)


def of_opencl_itself(ours: Queue) -> object:
    return ours.context.share_with(ours.device)


@pytest.mark.parametrize("ask", [refused_device, refused_context, of_opencl_itself])
def test_other_requests_are_rejected(ours: Queue, ask: Callable[[Queue], object]) -> None:
    with pytest.raises(isthmus.UnsupportedError):
        ask(ours)


def test_a_device_of_another_platform(theirs: Any, ours: Queue) -> None:
    others = [each for each in isthmus.devices("opencl") if each.name != ours.device.name]
    if not others:
        pytest.skip("one OpenCL device")
    with pytest.raises(isthmus.WrongContextError):
        Context.from_sycl(theirs.sycl_context).share_with(others[0])
