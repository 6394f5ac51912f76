# SPDX-License-Identifier: Apache-2.0
"""Interface dictionaries with every fault: each is rejected, without leaks or aborts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import filled, message_has, noise, sim

import isthmus
from isthmus import Buffer, Context, Queue
from isthmus.memory import MemoryUSMDevice, as_usm_memory

DATA = noise(4096)
GONE = object()  # marks an entry to be omitted


class Foreign:
    def __init__(self, interface: Any) -> None:
        self.__sycl_usm_array_interface__ = interface


class BadSize:
    def __index__(self) -> int:
        raise ZeroDivisionError


BAD: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"version": 0}, ValueError),
    ({"version": 2}, ValueError),
    ({"version": 2**70}, ValueError),
    ({"version": GONE}, ValueError),
    ({"version": "1"}, TypeError),
    ({"version": None}, TypeError),
    ({"data": GONE}, ValueError),
    ({"data": None}, ValueError),
    ({"data": 5}, ValueError),
    ({"data": ()}, ValueError),
    ({"data": (1,)}, ValueError),
    ({"data": (1, False, 2)}, ValueError),
    ({"data": (None, False)}, TypeError),
    ({"data": ("1", False)}, TypeError),
    ({"data": (1.5, False)}, TypeError),
    ({"data": (-1, False)}, ValueError),
    ({"data": (2**64, False)}, ValueError),
    ({"data": (2**100, False)}, ValueError),
    ({"data": (0, False)}, ValueError),
    ({"data": (2**64 - 1, False)}, ValueError),
    ({"syclobj": GONE}, ValueError),
    ({"syclobj": None}, ValueError),
    ({"syclobj": 5}, ValueError),
    ({"syclobj": ...}, ValueError),
    ({"syclobj": "metal"}, ValueError),
    ({"syclobj": "no such filter"}, ValueError),
    ({"shape": GONE}, ValueError),
    ({"shape": None}, ValueError),
    ({"shape": 5}, ValueError),
    ({"shape": (-1,)}, ValueError),
    ({"shape": (4, -4)}, ValueError),
    ({"shape": ("4",)}, TypeError),
    ({"shape": (4.0,)}, TypeError),
    ({"shape": (None,)}, TypeError),
    ({"shape": (2**63,)}, ValueError),
    ({"shape": (2**62, 2**62)}, ValueError),
    ({"shape": (2**62, 4)}, ValueError),
    ({"shape": (BadSize(),)}, TypeError),
    ({"typestr": GONE}, ValueError),
    ({"typestr": "O"}, ValueError),
    ({"typestr": "|O8"}, ValueError),
    ({"typestr": "|S5"}, ValueError),
    ({"typestr": "<U5"}, ValueError),
    ({"typestr": "|V8"}, ValueError),
    ({"typestr": "<M8[ns]"}, ValueError),
    ({"typestr": "junk"}, ValueError),
    ({"typestr": ""}, ValueError),
    ({"typestr": "<f3"}, ValueError),
    ({"typestr": 5}, ValueError),
    ({"strides": ()}, ValueError),
    ({"strides": (1, 1)}, ValueError),
    ({"strides": 5}, ValueError),
    ({"strides": ("1",)}, TypeError),
    ({"strides": (1.5,)}, TypeError),
    ({"strides": (2**63,)}, ValueError),
    ({"strides": (2**62,)}, ValueError),
    ({"strides": (-(2**63),)}, ValueError),
    ({"offset": None}, TypeError),
    ({"offset": "1"}, TypeError),
    ({"offset": 1.5}, TypeError),
    ({"offset": 2**63}, ValueError),
    ({"offset": 2**62}, ValueError),
    ({"offset": -(2**62)}, ValueError),
    ({"shape": (4097,)}, ValueError),
    ({"shape": (4096,), "offset": 1}, ValueError),
    ({"shape": (1024,), "typestr": "<f4", "offset": 1}, ValueError),
    ({"shape": (2, 4000), "strides": (4000, 1)}, ValueError),
    ({"shape": (1 << 40,)}, ValueError),
    ({"strides": (-1,)}, ValueError),
]
# The first byte lies in no known allocation.
OUTSIDE: list[dict[str, Any]] = [{"offset": 2**62}, {"strides": (-1,)}]


def changed(buffer: Buffer, changes: dict[str, Any]) -> dict[str, Any]:
    entries = buffer.__sycl_usm_array_interface__ | changes
    return {key: value for key, value in entries.items() if value is not GONE}


def ident(case: tuple[dict[str, Any], type[Exception]]) -> str:
    return ",".join(f"{k}={'-' if v is GONE else type(v).__name__ + repr(v)}"[:40]
                    for k, v in case[0].items() if not isinstance(v, BadSize))  # fmt: skip


@pytest.mark.parametrize(("changes", "error"), BAD, ids=[ident(case) for case in BAD])
@pytest.mark.parametrize("name", ["host", "opencl", "sim"])
def test_faults(name: str, changes: dict[str, Any], error: type[Exception]) -> None:
    # Only this context knows the memory, and so the end of the allocation is known too.
    queue = Queue(sim()) if name == "sim" else Queue(name)
    source = filled(DATA, kind="device", queue=queue)
    told = changed(source, changes)
    if name == "host" and changes in OUTSIDE:
        pytest.skip("any memory may be adopted on the host, and what lies there cannot be known")
    uses = [
        as_usm_memory,
        MemoryUSMDevice,
        MemoryUSMDevice(64, queue=queue).copy_from_device,
        Buffer(1 << 13, queue=queue).copy_from,
    ]
    for use in uses:
        with pytest.raises(error):
            use(Foreign(told))
    assert source.tobytes() == DATA.tobytes()


@pytest.mark.parametrize("wrong", [None, 5, "dict", [], ()])
def test_what_is_no_dictionary(wrong: Any) -> None:
    for use in (as_usm_memory, MemoryUSMDevice):
        with pytest.raises(ValueError, match="dict"):
            use(Foreign(wrong))


def test_a_number_of_bytes_has_no_interface() -> None:
    for wrong in (1024, 1024.0, "1024"):
        with pytest.raises(ValueError, match="__sycl_usm_array_interface__"):
            as_usm_memory(wrong)


@pytest.mark.parametrize("wrong", [None, b"abc", np.zeros(8, np.uint8), object()])
def test_what_has_no_interface(wrong: Any) -> None:
    for use in (as_usm_memory, MemoryUSMDevice):
        with pytest.raises(ValueError, match="__sycl_usm_array_interface__"):
            use(wrong)


def test_a_property_that_raises() -> None:
    class Failing:
        @property
        def __sycl_usm_array_interface__(self) -> dict[str, Any]:
            raise ZeroDivisionError

    with pytest.raises((ZeroDivisionError, ValueError)):
        as_usm_memory(Failing())


@pytest.mark.parametrize("name", ["opencl", "sim"])
@pytest.mark.parametrize("form", ["queue", "context"])
def test_another_context(name: str, form: str) -> None:
    queue = Queue(sim()) if name == "sim" else Queue(name)
    source = filled(DATA, kind="device", queue=queue)
    other = Queue(Context(queue.device))
    told = changed(source, {"syclobj": other if form == "queue" else other.context})
    with pytest.raises(isthmus.WrongContextError) as error:
        as_usm_memory(Foreign(told))
    message_has(error, [f"{source.ptr:#x}"])


@pytest.mark.parametrize("name", ["opencl", "sim"])
def test_unregistered_host_memory(name: str) -> None:
    queue = Queue(sim()) if name == "sim" else Queue(name)
    array = np.zeros(4096, np.uint8)
    told = changed(Buffer(4096, queue=queue), {"data": (array.ctypes.data, False)})
    with pytest.raises(isthmus.WrongContextError):
        as_usm_memory(Foreign(told))


def test_the_end_is_named() -> None:
    source = filled(DATA, kind="device", queue=Queue("opencl"))
    with pytest.raises(isthmus.OutOfRangeError) as error:
        as_usm_memory(Foreign(changed(source, {"shape": (1 << 20,)})))
    message_has(error, [1 << 20, 4096])


@pytest.mark.parametrize(
    "changes",
    [
        {"data": (2**64 - 1, False)},
        {"shape": (2**62, 4)},
        {"strides": (2**62,)},
        {"offset": -(2**62)},
    ],
)
def test_an_extent_past_the_address_space_is_reported(changes: dict[str, Any]) -> None:
    buffer = Buffer(4096, kind="shared", queue=Queue("opencl"))
    with pytest.raises(ValueError, match=r"2\*\*64") as raised:
        as_usm_memory(Foreign(changed(buffer, changes)))
    message_has(raised, list(changes.values()))
