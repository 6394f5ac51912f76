# SPDX-License-Identifier: Apache-2.0
"""The array of a batch with and without a pool: its time, and how often the driver allocates.

Both are measured alternately, so that load on the machine affects both.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

import isthmus
from isthmus.memory import PoolResource, ProviderResource, StatisticsResource

from .outcome import Comparison

if TYPE_CHECKING:
    from isthmus.memory import MemoryResource

    from .patches import Batch

_WARM_UP = 3  # batches that are not timed


def compare(queue: isthmus.Queue, batch: Batch, batches: int) -> Comparison:
    """Creates, fills and frees the array of ``batch`` that many times with each resource."""
    pool = PoolResource("device", queue.device, queue.context)
    driver = StatisticsResource(ProviderResource("device", queue.device, queue.context))
    pooled: list[float] = []
    unpooled: list[float] = []
    with queue:
        for _ in range(_WARM_UP + batches):
            pooled.append(_seconds(queue, pool, batch))
            unpooled.append(_seconds(queue, driver, batch))
    return Comparison(
        batches,
        batch.nbytes,
        median(pooled[_WARM_UP:]),
        median(unpooled[_WARM_UP:]),
        pool.maps,
        driver.total_count - _WARM_UP,
    )


def _seconds(queue: isthmus.Queue, resource: MemoryResource, batch: Batch) -> float:
    began = time.perf_counter()
    with isthmus.using(resource):
        array = isthmus.asarray(batch, kind="device")
        queue.wait()
        del array
    return time.perf_counter() - began
