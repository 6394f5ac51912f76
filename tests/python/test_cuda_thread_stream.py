# SPDX-License-Identifier: Apache-2.0
"""CUDA's per-thread default stream, handle 2: a different stream on each thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from support import has_cuda, noise
from test_cuda_exchange import Array, Stranger, Stream

from isthmus import Buffer, Device, Queue
from isthmus.memory import as_usm_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not has_cuda(), reason="no CUDA driver")
PER_THREAD = 2
NBYTES = 1 << 16


@pytest.fixture
def other() -> Iterator[ThreadPoolExecutor]:
    """A second thread."""
    with ThreadPoolExecutor(1) as made:
        yield made


def adopt() -> Queue:
    return Queue.from_handle(PER_THREAD, "cuda:0")


def test_is_one_queue_on_each_thread(other: ThreadPoolExecutor) -> None:
    mine = adopt()
    assert mine == adopt()
    assert mine == Queue.from_stream(Stream((0, PER_THREAD)))
    assert mine == Queue.from_stream(Stream((0, PER_THREAD), device_index=0))
    assert mine != Device("cuda:0").default_queue
    theirs = other.submit(adopt).result()
    assert theirs != mine
    assert theirs == other.submit(adopt).result()


def test_the_handle_is_that_of_the_calling_thread(other: ThreadPoolExecutor) -> None:
    mine = adopt()
    assert mine.native_handle == PER_THREAD
    assert mine.__cuda_stream__() == (0, PER_THREAD)
    assert other.submit(mine.__cuda_stream__).result() == (0, 1)
    buffer = Buffer(NBYTES, queue=mine)
    assert buffer.__cuda_array_interface__["stream"] == PER_THREAD
    assert other.submit(lambda: buffer.__cuda_array_interface__["stream"]).result() == 1


def test_any_thread_may_use_it_also_when_its_own_has_ended() -> None:
    with ThreadPoolExecutor(1) as gone:
        left = gone.submit(adopt).result()
        buffer = Buffer(NBYTES, queue=left)
        gone.submit(lambda: buffer.fill(7, blocking=False)).result()
    buffer[: NBYTES // 2].fill(8, blocking=False)
    found = buffer.to_numpy()
    assert set(found[: NBYTES // 2].tolist()) == {8}
    assert set(found[NBYTES // 2 :].tolist()) == {7}
    assert adopt() != left


def test_other_work_on_it_comes_first(other: ThreadPoolExecutor) -> None:
    stranger = Stranger()
    mine = adopt()
    buffer = Buffer(NBYTES, queue=mine)
    stranger.write(buffer, 5, PER_THREAD)
    assert set(other.submit(buffer.to_numpy).result().tolist()) == {5}
    stranger.leave()


def test_dlpack_orders_the_consumers_stream_after_ours() -> None:
    stranger = Stranger()
    stranger.stream, kept = PER_THREAD, stranger.stream
    queue = Queue("cuda:0")
    buffer = Buffer(NBYTES, queue=queue)
    for value in range(50):
        buffer.fill(value, blocking=False)
    capsule = buffer.__dlpack__(stream=PER_THREAD)
    assert stranger.read(buffer) == {49}
    stranger.write(buffer, 3)
    del capsule  # ordered after the pending work of the stream
    buffer.copy_from(noise(NBYTES), blocking=False)
    assert buffer.tobytes() == noise(NBYTES).tobytes()
    stranger.stream = kept
    stranger.leave()


def test_an_array_interface_may_name_it() -> None:
    stranger = Stranger()
    source = Buffer(NBYTES, queue=Queue("cuda:0"))

    stranger.write(source, 9, PER_THREAD)
    array = Array(source, shape=(NBYTES,), typestr="|u1", stream=PER_THREAD)
    assert as_usm_memory(array).queue == adopt()
    target = Buffer(NBYTES, queue=Queue("cuda:0"))
    target.copy_from(array)
    assert set(target.to_numpy().tolist()) == {9}
    stranger.leave()
