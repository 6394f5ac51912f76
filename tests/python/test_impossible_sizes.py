# SPDX-License-Identifier: Apache-2.0
"""Sizes larger than any machine's memory raise the library's allocation error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import is_memory_released

import isthmus
from isthmus import memory
from isthmus.memory import PoolResource, live

if TYPE_CHECKING:
    from collections.abc import Callable

IMPOSSIBLE = [10**18, 2**62, 2**63 - 1, 2**63, 10**20, 2**64, 2**100, 10**400]
MAKERS: dict[str, Callable[[int, Any], object]] = {
    "empty": lambda n, on: isthmus.empty(n, "u1", **on),
    "empty of wide elements": lambda n, on: isthmus.empty(n, "complex128", **on),
    "empty of two dimensions": lambda n, on: isthmus.empty((4, n), "u1", **on),
    "empty of a great product": lambda n, on: isthmus.empty((n, n), "u1", **on),
    "empty in Fortran's order": lambda n, on: isthmus.empty((n, 2), order="F", **on),
    "zeros": lambda n, on: isthmus.zeros(n, **on),
    "ones": lambda n, on: isthmus.ones(n, **on),
    "full": lambda n, on: isthmus.full(n, 3, **on),
    "empty_like": lambda n, on: isthmus.empty_like(isthmus.ones(1, **on), shape=(n, 3)),
    "full_like": lambda n, on: isthmus.full_like(isthmus.ones(1, **on), 3, shape=n),
    "Buffer": lambda n, on: isthmus.Buffer(n, **on),
    "Buffer of a pool": lambda n, on: isthmus.Buffer(n, resource=PoolResource(**on)),
    "allocate": lambda n, on: PoolResource(**on).allocate(n),
    "UnifiedBuffer": lambda n, on: isthmus.UnifiedBuffer(n, "u1", device=on["device"]).host,
    "UnifiedBuffer of a great product": lambda n, on: isthmus.UnifiedBuffer(
        (n, n), "f8", device=on["device"]
    ),
}


@pytest.mark.parametrize("nbytes", IMPOSSIBLE, ids=range(len(IMPOSSIBLE)))
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_memory_that_there_is_not(make: Callable[[int, Any], object], nbytes: int) -> None:
    """The error is the same, whichever limit the size exceeds."""
    before = live()
    for kind in ("device", "host"):
        with pytest.raises(isthmus.USMAllocationError) as raised:
            make(nbytes, {"kind": kind, "device": "host"})
        assert isinstance(raised.value, MemoryError)
        assert hasattr(raised.value, "snapshot")
    assert is_memory_released(before)


@pytest.mark.parametrize("nbytes", IMPOSSIBLE, ids=range(len(IMPOSSIBLE)))
@pytest.mark.parametrize(
    "cls", [memory.MemoryUSMDevice, memory.MemoryUSMShared, memory.MemoryUSMHost]
)
def test_memory_classes_of_impossible_sizes(cls: Any, nbytes: int) -> None:
    with pytest.raises(isthmus.USMAllocationError):
        cls(nbytes, queue=isthmus.Queue("host"))


def test_conversions_to_impossible_sizes() -> None:
    wide = isthmus.broadcast_to(isthmus.ones(1, "u1", device="host"), (2**61,))
    for make in (
        lambda: wide.astype("f8"),
        lambda: isthmus.asarray(wide, "c16"),
        lambda: isthmus.array(wide),
        wide.copy,
    ):
        with pytest.raises(isthmus.USMAllocationError):
            make()
