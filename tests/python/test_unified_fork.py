# SPDX-License-Identifier: Apache-2.0
"""Forked children have a host copy of their own; their writes never reach the parent."""

from __future__ import annotations

import pytest
from support import has_cuda, python, sampled
from test_fork import SETUP
from unified_support import MEANS, TELLS_PAGES, each_means

MORE = """
import multiprocessing
from unified_support import two_copies, read_on_device, write_on_device, numbers
from isthmus import UnifiedBuffer
tracking = sys.argv[2]
def made(size=200_000, **options):
    return two_copies(device, size, tracking, **options)
"""
BACKENDS = ["host", "late", "opencl"]
# Each case takes a process and its children. Those of the ordinary tier cover each backend and each
# kind of tracking.
each_case = pytest.mark.parametrize(
    ("backend", "tracking"),
    sampled(
        (
            (backend, tracking)
            for tracking in (MEANS if TELLS_PAGES else MEANS[1:])
            for backend in BACKENDS
        ),
        step=4,
    ),
)


def run(backend: str, tracking: str, code: str) -> None:
    python(SETUP + MORE + code, backend, tracking, timeout=120)


@each_case
def test_writes_stay_in_the_child(backend: str, tracking: str) -> None:
    run(backend, tracking, """
for pinned in (False, True):
    buf = made(pinned=pinned)
    kept = buf.host
    kept[:] = numbers(200_000)
    buf.sync_to_device()
    kept[7] = -7
    def child():
        assert kept[7] == -7 and kept[100] == 101
        assert buf.host is kept or np.shares_memory(buf.host, kept)
        kept[:] = 5
        assert (buf.host == 5).all()
        buf.host[9] = 6
    forked(child)
    assert kept[5] == 6 and kept[9] == 10
    assert str(buf.state) == "HOST_DIRTY"
    assert read_on_device(buf)[7] == -7
    assert str(buf.state) == "SYNCHRONIZED"
    kept[11] = -11
    assert str(buf.state) == "HOST_DIRTY", "the parent's tracking is as it was"
    assert (read_on_device(buf) == kept).all()
""")  # fmt: skip


@each_case
def test_a_parent_that_writes_meanwhile(backend: str, tracking: str) -> None:
    run(backend, tracking, """
buf = made()
kept = buf.host
kept[:] = 1
buf.sync_to_device()
at_fork, wrote = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    kept[:] = 3
    os.write(at_fork[1], b"x")
    os.read(wrote[0], 1)
    good = bool((kept == 3).all()) and bool((buf.to_numpy() == 3).all())
    os._exit(0 if good else 1)
os.read(at_fork[0], 1)
for number in range(20):
    kept[number * 10_000] = 2
    buf.sync_to_device()
os.write(wrote[1], b"x")
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert read_on_device(buf)[::10_000].tolist() == [2] * 20
""")  # fmt: skip


@each_case
def test_the_device_is_refused(backend: str, tracking: str) -> None:
    run(backend, tracking, """
buf = made()
buf.host[:] = 1
buf.sync_to_device()
dirty, fresh = made(), made()
write_on_device(dirty, 3)
dirty.host
write_on_device(dirty, 4, (0, 10))
def child():
    refused(lambda: buf.device if buf.host.fill(2) is None else None)
    refused(lambda: buf.sync_to_device() if buf.mark_host_dirty() is None else None)
    refused(lambda: dirty.sync_to_host())
    refused(lambda: fresh.host)
    refused(lambda: UnifiedBuffer(100_000, queue=queue, separate=True).host)
    buf.free()
    assert buf.shape == (200_000,)
forked(child)
assert (buf.host == 1).all()
assert dirty.host[:11].tolist() == [4] * 10 + [3]
assert (read_on_device(buf) == 1).all()
fresh.host[:] = 7
assert (read_on_device(fresh) == 7).all()
""")  # fmt: skip


@each_case
def test_workers_as_of_a_data_loader(backend: str, tracking: str) -> None:
    run(backend, tracking, """
buf = made(size=(100, 2000))
buf.host[:] = np.arange(100)[:, None]
buf.sync_to_device()
def work(row):
    buf.host[row] += 1000  # of its own copy
    try:
        buf.device.to_numpy()
    except ForkedError:
        return float(buf.host[row].sum()), buf[row : row + 1].host.tobytes()[:4]
    return None
with multiprocessing.get_context("fork").Pool(2) as pool:
    results = pool.map(work, range(100))
assert [total for total, _ in results] == [2000.0 * (row + 1000) for row in range(100)]
assert (buf.host == np.arange(100)[:, None]).all()
buf.host[5] = -1
assert (read_on_device(buf) == buf.host).all()
""")  # fmt: skip


@each_means
def test_buffers_are_sent_to_workers(tracking: str) -> None:
    run("host", tracking, """
buf = made(size=1000)
buf.host[:] = 2
def work(queue, answers):
    sent = queue.get()
    try:
        sent.host
    except BaseException as failed:
        answers.put(type(failed).__name__)
    else:
        answers.put("loaded")
context = multiprocessing.get_context("fork")
there, back = context.Queue(), context.Queue()
worker = context.Process(target=work, args=(there, back))
worker.start()
there.put(buf)
assert back.get(timeout=60) == "ForkedError"
worker.join()
""")  # fmt: skip


@each_case
def test_grandchildren_and_many_forks(backend: str, tracking: str) -> None:
    run(backend, tracking, """
many = [made(50_000) for _ in range(5)]
views = [each.host for each in many]
for view in views:
    view[:] = 1
many[0].sync_to_device()
def grandchild():
    views[1][:] = 3
    assert views[0][0] == 2 and views[1][5] == 3
def child():
    views[0][:] = 2
    forked(grandchild)
    assert views[1][5] == 1
    del many[2:]
    gc.collect()
for _ in range(3):
    forked(child)
for buf, view in zip(many, views):
    view[3] = 9
    assert read_on_device(buf)[2:4].tolist() == [1, 9]
""")  # fmt: skip


@each_means
@pytest.mark.parametrize("backend", [*BACKENDS, *(["cuda"] if has_cuda() else [])])
def test_the_workers_of_a_data_loader(backend: str, tracking: str) -> None:
    pytest.importorskip("torch")
    run(backend, tracking, """
import torch.utils.data
buf = made()
buf.host[:] = numbers(200_000)
buf.sync_to_device()
class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, number):
        sample = float(buf.host[number])
        buf.host[number::64] = -1  # an augmentation in place, which is the worker's own
        return sample
for epoch in range(2):
    loader = torch.utils.data.DataLoader(Samples(), batch_size=8, num_workers=2)
    for count, batch in enumerate(loader):
        assert batch.tolist() == [8 * count + 1.0 + each for each in range(8)]
        buf.host[100_000 + count] = epoch
        buf.sync_to_device()
    assert (buf.host[:100_000] == numbers(100_000)).all()
    assert (read_on_device(buf) == buf.host).all()
    assert str(buf.state) == "SYNCHRONIZED"
""")  # fmt: skip
