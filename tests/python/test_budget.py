# SPDX-License-Identifier: Apache-2.0
"""Limits of pools: as numbers and as text, budgets of several pools, decay."""

from __future__ import annotations

import gc
import math

import pytest
from support import sim

import isthmus
from isthmus import Budget, Device, Queue
from isthmus.memory import PoolResource, USMAllocationError

MIB = 1 << 20


def test_limits_as_text(dev: Device, kind: str) -> None:
    pool = PoolResource(
        kind, dev, limit_bytes="8MiB", soft_limit_bytes="1.5MiB", growth_bytes="1MiB"
    )
    assert (pool.limit_bytes, pool.soft_limit_bytes) == (8 * MIB, 3 * MIB // 2)
    assert (pool.budget, pool.decay) == (None, None)
    with pytest.raises(USMAllocationError, match="at most 8 MiB"):
        pool.allocate(9 * MIB)
    pool.allocate(2 * MIB).free()
    assert pool.trim("4MiB") == 0


def test_limits_as_shares(dev: Device, kind: str) -> None:
    pool = PoolResource(kind, dev, limit_bytes="80%", soft_limit_bytes="12.5%")
    assert pool.limit_bytes is not None
    assert pool.soft_limit_bytes is not None
    assert pool.limit_bytes == pytest.approx(6.4 * pool.soft_limit_bytes, abs=10)
    whole = PoolResource(kind, dev, limit_bytes="100%").limit_bytes
    assert whole is not None
    assert pool.limit_bytes == pytest.approx(0.8 * whole, abs=10)


def test_shares_are_of_the_devices_memory() -> None:
    device = sim(capacity="64MiB")
    assert PoolResource("device", device, limit_bytes="50%").limit_bytes == 32 * MIB
    assert Budget("25%", device).limit_bytes == 16 * MIB
    of_the_host = Budget("100%", device, "host").limit_bytes
    assert of_the_host == Budget("100%", "host", "host").limit_bytes
    assert of_the_host > 64 * MIB


def test_a_share_of_nothing_names_the_required_argument() -> None:
    with pytest.raises(ValueError, match=r"'10%' is a share, which needs a device.* MiB"):
        Budget("10%")
    assert Budget("10%", "host", "host").limit_bytes > 0


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"limit_bytes": "80 %%"}, ValueError, "limit_bytes: '80 %%' is not a number of bytes"),
        ({"limit_bytes": "2GB/s"}, ValueError, "KiB, MiB"),
        ({"soft_limit_bytes": "101%"}, ValueError, "0 % to 100 %"),
        ({"soft_limit_bytes": 0}, ValueError, "above 0"),
        ({"soft_limit_bytes": -1}, ValueError, "0 or more"),
        ({"limit_bytes": 1.5}, TypeError, "integer"),
        ({"limit_bytes": 10, "soft_limit_bytes": 11}, ValueError, "11 bytes exceeds"),
        ({"limit_bytes": "0%"}, ValueError, "above 0"),
        ({"budget": 5}, TypeError, "Budget or None, not int"),
        ({"decay": 0}, ValueError, "above 0 seconds"),
        ({"decay": -1.0}, ValueError, "above 0 seconds"),
        ({"decay": math.nan}, ValueError, "above 0 seconds"),
        ({"decay": "1s"}, TypeError, "real number"),
    ],
    ids=str,
)
def test_bad_limits(options: dict[str, object], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        PoolResource("host", "host", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ((0,), ValueError, "0 bytes"),
        ((-1,), ValueError, "0 or more"),
        (("80%",), ValueError, "limit: '80%' is a share"),
        (("x",), ValueError, "not a number of bytes"),
        ((2.5,), TypeError, "integer"),
        (("1%", 7), TypeError, "."),
        (("1%", "host", "odd"), ValueError, "odd"),
        ((2**64,), ValueError, "63 bits"),
        ((), TypeError, "."),
    ],
    ids=str,
)
def test_bad_budgets(arguments: tuple[object, ...], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        Budget(*arguments)  # type: ignore[arg-type]


def test_a_budget_of_two_pools(q: Queue, kind: str) -> None:
    budget = Budget("24MiB")
    first = PoolResource(kind, q.device, growth_bytes=MIB, budget=budget)
    second = PoolResource(kind, q.device, growth_bytes=MIB, budget=budget)
    assert first.budget is budget
    assert (budget.limit_bytes, budget.pools, budget.held_bytes) == (24 * MIB, 2, 0)
    first.allocate(16 * MIB, queue=q).free()
    assert budget.held_bytes == first.held_bytes >= 16 * MIB
    block = second.allocate(16 * MIB, queue=q)  # for which the first pool releases memory
    assert first.held_bytes < 16 * MIB
    assert budget.held_bytes == first.held_bytes + second.held_bytes <= 24 * MIB
    assert budget.released_bytes > 0
    assert budget.refusals > 0
    with pytest.raises(USMAllocationError, match=r"of a budget of 24 MiB .* by a pool of "):
        first.allocate(16 * MIB, queue=q)
    assert "25165824 bytes" in repr(budget)
    assert "2 pools" in repr(budget)
    assert isinstance(budget, isthmus.Budget)
    block.free()
    del first, second, block
    gc.collect()
    assert budget.peak_held_bytes <= 24 * MIB


def test_a_budget_is_freed_after_its_pools() -> None:
    pool = PoolResource("host", "host", budget=Budget(4 * MIB))
    gc.collect()
    with pytest.raises(USMAllocationError, match="budget"):
        pool.allocate(5 * MIB)
    assert pool.budget is not None
    assert pool.budget.pools == 1


def test_decay() -> None:
    for seconds in (1e-9, 1e6, math.inf):
        assert PoolResource("host", "host", decay=seconds).decay == seconds
