# SPDX-License-Identifier: Apache-2.0
"""Memory without a named resource: from default pools, which release what another pool needs."""

from __future__ import annotations

import ctypes
import gc
from typing import TYPE_CHECKING, Any

import pytest
from support import python, sim, until

import isthmus
from isthmus import Buffer, Context, Device, Queue, UnifiedBuffer, default_pool
from isthmus.memory import (
    CustomResource,
    MemoryUSMDevice,
    MemoryUSMHost,
    MemoryUSMShared,
    PoolResource,
    ProviderResource,
    StatisticsResource,
    query,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
CLASSES = {"device": MemoryUSMDevice, "shared": MemoryUSMShared, "host": MemoryUSMHost}


def buffers(kind: str, queue: Queue) -> PoolResource:
    return default_pool(kind, queue=queue, use="buffers")


# -- where memory comes from -----------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [1, 1000, 3 * MIB])
def test_buffers_come_from_the_default_pool(q: Queue, kind: str, nbytes: int) -> None:
    for made in (Buffer(nbytes, kind=kind, queue=q), CLASSES[kind](nbytes, queue=q)):
        assert query(made.ptr).resource == buffers(kind, q)


def test_a_provider_returns_the_drivers_memory(q: Queue, kind: str) -> None:
    provider = ProviderResource(kind, q.device)
    made = Buffer(1000, resource=provider)
    assert query(made.ptr).resource == provider
    assert provider.held_bytes == 1000


def test_contexts_may_come_and_go(q: Queue) -> None:
    """Each context has its own pool, however many there are; the first one is still known."""
    kind = q.device.kinds[0]
    first = Buffer(1000, kind=kind, queue=q)
    for _ in range(80):
        apart = Queue(q.device, context=Context(q.device))
        made = Buffer(1000, kind=kind, queue=apart)
        array = isthmus.empty(1000, "u1", kind=kind, queue=apart)
        assert query(made.ptr).context == apart.context
        assert query(array.buffer.ptr).context == apart.context
        del made, array
        buffers(kind, apart).trim()
    again = Buffer(1000, kind=kind, queue=q)
    assert query(again.ptr).resource == query(first.ptr).resource == buffers(kind, q)


def test_one_pool_for_all_languages() -> None:
    """A buffer created through the C ABI comes from Python's pool."""
    library = ctypes.CDLL(isthmus.get_library())
    made, pointer = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.isthmus_buffer_create(ctypes.c_size_t(1000), 1, ctypes.c_size_t(0), None, None,
                                         ctypes.byref(made)) == 0  # fmt: skip
    raw = ctypes.c_void_p()
    assert library.isthmus_default_pool(None, 1, 0, ctypes.byref(raw)) == 0
    library.isthmus_resource_release(raw)
    owner = (ctypes.c_void_p * 2)()
    assert library.isthmus_buffer_disown(made, ctypes.byref(pointer), ctypes.byref(owner)) == 0
    assert pointer.value is not None
    assert query(pointer.value).resource == default_pool(use="buffers")
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(owner[1])(owner[0])
    library.isthmus_buffer_release(made)


def test_another_resource_may_be_in_use(q: Queue, kind: str) -> None:
    counted = StatisticsResource(PoolResource(kind, q.device))
    with isthmus.using(counted):
        Buffer(10, kind=kind, queue=q)
        with isthmus.using(buffers(kind, q)):
            Buffer(10, kind=kind, queue=q)
    assert counted.total_count == 1


def test_bad_use() -> None:
    with pytest.raises(ValueError, match="arrays"):
        default_pool("device", "host", use="tensors")
    with pytest.raises(TypeError, match="arrays"):
        default_pool("device", "host", use=1)  # type: ignore[arg-type]


def test_an_allocator_of_the_programs_may_make_buffers(dev: Device, kind: str) -> None:
    """A pool may have it as upstream, so the buffers that it makes come from no pool."""

    class Chunks:
        def __init__(self) -> None:
            self.live: dict[int, Buffer] = {}

        def allocate(self, nbytes: int, alignment: int, queue: Queue) -> int:
            buffer = Buffer(nbytes, kind=kind, queue=queue)
            self.live[buffer.ptr] = buffer
            return buffer.ptr

        def deallocate(self, pointer: int, nbytes: int, queue: Queue | None) -> None:
            del self.live[pointer]

    chunks = Chunks()
    pool = PoolResource(upstream=CustomResource(chunks, kind, dev))
    made = pool.allocate(1000)
    assert chunks.live
    del made

    def has_given_all_back() -> bool:  # ordered after the queue that it was freed on
        pool.trim()
        return not chunks.live

    assert until(has_given_all_back)


# -- a device whose memory is all in one pool ------------------------------------------------------


def full_device() -> tuple[Device, Queue]:
    device = sim(capacity="8MiB")
    queue = Queue(device)
    kept = [isthmus.empty(MIB, "u1", queue=queue) for _ in range(8)]
    del kept
    gc.collect()
    assert default_pool("device", queue=queue).held_bytes >= 7 * MIB
    return device, queue


REQUESTS: dict[str, Callable[[Device, Queue], Any]] = {
    "MemoryUSMDevice": lambda d, q: MemoryUSMDevice(MIB, queue=q),
    "UnifiedBuffer.device": lambda d, q: UnifiedBuffer(MIB, "u1", device=d, separate=True).device,
    "statistics": lambda d, q: Buffer(
        MIB, resource=StatisticsResource(ProviderResource("device", d))
    ),
    "another context": lambda d, q: Buffer(MIB, queue=Queue(d, context=Context(d))),
    "host kind": lambda d, q: Buffer(MIB, kind="shared", queue=q),
}


@pytest.mark.parametrize("request_of", REQUESTS)
def test_what_a_pool_keeps_serves_every_request(request_of: str) -> None:
    device, queue = full_device()
    assert REQUESTS[request_of](device, queue) is not None


# -- processes -------------------------------------------------------------------------------------


def test_a_forked_child_raises_and_its_parent_continues() -> None:
    python(
        "import os, warnings, isthmus\n"
        "warnings.simplefilter('ignore')\n"
        "kept = isthmus.Buffer(1000, kind='host', device='host')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        isthmus.Buffer(1000, kind='host', device='host')\n"
        "    except isthmus.ForkedError:\n"
        "        os._exit(7)\n"
        "    os._exit(1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "assert isthmus.Buffer(1000, kind='host', device='host').nbytes == 1000\n"
    )


@pytest.mark.parametrize("device", ["host", "opencl"])
def test_buffers_may_live_until_the_process_ends(device: str) -> None:
    python(
        "import isthmus\n"
        f"kept = [isthmus.Buffer(n, device={device!r}) for n in (1, 1000, 1 << 20, 1 << 25)]\n"
        "kept[0].fill(1, blocking=False)\n"
    )
