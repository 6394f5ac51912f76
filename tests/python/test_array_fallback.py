# SPDX-License-Identifier: Apache-2.0
"""fallback= of isthmus.empty and related functions: another kind where memory is exhausted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import message_has, sim

import isthmus
from isthmus import Device, Queue
from isthmus.memory import LimitResource, PoolResource, StatisticsResource

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = "1MiB"
HALF = 150_000  # elements, which take more than half of SMALL


@pytest.mark.parametrize("fallback", ["shared", "host"])
def test_the_other_kind_where_the_first_has_none(fallback: str) -> None:
    with sim(capacity=SMALL).default_queue:
        made = [isthmus.empty(HALF, fallback=fallback) for _ in range(3)]
    assert [each.kind for each in made] == ["device", fallback, fallback]
    made[1].fill(7)
    assert (np.asarray(made[1]) == 7).all()


MAKERS: list[Callable[..., isthmus.Array]] = [
    lambda **given: isthmus.zeros(HALF, **given),
    lambda **given: isthmus.ones(HALF, **given),
    lambda **given: isthmus.full(HALF, 3.0, "float32", **given),
    lambda **given: isthmus.empty_like(np.zeros(HALF, np.float32), **given),
    lambda **given: isthmus.zeros_like(np.zeros(HALF, np.float32), **given),
    lambda **given: isthmus.ones_like(np.zeros(HALF, np.float32), **given),
    lambda **given: isthmus.full_like(np.zeros(HALF, np.float32), 3, **given),
    lambda **given: isthmus.asarray(np.ones(HALF, np.float32), **given),
    lambda **given: isthmus.array(np.ones(HALF, np.float32), **given),
    lambda **given: isthmus.scatter(np.ones(HALF, np.float32), [isthmus.current_device()], **given)[
        0
    ],
]


@pytest.mark.parametrize("make", MAKERS)
def test_all_that_make_arrays(make: Callable[..., isthmus.Array]) -> None:
    with sim(capacity=SMALL).default_queue:
        first = make(fallback="host")
        with pytest.raises(isthmus.USMAllocationError):
            make()
        second = make(fallback="host")
    assert (first.kind, second.kind) == ("device", "host")
    first_value, second_value = (each.to_numpy()[5] for each in (first, second))
    if make is not MAKERS[3]:
        assert first_value == second_value


def test_every_back_end_has_the_first_kind_where_it_can(dev: Device, q: Queue, kind: str) -> None:
    for fallback in {"shared", "host"} & set(dev.kinds) - {kind}:
        assert isthmus.empty(10, kind=kind, queue=q, fallback=fallback).kind == kind


def test_fallback_of_a_resource(q: Queue) -> None:
    if "shared" not in q.device.kinds:
        pytest.skip("no shared kind")
    limited = LimitResource(PoolResource("device", q.device), 1000)
    made = [isthmus.empty(600, "uint8", resource=limited, fallback="shared") for _ in range(2)]
    assert [each.kind for each in made] == ["device", "shared"]
    assert limited.in_use_bytes == 600


def test_current_resources_are_both(q: Queue) -> None:
    if "shared" not in q.device.kinds:
        pytest.skip("no shared kind")
    counted = StatisticsResource(PoolResource("shared", q.device))
    limited = LimitResource(PoolResource("device", q.device), 1000)
    with q, isthmus.using(counted), isthmus.using(limited):
        made = [isthmus.empty(600, "uint8", fallback="shared") for _ in range(2)]
    assert (limited.in_use_bytes, counted.current_bytes) == (600, 600)
    assert made[1].is_shared


def test_neither_has_memory() -> None:
    dev = sim(capacity=SMALL)
    short = LimitResource(PoolResource("shared", dev), 100)
    with isthmus.using(short), pytest.raises(isthmus.USMAllocationError):
        isthmus.empty(2 << 20, "uint8", queue=Queue(dev), fallback="shared")


@pytest.mark.parametrize(
    ("kind", "fallback"),
    [("device", "device"), ("shared", "shared"), ("device", "managed"), ("device", 5),
     ("host", "host"), ("device", b"host")],
)  # fmt: skip
def test_what_is_no_fallback(kind: str, fallback: Any) -> None:
    with pytest.raises(isthmus.InvalidArgumentError) as caught:
        isthmus.empty(10, kind=kind, fallback=fallback, device="host")
    message_has(caught, ["fallback", kind, repr(fallback)])


def test_a_kind_that_the_device_has_not() -> None:
    dev = sim(kinds="device+host")
    with pytest.raises(isthmus.UnsupportedError):
        isthmus.empty(10, device=dev, fallback="shared")
