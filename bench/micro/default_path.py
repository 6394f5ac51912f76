"""Memory without arguments, made and dropped, beside ``numpy.empty`` of as many bytes.

``Buffer(n)``, ``empty(n)`` and ``MemoryUSMDevice(n)`` of 1,024 bytes and 1 MiB come from the
default pools of the current device: the host, the OpenCL CPU device, SYCL's and a CUDA device,
those that there are. Each takes at most 1.3 times ``numpy.empty`` in the same run, and 1.6 times
with work of the device pending on the queue. NumPy's allocator maps and unmaps pages for 1 MiB
where it does not keep them: the line says how much it took.
"""

from __future__ import annotations

from timeit import Timer
from typing import Any

import numpy as np
from _timing import Report, interleaved

import isthmus

BOUND, BOUND_PENDING = 1.3, 1.6
SIZES = (1024, 1 << 20)
WAYS = ("Buffer({n})", "empty({n}, 'u1')", "MemoryUSMDevice({n})")
BACKENDS = ("host", "opencl:cpu", "sycl:cpu", "cuda")
BUDGET = 2.0  # seconds for a size


def main() -> None:
    """Prints a line for each way, size and device."""
    report = Report()
    for name in BACKENDS:
        try:
            device = isthmus.Device(name)
        except isthmus.DeviceNotFoundError:
            print(f"On {name}: absent")
            continue
        with device:
            print(f"On {device.filter}:")
            compare(report, BOUND)
            if device.backend != "host":
                print(f"On {device.filter}, with work pending:")
                pending(report, device)
    report.finish()


def compare(report: Report, most: float) -> None:
    """All ways and NumPy's in turn; their medians."""
    names: dict[str, Any] = {
        "Buffer": isthmus.Buffer,
        "empty": isthmus.empty,
        "MemoryUSMDevice": isthmus.memory.MemoryUSMDevice,
        "numpy": np,
    }
    for nbytes in SIZES:
        peer = f"numpy.empty({nbytes}, 'u1')"
        made = [way.format(n=nbytes) for way in WAYS]
        taken = interleaved(
            {each: Timer(each, globals=names) for each in (peer, *made)}, budget=BUDGET
        )
        for each in made:
            report.against(each, taken[each], (peer, taken[peer]), most)


def pending(report: Report, device: isthmus.Device) -> None:
    """After work of the queue that does not end meanwhile; then with memory freed behind it."""
    gate = isthmus.Event()
    nbytes = 16 << 30 if device.backend == "cuda" else 64 << 20
    with isthmus.Buffer(nbytes, resource=isthmus.memory.ProviderResource("device")) as target:
        started = long_fills(target) if device.backend == "cuda" else held_fill(target, gate)
        try:
            compare(report, BOUND_PENDING)
            for size in SIZES:
                isthmus.Buffer(size).fill(1, blocking=False)
            print(f"On {device.filter}, after such buffers were used and dropped:")
            compare(report, BOUND_PENDING)
            if started.done:
                print("the work ended before the measurement: there was none pending at its end")
        finally:
            gate.complete()
            started.wait()


def held_fill(target: isthmus.Buffer, gate: isthmus.Event) -> isthmus.Event:
    """The driver starts it once the event is complete: such a device is the CPU itself."""
    return target.fill(1, after=[gate], blocking=False)


def long_fills(target: isthmus.Buffer) -> isthmus.Event:
    """Keep a GPU busy for both comparisons, at up to 5 TB/s."""
    for _ in range(int(2 * BUDGET * len(SIZES) * 5e12 / target.nbytes)):
        last = target.fill(1, blocking=False)
    return last


if __name__ == "__main__":
    main()
