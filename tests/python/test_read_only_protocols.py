# SPDX-License-Identifier: Apache-2.0
"""Memory that an object exports by several protocols: if two disagree, the stricter applies."""

from __future__ import annotations

import ctypes
import itertools
import sys
from typing import Any

import numpy as np
import pytest
from dlpack_support import Made, new_capsule

import isthmus
from isthmus import Array, Buffer

HOST: dict[str, Any] = {"kind": "host", "device": "host"}
FLAGS = {"writeable": 0x0400, "others": 0x0301}  # aligned, native byte order, C order


class Structure(ctypes.Structure):
    """The structure PyArrayInterface of NumPy."""

    _fields_ = (
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("data", ctypes.c_void_p),
        ("descr", ctypes.py_object),
    )


class Exporter:
    """Exports four float32 by each of ``protocols``, which maps each to whether it is read-only."""

    def __init__(self, memory: Array, protocols: dict[str, bool]) -> None:
        self.memory = memory
        for name, read_only in protocols.items():
            setattr(self, f"__{name}__", getattr(self, f"make_{name}")(read_only))

    def make_array_interface(self, read_only: bool) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": (4,),
            "typestr": "<f4",
            "strides": None,
            "data": (self.memory.ptr, read_only),
        }

    def make_cuda_array_interface(self, read_only: bool) -> dict[str, Any]:
        return self.make_array_interface(read_only)

    def make_sycl_usm_array_interface(self, read_only: bool) -> dict[str, Any]:
        own = self.memory.__sycl_usm_array_interface__
        return {**own, "data": (self.memory.ptr, read_only)}

    def make_array_struct(self, read_only: bool) -> Any:
        numbers = [(ctypes.c_ssize_t * 1)(each) for each in (4, 4)]
        flags = FLAGS["others"] | (0 if read_only else FLAGS["writeable"])
        self.struct = Structure(2, 1, b"f", 4, flags, *numbers, self.memory.ptr)
        return new_capsule(ctypes.addressof(self.struct), None, None)


class Lending(Exporter):
    def __init__(self, memory: Array, protocols: dict[str, bool]) -> None:
        given = dict(protocols)
        self.flags = int(given.pop("dlpack"))
        super().__init__(memory, given)

    def __dlpack__(self, **_: Any) -> Any:
        return Made(self.memory.ptr, (4,), flags=self.flags).capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


if sys.version_info >= (3, 12):

    class Exporting(Exporter):
        def __init__(self, memory: Array, protocols: dict[str, bool]) -> None:
            given = dict(protocols)
            self.read_only = given.pop("buffer")
            super().__init__(memory, given)

        def __buffer__(self, flags: int) -> memoryview:
            view = memoryview(self.memory)
            return view.toreadonly() if self.read_only else view

    class LendingBytes(Exporting, Lending):
        pass


def exporter(memory: Array, protocols: dict[str, bool]) -> Any:
    is_lending = "dlpack" in protocols
    if sys.version_info >= (3, 12) and "buffer" in protocols:
        return (LendingBytes if is_lending else Exporting)(memory, protocols)
    return (Lending if is_lending else Exporter)(memory, protocols)


# No other host protocol describes CUDA's memory.
NAMES = ["array_interface", "array_struct", "sycl_usm_array_interface", "dlpack"]
if sys.version_info >= (3, 12):
    NAMES.append("buffer")
PAIRS = list(itertools.combinations(NAMES, 2))
CASES = [
    dict(zip(pair, flags, strict=True))
    for pair in PAIRS
    for flags in itertools.product([False, True], repeat=2)
] + [{name: flag} for name in NAMES for flag in (False, True)]


@pytest.mark.parametrize("protocols", CASES, ids=str)
def test_the_stricter_holds(protocols: dict[str, bool]) -> None:
    memory = isthmus.ones(4, "f4", **HOST)
    made = exporter(memory, protocols)
    taken = isthmus.asarray(made, copy=False, **HOST)
    assert (taken.ptr, taken.read_only) == (memory.ptr, any(protocols.values()))
    if taken.read_only:
        with pytest.raises(isthmus.ReadOnlyError):
            taken.fill(2)
    assert memory.tolist() == [1] * 4


@pytest.mark.parametrize("protocols", CASES, ids=str)
def test_a_destination_is_as_strict(protocols: dict[str, bool]) -> None:
    memory, source = isthmus.ones(4, "f4", **HOST), isthmus.zeros(4, "f4", **HOST)
    if protocols.keys() <= {"array_interface", "array_struct"}:
        pytest.skip("NumPy's interfaces alone make no destination")
    for write in (
        lambda to: isthmus.copyto(to, source),
        source.copy_to,
        lambda to: isthmus.copy_nd(to, source),
        source.buffer.copy_to,
    ):
        made = exporter(memory, protocols)
        if any(protocols.values()):
            with pytest.raises((isthmus.ReadOnlyError, TypeError)):
                write(made)
            assert memory.tolist() == [1] * 4
    if not any(protocols.values()):
        isthmus.copyto(exporter(memory, protocols), source)
        assert memory.tolist() == [0] * 4


class Strict(bytearray):
    def __dlpack__(self, **_: Any) -> Any:
        at = np.frombuffer(self, np.uint8).ctypes.data
        return Made(at, (4,), flags=1, dtype=(1, 8, 1)).capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Described(bytearray):
    """An attribute of the instance instead of its type."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        at = np.frombuffer(self, np.uint8).ctypes.data
        told = {"version": 3, "shape": (4,), "typestr": "|u1", "data": (at, True)}
        self.__array_interface__ = told


@pytest.mark.parametrize("strict", [Strict, Described])
def test_subclasses_of_bytearray(strict: Any) -> None:
    """They support the buffer protocol in every Python version."""
    source = Buffer(4, queue=isthmus.Queue("host"), kind="host")
    made = strict(b"abcd")
    for write in (
        source.copy_to,
        lambda to: isthmus.copyto(to, isthmus.zeros(4, "u1", **HOST)),
        lambda to: isthmus.copy_nd(to, source),
    ):
        with pytest.raises(isthmus.ReadOnlyError):
            write(made)
    assert made == b"abcd"


@pytest.mark.parametrize("struct", [None, 5, "no capsule"])
def test_an_invalid_structure_is_ignored(struct: Any) -> None:
    made = exporter(isthmus.ones(4, "f4", **HOST), {"sycl_usm_array_interface": False})
    made.__array_struct__ = struct
    assert not isthmus.asarray(made, copy=False).read_only


def test_sources_are_not_exported() -> None:
    """A source, which is only read, is not exported a second time."""
    memory = isthmus.ones(4, "f4", **HOST)
    made = exporter(memory, {"sycl_usm_array_interface": False, "dlpack": False})
    made.__dlpack_device__ = None  # calling it raises
    into = isthmus.zeros(4, "f4", **HOST)
    isthmus.copyto(into, made)
    assert into.tolist() == [1] * 4


# -- numbers in NumPy's dictionary ----------------------------------------------------------------


class Told:
    def __init__(self, memory: Array, **changes: Any) -> None:
        self.memory = memory
        told = {"version": 3, "shape": (4,), "typestr": "<f4", "strides": (4,)}
        self.__array_interface__ = {**told, "data": (memory.ptr, False), **changes}


BAD: list[dict[str, Any]] = [
    *({"data": (at, False)} for at in (-1, -(2**63), 2**64, 2**100, 10**400, 2**64 - 8)),
    *({"shape": (extent,)} for extent in (-1, 2**63, 2**64, 10**30)),
    *({"strides": (stride,)} for stride in (2**63, -(2**63) - 1, 2**64, 2**62, -(2**62))),
    *({"data": bytearray(16), "offset": offset} for offset in (2**63, -(2**63) - 1, 10**30)),
    {"shape": (2**40, 2**40), "strides": (0, 0)},
]


@pytest.mark.parametrize("changes", BAD, ids=str)
def test_numbers_that_cannot_be(changes: dict[str, Any]) -> None:
    memory, into = isthmus.ones(4, "f4", **HOST), isthmus.zeros(4, "f4", **HOST)
    unified = isthmus.UnifiedBuffer(4, "f4", device="host")
    for use in (
        lambda of: isthmus.asarray(of, **HOST),
        lambda of: isthmus.asarray(of, "f8", **HOST),
        lambda of: isthmus.copyto(into, of),
        lambda of: into.__setitem__(..., of),
        lambda of: isthmus.empty_like(of),
        lambda of: isthmus.full(3, of),
        unified.copy_from,
        lambda of: isthmus.scatter(of, ["host"]),
    ):
        with pytest.raises((ValueError, BufferError)):
            use(Told(memory, **changes))
    assert into.tolist() == [0] * 4


def test_numbers_that_can_be() -> None:
    memory = isthmus.asarray(np.arange(4, dtype="f4"), **HOST)
    assert isthmus.asarray(Told(memory), **HOST).tolist() == [0, 1, 2, 3]
    backwards = Told(memory, data=(memory.ptr + 12, False), strides=(-4,))
    assert isthmus.asarray(backwards, **HOST).tolist() == [3, 2, 1, 0]
    numbers = np.array([4])
    assert isthmus.asarray(Told(memory, shape=tuple(numbers)), **HOST).size == 4
