# SPDX-License-Identifier: Apache-2.0
"""Invalid calls of a unified buffer raise the right error and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import message_has
from unified_support import TELLS_PAGES, read_on_device, two_copies

import isthmus
from isthmus import (
    BufferState,
    Device,
    InvalidArgumentError,
    OutOfRangeError,
    Queue,
    UnifiedBuffer,
    USMAllocationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ARGUMENTS: dict[str, tuple[Any, dict[str, Any], type[Exception], list[Any]]] = {
    "negative": ((3, -1), {}, ValueError, ["(3, -1)", "negative"]),
    "empty": ((3, 0), {}, ValueError, ["(3, 0)", "no bytes"]),
    "dimensions": ((1,) * 65, {}, ValueError, ["64", "65"]),
    "text": ("ten", {}, TypeError, []),
    "fraction": (1.5, {}, TypeError, []),
    "nothing": (None, {}, TypeError, []),
    "huge": ((1 << 40, 1 << 40), {}, USMAllocationError, ["2**63"]),
    "objects": (3, {"dtype": object}, TypeError, ["objects"]),
    "nested_objects": (3, {"dtype": [("a", "O")]}, TypeError, ["objects"]),
    "no_dtype": (3, {"dtype": "quux"}, TypeError, ["quux"]),
    "no_size": (3, {"dtype": "V0"}, ValueError, ["no bytes"]),
    "granularity": (3, {"granularity": "huge"}, ValueError, ["granularity", "'auto'", "'huge'"]),
    "on_conflict": (3, {"on_conflict": "both"}, ValueError, ["on_conflict", "'device'", "'both'"]),
    "unhashable": (3, {"on_conflict": ["host"]}, ValueError, ["on_conflict"]),
    "tracking": (3, {"tracking": "magic"}, ValueError, ["tracking", "'hashes'", "'magic'"]),
    "device": (3, {"device": "quantum"}, ValueError, ["quantum"]),
    "no_device": (3, {"device": 7}, TypeError, []),
    "queue": (3, {"queue": "fast"}, TypeError, ["queue"]),
    "resource": (3, {"resource": 5}, TypeError, ["resource"]),
    "unknown": (3, {"colour": "red"}, TypeError, ["colour"]),
}


@pytest.mark.parametrize("which", ARGUMENTS)
def test_arguments(which: str) -> None:
    shape, options, error, parts = ARGUMENTS[which]
    with pytest.raises(error) as raised:
        UnifiedBuffer(shape, **options)
    message_has(raised, parts)


def test_options_are_keywords() -> None:
    with pytest.raises(TypeError):
        UnifiedBuffer(3, np.float32, True)  # type: ignore[misc]


def test_queues_of_other_devices_and_closed_ones(dev: Device) -> None:
    with pytest.raises((ValueError, TypeError)):
        UnifiedBuffer(3, queue=Queue("host"), device=dev if dev != Device("host") else "opencl")
    closed = Queue(dev)
    closed.close()
    with pytest.raises(isthmus.ClosedError):
        UnifiedBuffer(3, queue=closed)


@pytest.mark.skipif(TELLS_PAGES, reason="the kernel tells written pages")
def test_pages_without_write_notification() -> None:
    buf = UnifiedBuffer(100_000, tracking="pages")
    with pytest.raises(isthmus.UnsupportedError):
        buf.host  # noqa: B018


SOURCES: dict[str, tuple[Any, type[Exception], list[Any]]] = {
    "shape": (np.zeros((3, 5), "i4"), ValueError, ["(3, 5)", "(10, 20)"]),
    "dimensions": (np.zeros((2, 10, 20), np.int32), ValueError, ["(2, 10, 20)", "(10, 20)"]),
    "fractions": (np.full((10, 20), 0.5), TypeError, ["float64", "int32"]),
    "fraction": (1.5, TypeError, ["float64", "int32"]),
    "complex": (1j, TypeError, ["complex128", "int32"]),
    "too_large": (1 << 31, OverflowError, [1 << 31, "int32"]),
    "too_small": ([-(1 << 31) - 1] * 20, OverflowError, ["int32"]),
    "no_integer_is_so_large": (1 << 80, TypeError, ["object"]),
    "text": ("abc", TypeError, ["int32"]),
    "nothing": (None, TypeError, ["object", "int32"]),
    "ragged": ([[1, 2], [3]], ValueError, []),
    "times": (np.zeros(20, "M8[s]"), TypeError, ["datetime64", "int32"]),
}


@pytest.mark.parametrize("which", SOURCES)
@pytest.mark.sim_and_host
def test_sources(dev: Device, which: str) -> None:
    source, error, parts = SOURCES[which]
    buf = two_copies(dev, (10, 20), dtype=np.int32)
    buf.fill(3).sync_to_device()
    with pytest.raises(error) as raised:
        buf.copy_from(source)
    message_has(raised, parts)
    assert buf.state is BufferState.SYNCHRONIZED
    assert (buf.host == 3).all()
    assert (read_on_device(buf) == 3).all()


RANGES: dict[str, tuple[Any, type[Exception], list[Any]]] = {
    "beyond": ((5, 11), OutOfRangeError, ["5 to 11", "0 to 10"]),
    "before": ((-1, 5), OutOfRangeError, ["-1 to 5"]),
    "reversed": ((6, 5), OutOfRangeError, ["6 to 5"]),
    "slice_beyond": (slice(0, 12), OutOfRangeError, ["0 to 12"]),
    "slice_before": (slice(-11, None), OutOfRangeError, ["-1 to 10"]),
    "step": (slice(0, 10, 2), ValueError, ["step 1", "2"]),
    "backwards": (slice(None, None, -1), ValueError, ["step 1"]),
    "integer": (5, TypeError, ["(start, stop)", "int"]),
    "three": ((1, 2, 3), TypeError, ["(start, stop)"]),
    "list": ([1, 2], TypeError, ["list"]),
    "fractions": ((0.5, 2), TypeError, []),
    "texts": (("a", "b"), TypeError, []),
}
TAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "sync_to_device": lambda buf, rows: buf.sync_to_device(rows),
    "sync_to_host": lambda buf, rows: buf.sync_to_host(rows),
    "prefetch_host": lambda buf, rows: buf.prefetch_host(rows),
    "mark_host_dirty": lambda buf, rows: buf.mark_host_dirty(rows),
    "mark_device_dirty": lambda buf, rows: buf.mark_device_dirty(rows),
    "resolve": lambda buf, rows: buf.resolve("host", rows),
    "host_read": lambda buf, rows: buf.host_read(rows).__enter__(),
    "host_write": lambda buf, rows: buf.host_write(rows).__enter__(),
    "device_read": lambda buf, rows: buf.device_read(rows).__enter__(),
    "device_write": lambda buf, rows: buf.device_write(rows).__enter__(),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("which", RANGES)
def test_ranges(taker: str, which: str) -> None:
    rows, error, parts = RANGES[which]
    buf = two_copies(Device("host"), (10, 20))
    buf.fill(1).sync_to_device()
    with pytest.raises(error) as raised:
        TAKERS[taker](buf, rows)
    message_has(raised, parts)
    assert buf.state is BufferState.SYNCHRONIZED


@pytest.mark.parametrize("taker", TAKERS)
def test_ranges_without_dimensions(taker: str) -> None:
    buf = two_copies(Device("host"), ()).fill(1)
    buf.sync_to_device()
    with pytest.raises(ValueError, match="no ranges"):
        TAKERS[taker](buf, (0, 1))


def test_marks_of_copies_that_are_not_there(dev: Device) -> None:
    buf = two_copies(dev, 100)
    with pytest.raises(InvalidArgumentError, match="host copy does not exist"):
        buf.mark_host_dirty()
    with pytest.raises(InvalidArgumentError, match="device copy does not exist"):
        buf.mark_device_dirty()
    assert buf.state is BufferState.UNINITIALIZED


def test_winners(dev: Device) -> None:
    buf = two_copies(dev, 100)
    for winner in ("both", None, 1, ""):
        with pytest.raises(ValueError, match="winner"):
            buf.resolve(winner)


def test_queues_of_calls(dev: Device) -> None:
    buf = two_copies(dev, 100).fill(1)
    for call in (buf.sync_to_device, buf.prefetch_host):
        with pytest.raises(TypeError, match="queue"):
            call(queue="fast")
    other = Queue("opencl" if dev == Device("host") else "host")
    with pytest.raises(isthmus.WrongContextError):
        buf.sync_to_device(queue=other)
    assert buf.state is BufferState.HOST_DIRTY
    buf.sync_to_device(queue=Queue(dev))
    assert (read_on_device(buf) == 1).all()


def test_shapes_that_do_not_fit(dev: Device) -> None:
    buf = two_copies(dev, (6, 4))
    for shape in ((5, 5), (-1, 5), (-1, -1), (-2, -12), (), 23):
        with pytest.raises(ValueError, match="cannot reshape"):
            buf.reshape(shape)
    with pytest.raises(TypeError):
        buf.reshape("ab")
    with pytest.raises(TypeError, match="without dimensions"):
        len(two_copies(dev, ()))
    assert buf.reshape(np.int64(24)).shape == (24,)


def test_assignments_that_do_not_fit(dev: Device) -> None:
    buf = two_copies(dev, (6, 4)).fill(1)
    for key, value in ((0, [1, 2]), ((9, 9), 1), (slice(0, 2), "abc")):
        with pytest.raises((ValueError, IndexError)):
            buf[key] = value
    assert (buf.host == 1).all()
    for name in ("shape", "dtype", "nbytes", "host", "state"):
        with pytest.raises(AttributeError):
            setattr(buf, name, None)
