# SPDX-License-Identifier: Apache-2.0
"""A store of measurements that is larger than its share of the device's memory.

Batches are uploaded on several streams. When the share is used up, the oldest batches are spilled
to the host. They return to the device when they are requested.
"""

from __future__ import annotations

import pickle
import sys

import numpy as np

import isthmus.compat.rmm as rmm
from isthmus.compat.rmm import DeviceBuffer
from isthmus.compat.rmm.pylibrmm.cuda_stream_pool import CudaStreamPool
from isthmus.compat.rmm.statistics import ProfilerRecords, enable_statistics, profiler

BATCH, BATCHES, SHARE = 1 << 20, 96, 32 << 20
records = ProfilerRecords()


class Store:
    """Batches by number, on the device while they fit and otherwise on the host."""

    def __init__(self) -> None:
        self.streams = CudaStreamPool(4)
        self.on_device: dict[int, DeviceBuffer] = {}
        self.on_host: dict[int, bytes] = {}
        self.spills = 0

    @profiler(records=records, name="put")
    def put(self, number: int, batch: np.ndarray) -> None:
        stream = self.streams.get_stream()
        self.on_device[number] = DeviceBuffer.to_device(batch, stream)
        stream.synchronize()

    @profiler(records=records, name="get")
    def get(self, number: int) -> np.ndarray:
        if number not in self.on_device:
            self.on_device[number] = pickle.loads(self.on_host.pop(number))
        return self.on_device[number].copy_to_host()

    def spill(self, nbytes: int) -> bool:
        """Failure callback: spills batches and returns whether the allocation should be retried."""
        freed = 0
        while self.on_device and freed < nbytes:
            oldest = next(iter(self.on_device))
            self.on_host[oldest] = pickle.dumps(self.on_device.pop(oldest), protocol=5)
            self.spills += 1
            freed += BATCH
        return freed > 0


def batch_of(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, BATCH, dtype=np.uint8)


def set_up(store: Store) -> None:
    """Sets up a pool with a limit for the store, spilling on failure, and statistics."""
    pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), "64MiB", "64MiB")
    limited = rmm.mr.LimitingResourceAdaptor(pool, SHARE)
    rmm.mr.set_current_device_resource(rmm.mr.FailureCallbackResourceAdaptor(limited, store.spill))
    enable_statistics()


def main() -> None:
    store = Store()
    set_up(store)
    for number in range(BATCHES):
        store.put(number, batch_of(number))
    on_device, on_host = len(store.on_device), len(store.on_host)
    for number in range(BATCHES):
        if not np.array_equal(store.get(number), batch_of(number)):
            sys.exit(f"batch {number} differs from the batch that was stored")
    counts = rmm.mr.get_current_device_resource().allocation_counts
    if counts.peak_bytes > SHARE:
        sys.exit(f"the peak of {counts.peak_bytes} bytes exceeds the limit of {SHARE}")
    print(f"{BATCHES} batches: {on_device} on the device, {on_host} on the host")
    print(f"all verified after {store.spills} spills; peak {counts.peak_bytes >> 20} MiB")
    put, get = records.records["put"], records.records["get"]
    print(f"put allocated {put.memory_total >> 20} MiB, get {get.memory_total >> 20} MiB")


if __name__ == "__main__":
    main()
