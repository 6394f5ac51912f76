# SPDX-License-Identifier: Apache-2.0
"""Creating buffers: sizes, kinds, alignments, devices and queues, and their attributes."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from support import KINDS, noise, sim, until

import isthmus
from isthmus import Buffer, Context, Device, Queue, memory
from isthmus.memory import live

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("nbytes", [0, 3])
def test_sizes(q: Queue, kind: str, nbytes: int) -> None:
    buffer = Buffer(nbytes, kind=kind, queue=q)
    assert buffer.nbytes == len(buffer) == nbytes
    assert buffer.kind == kind
    assert (buffer.ptr != 0) == (nbytes != 0)
    data = noise(nbytes)
    buffer.copy_from(data)
    assert buffer.tobytes() == data.tobytes()


def test_properties(dev: Device, q: Queue, kind: str) -> None:
    buffer = Buffer(100, kind=kind, queue=q)
    assert buffer.queue == q
    assert buffer.device == dev
    assert buffer.context == q.context
    assert buffer.base is None
    assert buffer.alignment == dev.base_alignment
    assert buffer.ptr % dev.base_alignment == 0
    assert not buffer.read_only
    assert not buffer.freed
    assert buffer == buffer
    assert buffer != Buffer(100, kind=kind, queue=q)
    assert hash(buffer) == hash(buffer)


def test_repr(q: Queue, kind: str) -> None:
    buffer = Buffer(100, kind=kind, queue=q)
    text = repr(buffer)
    assert text.startswith(f"<isthmus.Buffer {kind} 100 bytes at {buffer.ptr:#x} on ")
    assert buffer.device.filter in text
    buffer.free()
    assert "freed" in repr(buffer)


@pytest.mark.parametrize("alignment", [1, 4096])
def test_alignments(q: Queue, kind: str, alignment: int) -> None:
    if alignment > q.device.max_alignment:
        pytest.skip("more than the device can")
    buffers = [Buffer(n, kind=kind, queue=q, alignment=alignment) for n in (1, 100, 5000)]
    for buffer in buffers:
        assert buffer.alignment == alignment
        assert buffer.ptr % alignment == 0


@pytest.mark.parametrize("alignment", [0, -1, -64, -(2**70)])
@pytest.mark.host_only
def test_no_alignment_is_the_devices_own(q: Queue, alignment: int) -> None:
    buffer = Buffer(64, kind=q.device.kinds[0], queue=q, alignment=alignment)
    assert buffer.alignment == q.device.base_alignment


def test_the_default_kind_is_device() -> None:
    assert Buffer(8).kind == "device"


def test_where(dev: Device) -> None:
    kind = dev.kinds[0]
    assert Buffer(8, kind=kind, device=dev).queue == dev.default_queue
    queue = Queue(dev)
    assert Buffer(8, kind=kind, device=dev, queue=queue).queue == queue
    assert Buffer(8, device="host").device == Device("host")
    assert Buffer(8).queue == isthmus.current_queue()


def test_a_device_named_by_a_filter() -> None:
    anew = "".join(("ho", "st"))  # equal to the interned literal, but another object
    for name in ("host", anew, "host:0", "host"):
        assert Buffer(8, device=name).queue == Device("host").default_queue
        assert Buffer(8, device=name, queue=Queue("host")).device == Device("host")
    with pytest.raises(isthmus.DeviceNotFoundError):
        Buffer(8, device="host:7")


def test_a_device_named_by_any_of_its_objects(dev: Device) -> None:
    queue = Queue(dev)
    again = Device(dev)
    for _ in range(2):
        assert Buffer(8, kind=dev.kinds[0], device=again).queue == dev.default_queue
        assert Buffer(8, kind=dev.kinds[0], device=again, queue=queue).queue is queue


@pytest.mark.parametrize("named", [sim, lambda: "host"], ids=["object", "filter"])
def test_device_and_queue_that_do_not_fit(named: Callable[[], Device | str]) -> None:
    queue = Queue("host") if named() != "host" else Queue(sim())
    for _ in range(2):  # the filter is cached the second time
        with pytest.raises(ValueError, match="queue and device do not match"):
            Buffer(8, device=named(), queue=queue)
        Buffer(8, device="host")


def test_sizes_of_any_integer_type(q: Queue) -> None:
    import numpy as np

    kind = q.device.kinds[0]
    assert Buffer(np.int32(12), kind=kind, queue=q).nbytes == 12
    assert Buffer(True, kind=kind, queue=q).nbytes == 1


def test_by_keyword() -> None:
    assert Buffer(nbytes=5, kind="host", device="host").nbytes == 5


@pytest.mark.parametrize(
    ("positional", "named"),
    [
        ((), {}),
        ((1, "host"), {}),
        ((1,), {"size": 1}),
        ((1,), {"nbytes": 1}),
        ((b"8",), {}),
        ((8.5,), {}),
        ((None,), {}),
        ((8,), {"kind": 1}),
        ((8,), {"queue": "host"}),
        ((8,), {"queue": Device}),
        ((8,), {"device": 0}),
        ((8,), {"alignment": 1.5}),
        ((8,), {"alignment": "64"}),
        ((8,), {"resource": object()}),
    ],
)
def test_wrong_types(positional: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        Buffer(*positional, **named)  # type: ignore[arg-type]


def test_subclasses(q: Queue) -> None:
    class Named(Buffer):
        def __init__(self, nbytes: int, name: str) -> None:
            super().__init__(nbytes, kind=q.device.kinds[0], queue=q)
            self.name = name

    named = Named(16, "a")
    assert (named.nbytes, named.name) == (16, "a")
    assert "Named" in repr(named)


def test_a_subclass_without_its_init() -> None:
    class Empty(Buffer):
        def __init__(self) -> None:
            pass

    empty = Empty.__new__(Empty)
    for use in (len, bytes, lambda b: b.nbytes, lambda b: b[0:1], memoryview):
        with pytest.raises((TypeError, ValueError, RuntimeError, BufferError)):
            use(empty)


@pytest.mark.parametrize("kind", KINDS)
def test_from_a_resource(dev: Device, kind: str) -> None:
    if kind not in dev.kinds:
        with pytest.raises(isthmus.UnsupportedError, match=kind):
            memory.ProviderResource(kind, dev)
        return
    resource = memory.ProviderResource(kind, dev)
    assert (resource.kind, resource.device) == (kind, dev)
    assert resource.context == dev.default_context
    for buffer in (Buffer(64, resource=resource), resource.allocate(64, 128)):
        assert buffer.kind == kind
        assert buffer.device == dev
        buffer.fill(7)
        assert buffer.tobytes() == bytes([7]) * 64
    assert resource.allocate(64, 512).ptr % 512 == 0


def test_a_resource_of_another_context(dev: Device) -> None:
    kind = dev.kinds[0]
    resource = memory.ProviderResource(kind, dev, Context(dev))
    assert resource.context != dev.default_context
    assert Buffer(8, resource=resource).context == resource.context
    with pytest.raises(isthmus.WrongContextError):
        Buffer(8, queue=Queue(dev), resource=resource)


def test_live_counts(q: Queue, kind: str) -> None:
    gc.collect()
    count, nbytes = live()
    of_kind = live(kind)
    buffers = [Buffer(1024, kind=kind, queue=q) for _ in range(5)]
    buffers.append(Buffer(3 << 20, kind=kind, queue=q))
    more = 5 * 1024 + (3 << 20)
    assert live() == (count + 6, nbytes + more)
    assert live(kind) == (of_kind[0] + 6, of_kind[1] + more)
    empty, part = Buffer(0, kind=kind, queue=q), buffers[0][10:20]
    assert live() == (count + 6, nbytes + more), "no bytes and slices cost no memory"
    del buffers, empty, part
    assert until(lambda: live() == (count, nbytes))
