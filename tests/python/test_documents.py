# SPDX-License-Identifier: Apache-2.0
"""The Python blocks of document 000, run one after the other in one namespace.

The blocks use names that they do not define, which this file provides: `submit_kernel`, and the
variables of the dictionary example. "gpu:0" and "gpu:1" need two GPUs: that block runs unchanged
where they exist, and everywhere on two simulated devices in a process of its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support import python

import isthmus

DOCUMENT = Path(__file__).parent / "documents" / "000_usm_memory_instructions.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
TWO_DEVICES = next(block for block in BLOCKS if "gpu:0" in block)


def submit_kernel(mem: isthmus.Buffer) -> isthmus.Event:
    queue: isthmus.Queue = mem.sycl_queue  # type: ignore[attr-defined]
    try:
        return queue.submit(lambda view: None, mem)
    except isthmus.UnsupportedError:  # the host cannot access memory of this device
        return queue.submit(lambda: None)


def test_blocks() -> None:
    space: dict[str, Any] = {"submit_kernel": submit_kernel}
    for block in BLOCKS:
        if block is TWO_DEVICES:
            continue
        if "readonly_flag" in block:
            told = space["mem"].__sycl_usm_array_interface__
            space["pointer"], space["readonly_flag"] = told["data"]
            space["nbytes"], space["queue"] = space["mem"].nbytes, space["q"]
        exec(compile(block, DOCUMENT.name, "exec"), space)
    check_outcome(space)


def check_outcome(space: dict[str, Any]) -> None:
    assert space["result"].tolist() == [1, 2, 3, 4]
    mem, view, queue = space["mem"], space["view"], space["q"]
    assert space["interface"] == {
        "data": (mem._pointer, False),
        "shape": (1024,),
        "strides": None,
        "typestr": "|u1",
        "version": 1,
        "syclobj": queue,
    }
    assert space["accepts_usm_memory"](mem) == (mem._pointer, 1024, queue)
    with pytest.raises(TypeError):
        space["accepts_usm_memory"](b"")
    space["bad_example"]()  # safe in this library
    space["good_example"]()
    view.memset(5)
    assert view.tobytes() == bytes([5]) * 100
    x = space["x"]
    assert (x.usm_type, x.shape, x.dtype) == ("device", (100, 100), "f4")
    assert x.sycl_queue == isthmus.current_queue()
    assert (x.to_numpy() == 1).all()


def test_two_devices_as_written() -> None:
    space: dict[str, Any] = {}
    exec(BLOCKS[0], space)
    gpus = [device for device in isthmus.devices("gpu") if device.backend != "sim"]
    if len(gpus) >= 2:
        exec(TWO_DEVICES, space)
        return
    with pytest.raises(isthmus.DeviceNotFoundError, match=r"gpu:[01]"):
        exec(TWO_DEVICES, space)


CHECK = """
assert q1.device != q2.device
assert mem1.sycl_queue == q1
mem1.memset(7)
for direct in (lambda: mem1.on_queue(q2), lambda: q2.submit(len, mem1)):
    try:
        direct()
    except isthmus.WrongContextError:
        pass
    else:
        assert q1.context == q2.context, "cannot directly use mem1 with q2"
mem2 = MemoryUSMDevice(1024, queue=q2)
mem2.copy_from_device(mem1)
assert mem2.tobytes() == bytes([7]) * 1024
"""


def test_two_simulated_devices() -> None:
    block = TWO_DEVICES.replace("gpu:", "sim:")
    python(BLOCKS[0] + block + CHECK, ISTHMUS_SIM="devices=2")
