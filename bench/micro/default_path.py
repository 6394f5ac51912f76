# SPDX-License-Identifier: Apache-2.0
"""Allocations without arguments, created and dropped, compared with ``numpy.empty``.

``Buffer(n)``, ``empty(n)`` and ``MemoryUSMDevice(n)`` of 1,024 bytes and 1 MiB come from the
default pools of the current device. The devices are the host, the OpenCL CPU device, SYCL's and a
CUDA device, as far as they are present. Each may take at most 1.3 times as long as ``numpy.empty``
of as many bytes in the same run, and 1.6 times with work of the device pending on the queue. If
NumPy's allocator does not keep pages of 1 MiB, it maps and unmaps them: the line includes its time.
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
    """Prints a line for each form of call, size and device."""
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
    """Measures all forms and NumPy alternately, and reports the medians."""
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
    """Measures with unfinished work on the queue, then with memory freed after that work."""
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
                print("no work was pending any more at the end of the measurement")
        finally:
            gate.complete()
            started.wait()


def held_fill(target: isthmus.Buffer, gate: isthmus.Event) -> isthmus.Event:
    """Submits a fill that starts when the event completes; for devices that are the CPU."""
    return target.fill(1, after=[gate], blocking=False)


def long_fills(target: isthmus.Buffer) -> isthmus.Event:
    """Submits fills that keep a GPU of up to 5 TB/s busy for both comparisons."""
    for _ in range(int(2 * BUDGET * len(SIZES) * 5e12 / target.nbytes)):
        last = target.fill(1, blocking=False)
    return last


if __name__ == "__main__":
    main()
