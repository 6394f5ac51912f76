"""``Buffer(1024)``, made and dropped, beside ``numpy.empty`` of as many bytes.

On the host, out of the driver's hands at most twice the time of ``numpy.empty(1024, numpy.uint8)``;
out of a pool's at most 1.2 times that of ``numpy.empty(1024, 'u1')``, named in any way and where
the pool is the current resource. Out of a pool of a CUDA device, where there is one, at most 1.3
times.
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
    "uint8": np.uint8,
}
OF_THE_DRIVER = (
    "kind='device', queue=queue",
    "kind='shared', queue=queue",
    "kind='host', queue=queue",
)
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
    """Prints a line for each way of making one."""
    report = Report()
    print("Out of the driver's hands:")
    compare(report, OF_THE_DRIVER, "empty(1024, uint8)", 2.0)
    with HOST:
        compare(report, ("",), "empty(1024, uint8)", 2.0)
    print("Out of a pool:")
    compare(report, OF_A_POOL, "empty(1024, 'u1')", 1.2)
    with HOST, isthmus.using(NAMES["pool"]):
        print("The same, that being the current resource, and the host the current device:")
        compare(report, OF_THE_CURRENT, "empty(1024, 'u1')", 1.2)
    gpus = [device for device in isthmus.devices() if device.backend == "cuda"]
    if not gpus:
        print("Out of a pool, on a GPU: absent, no CUDA device on this machine")
    for gpu in gpus[:1]:
        NAMES.update(gpu_pool=PoolResource("device", gpu), gpu_queue=isthmus.Queue(gpu))
        print("Out of a pool, on a GPU:")
        compare(report, ON_A_GPU, "empty(1024, 'u1')", 1.3)
        with gpu, isthmus.using(NAMES["gpu_pool"]):
            print("The same, that being the current resource, and the GPU the current device:")
            compare(report, ("",), "empty(1024, 'u1')", 1.3)
    report.finish()


def compare(report: Report, ways: tuple[str, ...], beside: str, most: float) -> None:
    """All of them and NumPy's in turn; their medians."""
    made = {way: f"Buffer(1024, {way})" if way else "Buffer(1024)" for way in ways}
    taken = interleaved(
        {each: Timer(each, globals=NAMES) for each in (beside, *made.values())}, budget=3.0
    )
    for each in made.values():
        report.against(each, taken[each], (f"numpy.{beside}", taken[beside]), most)


if __name__ == "__main__":
    main()
