# SPDX-License-Identifier: Apache-2.0
"""Random operations on buffers of one device and of three, compared with plain bytes.

tests/stress/random_operations_test.cpp does the same on the host and on simulated devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, multiple, rule
from support import intel_device, is_memory_released, sim

from isthmus import Buffer, Device, Event, Queue, _core
from isthmus.memory import live

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = st.integers(0, 300) | st.sampled_from([4096, 100_000])
PATTERNS = st.sampled_from([1, 2, 4, 8, 16]).flatmap(lambda n: st.binary(min_size=n, max_size=n))
FRACTIONS = st.floats(0, 1)


class Model:
    """A buffer, the bytes that it must contain, and the offset of its view in them."""

    def __init__(self, buffer: Buffer, data: bytearray, start: int = 0) -> None:
        self.buffer, self.data, self.start = buffer, data, start

    @property
    def nbytes(self) -> int:
        return self.buffer.nbytes

    def expected(self) -> bytearray:
        return self.data[self.start : self.start + self.nbytes]

    def write(self, offset: int, new: bytes) -> None:
        begin = self.start + offset
        self.data[begin : begin + len(new)] = new


class Machine(RuleBasedStateMachine):
    """Holds buffers, and every event until the end."""

    make_devices: Callable[[], tuple[Device, ...]]
    devices: tuple[Device, ...] = ()
    models: Bundle[Model] = Bundle("models")

    def __init__(self) -> None:
        super().__init__()
        self.before = live()
        self.devices = self.make_devices()
        self.queues = [Queue(device) for device in self.devices for _ in range(2)]
        self.events: list[Event] = []
        self.gates: list[Event] = []
        self.results: list[tuple[bytearray, bytes]] = []

    def settings_of(self, draw: Any) -> dict[str, Any]:
        """The arguments of an operation: blocking, or after a gate, or after an earlier event."""
        after = [self.events[-1]] if draw.draw(st.booleans()) and self.events else []
        # A blocking call must not be ordered after a gate that only the teardown opens.
        if self.gates or not draw.draw(st.booleans()):
            return {"blocking": False, "after": after}
        return {"blocking": True, "after": after}

    def keep(self, event: Event | None) -> None:
        if event is not None:
            self.events.append(event)

    @rule(target=models, nbytes=SIZES, kind=st.sampled_from(["device", "shared", "host"]),
          draw=st.data())  # fmt: skip
    def make(self, nbytes: int, kind: str, draw: Any) -> Model:
        queue = draw.draw(st.sampled_from(self.queues))
        buffer = Buffer(nbytes, kind=kind, queue=queue)
        buffer.fill(0, blocking=False)
        return Model(buffer, bytearray(nbytes))

    @rule(target=models, of=models, low=FRACTIONS, high=FRACTIONS)
    def cut(self, of: Model, low: float, high: float) -> Model:
        start, stop = sorted((int(low * of.nbytes), int(high * of.nbytes)))
        return Model(of.buffer[start:stop], of.data, of.start + start)

    @rule(target=models, of=models, draw=st.data())
    def other_queue(self, of: Model, draw: Any) -> Any:
        fitting = [queue for queue in self.queues if queue.context == of.buffer.context]
        if not fitting:
            return multiple()
        queue = draw.draw(st.sampled_from(fitting))
        return Model(of.buffer.on_queue(queue), of.data, of.start)

    @rule(of=models, pattern=PATTERNS, low=FRACTIONS, high=FRACTIONS, draw=st.data())
    def fill(self, of: Model, pattern: bytes, low: float, high: float, draw: Any) -> None:
        offset = int(low * of.nbytes)
        count = int(high * (of.nbytes - offset)) // len(pattern)
        nbytes = count * len(pattern)
        self.keep(of.buffer.fill(pattern, offset=offset, nbytes=nbytes, **self.settings_of(draw)))
        of.write(offset, pattern * count)

    @rule(of=models, data=st.binary(max_size=300), low=FRACTIONS, draw=st.data())
    def copy_in(self, of: Model, data: bytes, low: float, draw: Any) -> None:
        offset = int(low * of.nbytes)
        data = data[: of.nbytes - offset]
        source = bytearray(data)
        self.keep(of.buffer.copy_from(source, offset=offset, **self.settings_of(draw)))
        of.write(offset, data)

    @rule(of=models, low=FRACTIONS, high=FRACTIONS, draw=st.data())
    def copy_out(self, of: Model, low: float, high: float, draw: Any) -> None:
        start, stop = sorted((int(low * of.nbytes), int(high * of.nbytes)))
        got = bytearray(stop - start)
        how = self.settings_of(draw)
        self.keep(of.buffer.copy_to(got, offset=start, nbytes=stop - start, **how))
        self.results.append((got, bytes(of.expected()[start:stop])))

    @rule(to=models, of=models, low=FRACTIONS, high=FRACTIONS, draw=st.data())
    def copy(self, to: Model, of: Model, low: float, high: float, draw: Any) -> None:
        if to.data is of.data:
            return  # the two may overlap
        offset, src_offset = int(low * to.nbytes), int(high * of.nbytes)
        nbytes = min(to.nbytes - offset, of.nbytes - src_offset)
        how = self.settings_of(draw)
        self.keep(
            to.buffer.copy_from(
                of.buffer, nbytes=nbytes, offset=offset, src_offset=src_offset, **how
            )
        )
        to.write(offset, bytes(of.expected()[src_offset : src_offset + nbytes]))

    @rule(to=models, of=models, width=st.integers(0, 20), height=st.integers(0, 10),
          gap=st.integers(0, 9), draw=st.data())  # fmt: skip
    def copy_2d(self, to: Model, of: Model, width: int, height: int, gap: int, draw: Any) -> None:
        pitch = width + gap
        extent = (height - 1) * pitch + width if width and height else 0
        if to.data is of.data or extent > to.nbytes or width * height > of.nbytes:
            return
        how = self.settings_of(draw)
        self.keep(to.buffer.copy_from_2d(of.buffer, width, height, pitch=pitch, **how))
        rows = bytes(of.expected())
        for row in range(height):
            to.write(row * pitch, rows[row * width : (row + 1) * width])

    @rule(of=models, draw=st.data())
    def function(self, of: Model, draw: Any) -> None:
        device = of.buffer.device
        if of.buffer.kind == "device" and "run_functions" not in device.capabilities:
            return

        def work(view: memoryview) -> None:
            view[:] = bytes(255 - byte for byte in view)

        if of.nbytes <= 4096:
            self.events.append(of.buffer.queue.submit(work, of.buffer))
            of.write(0, bytes(255 - byte for byte in of.expected()))

    @rule(of=models)
    def hold_back(self, of: Model) -> None:
        """Later operations on this queue wait for a gate."""
        if "wait_for_host" in of.buffer.device.capabilities and len(self.gates) < 3:
            gate = Event()
            self.gates.append(gate)
            self.events.append(of.buffer.queue.fence([gate]))

    @rule()
    def open_gates(self) -> None:
        while self.gates:
            self.gates.pop().complete()

    @rule(of=models)
    def look(self, of: Model) -> None:
        self.open_gates()
        assert of.buffer.tobytes() == of.expected()

    @rule(of=consumes(models))
    def drop(self, of: Model) -> None:
        if of.buffer.base is not None:
            of.buffer.free()  # frees a view: the base stays alive
        del of

    def teardown(self) -> None:
        self.open_gates()
        for event in self.events:
            event.wait(60)
        for got, expected in self.results:
            assert got == expected
        for device in self.devices:
            if device.backend == "sim":
                assert _core.sim_calls(device, "violation") == 0
        self.events.clear()


class OpenCL(Machine):
    def make_devices(self) -> tuple[Device, ...]:
        return (intel_device(),)


class Everywhere(Machine):
    def make_devices(self) -> tuple[Device, ...]:
        return (Device("host"), sim(effect="late"), intel_device())


@pytest.mark.parametrize("machine", [OpenCL, Everywhere])
def test_random_operations(machine: type[Machine], long_tier: bool) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    before = live()
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=500 if long_tier else 30,
            stateful_step_count=40,
            deadline=None,
            database=None,
            derandomize=not long_tier,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert is_memory_released(before)
