# SPDX-License-Identifier: Apache-2.0
"""``Buffer(1024)`` from a pool, created and dropped, compared with ``numpy.empty``.

On the host it may take at most 1.2 times as long as ``numpy.empty(1024, 'u1')``, with the pool
named by any keywords or as the current resource. From a pool of a CUDA device, if there is one, it
may take at most 1.3 times as long. For buffers without a resource, see default_path.py.
"""

from __future__ import annotations

from timeit import Timer

import numpy as np
from _timing import Report, interleaved

import isthmus
from isthmus.memory import PoolResource

HOST = isthmus.Device("host")
NAMES = {
    "Buffer": isthmus.Buffer,
    "host": HOST,
    "queue": HOST.default_queue,
    "pool": PoolResource("device", HOST),
    "empty": np.empty,
}
OF_A_POOL = (
    "resource=pool",
    "kind='device', resource=pool",
    "device=host, resource=pool",
    "device='host', resource=pool",
    "queue=queue, resource=pool",
    "alignment=64, resource=pool",
    "kind='device', device=host, resource=pool",
    "kind='device', device='host', resource=pool",
    "kind='device', queue=queue, resource=pool",
    "kind='device', queue=queue, alignment=64, resource=pool",
    "kind='device', device=host, alignment=64, resource=pool",
    "kind='device', device=host, queue=queue, alignment=64, resource=pool",
)
OF_THE_CURRENT = ("", "kind='device'", "device=host", "device='host'", "queue=queue")
ON_A_GPU = ("resource=gpu_pool", "queue=gpu_queue, resource=gpu_pool")


def main() -> None:
    """Prints a line for each form of call."""
    report = Report()
    print("From a pool:")
    compare(report, OF_A_POOL, "empty(1024, 'u1')", 1.2)
    with HOST, isthmus.using(NAMES["pool"]):
        print("The same, with the pool as current resource and the host as current device:")
        compare(report, OF_THE_CURRENT, "empty(1024, 'u1')", 1.2)
    gpus = [device for device in isthmus.devices() if device.backend == "cuda"]
    if not gpus:
        print("From a pool, on a GPU: absent, no CUDA device on this machine")
    for gpu in gpus[:1]:
        NAMES.update(gpu_pool=PoolResource("device", gpu), gpu_queue=isthmus.Queue(gpu))
        print("From a pool, on a GPU:")
        compare(report, ON_A_GPU, "empty(1024, 'u1')", 1.3)
        with gpu, isthmus.using(NAMES["gpu_pool"]):
            print("The same, with the pool as current resource and the GPU as current device:")
            compare(report, ("",), "empty(1024, 'u1')", 1.3)
    report.finish()


def compare(report: Report, ways: tuple[str, ...], beside: str, most: float) -> None:
    """Measures all forms and NumPy alternately, and reports the medians."""
    made = {way: f"Buffer(1024, {way})" if way else "Buffer(1024)" for way in ways}
    taken = interleaved(
        {each: Timer(each, globals=NAMES) for each in (beside, *made.values())}, budget=3.0
    )
    for each in made.values():
        report.against(each, taken[each], (f"numpy.{beside}", taken[beside]), most)


if __name__ == "__main__":
    main()
