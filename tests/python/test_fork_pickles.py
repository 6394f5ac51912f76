# SPDX-License-Identifier: Apache-2.0
"""A forked process that receives a pickle of our objects reports it; its parent never hangs."""

from __future__ import annotations

import pytest
from support import python

# Every class whose pickle needs a driver, and a use of each.
PROGRAM = """
import copy, multiprocessing, pickle, sys
import isthmus
from isthmus import ForkedError, UnifiedBuffer, memory
from support import open_backend

device = open_backend(sys.argv[1])
queue = isthmus.Queue(device)
OBJECTS = {
    "buffer": isthmus.Buffer(8, kind="host", queue=queue),
    "memory": memory.MemoryUSMHost(8, queue=queue),
    "array": isthmus.ones(3, kind="host", queue=queue),
    "unified": UnifiedBuffer(3, queue=queue),
    "device": device,
}
OBJECTS["unified"].host[:] = 1
OBJECTS["buffer"].fill(1)
OBJECTS["memory"].fill(1)
USES = {
    "buffer": lambda x: x.tobytes(),
    "memory": lambda x: x.nbytes,
    "array": lambda x: x.to_numpy(),
    "unified": lambda x: x.host,
    "device": lambda x: x.name,
}

def use(pair):
    name, x = pair
    return USES[name](x)

def returned(x):
    return x

def refused(call):
    try:
        call()
    except ForkedError as failed:
        assert "spawn" in str(failed)
        return
    raise AssertionError("was not refused")
"""


def run(code: str, backend: str = "host") -> None:
    python(PROGRAM + code, backend, timeout=60)


@pytest.mark.parametrize("backend", ["host", "opencl"])
def test_pool(backend: str) -> None:
    run("""
with multiprocessing.get_context("fork").Pool(2) as pool:
    for pair in OBJECTS.items():
        refused(lambda: pool.apply(use, [pair]))
        refused(lambda: pool.map(use, [pair] * 5))
    refused(lambda: pool.apply_async(use, (("array", OBJECTS["array"]),)).get(timeout=30))
    refused(lambda: list(pool.imap(use, OBJECTS.items())))
    assert pool.map(abs, [-1, -2]) == [1, 2], "the workers go on"
""", backend)  # fmt: skip


def test_executor() -> None:
    run("""
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
    for pair in OBJECTS.items():
        refused(lambda: pool.submit(use, pair).result(timeout=30))
    assert pool.submit(abs, -1).result(timeout=30) == 1
""")  # fmt: skip


def test_queue_and_pipe() -> None:
    run("""
def serve(ends, queue):
    for receive in (ends[0].recv, lambda: queue.get(timeout=30)):
        name, x = receive()
        try:
            USES[name](x)
        except ForkedError:
            ends[0].send("refused")
context = multiprocessing.get_context("fork")
ends, queue = context.Pipe(), context.Queue()
child = context.Process(target=serve, args=(ends, queue))
child.start()
ends[1].send(("array", OBJECTS["array"]))
queue.put(("unified", OBJECTS["unified"]))
for _ in range(2):
    assert ends[1].poll(30) and ends[1].recv() == "refused"
child.join(30)
assert child.exitcode == 0
""")  # fmt: skip


def test_arguments_are_inherited() -> None:
    run("""
def work(buffer, array):
    assert buffer.tobytes() == bytes([1]) * 8 and array.to_numpy().tolist() == [1] * 3
    refused(lambda: buffer.fill(2, blocking=False))
context = multiprocessing.get_context("fork")
child = context.Process(target=work, args=(OBJECTS["buffer"], OBJECTS["array"]))
child.start()
child.join(30)
assert child.exitcode == 0
""")  # fmt: skip


# A worker may pass on what it received, and return what it inherited.
def test_results() -> None:
    run("""
def inherited(name):
    return OBJECTS[name]
with multiprocessing.get_context("fork").Pool(1) as pool:
    for name, x in OBJECTS.items():
        for again in (pool.apply(returned, (x,)), pool.apply(inherited, (name,))):
            assert type(again) is type(x)
            assert repr(USES[name](again)) == repr(USES[name](x)), name
    nested = pool.apply(returned, ([{"a": OBJECTS["array"]}],))
    assert nested[0]["a"].to_numpy().tolist() == [1] * 3
""")  # fmt: skip


def test_buffers_out_of_band() -> None:
    run("""
def pass_on(pickled, parts):
    for wrap in (bytes, memoryview, pickle.PickleBuffer):
        x = pickle.loads(pickled, buffers=[wrap(each) for each in parts])
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            yield pickle.dumps(x, protocol)
def work(pickled, parts):
    return list(pass_on(pickled, parts))
with multiprocessing.get_context("fork").Pool(1) as pool:
    for name, x in OBJECTS.items():
        parts = []
        pickled = pickle.dumps(x, 5, buffer_callback=parts.append)
        for again in pool.apply(work, (pickled, [bytes(each) for each in parts])):
            assert repr(USES[name](pickle.loads(again))) == repr(USES[name](x)), name
""")  # fmt: skip


def test_every_use_is_refused() -> None:
    run("""
import operator
import numpy as np
def work(x):
    for use in (
        len, iter, bool, int, float, bytes, abs, operator.index, operator.neg, copy.copy,
        copy.deepcopy, np.asarray, lambda x: x[0], lambda x: operator.setitem(x, 0, 1),
        lambda x: x + 1, lambda x: 1 + x, lambda x: x == x, lambda x: x != 1, lambda x: x < 1,
        lambda x: x.shape, lambda x: setattr(x, "a", 1), lambda x: x.__enter__(),
        lambda x: x(), lambda x: 0 in x, lambda x: x @ x, lambda x: operator.iadd(x, 1),
    ):
        refused(lambda: use(x))
    for use in (memoryview, isthmus.asarray, lambda x: isthmus.copyto(x, x)):
        try:
            use(x)
        except (TypeError, ForkedError):
            continue
        raise AssertionError("was not refused")
    assert "forked" in repr(x) and hash(x) == hash(x)
    return "all"
with multiprocessing.get_context("fork").Pool(1) as pool:
    assert pool.apply(work, (OBJECTS["array"],)) == "all"
""")  # fmt: skip


def test_attributes_of_a_subclass() -> None:
    run("""
class Named(isthmus.Buffer):
    pass
named = Named(8, kind="host", queue=queue)
named.fill(3)
named.name = "a"
with multiprocessing.get_context("fork").Pool(1) as pool:
    again = pool.apply(returned, (named,))
    refused(lambda: pool.apply(getattr, (named, "name")))
assert (type(again), again.name, again.tobytes()) == (Named, "a", bytes([3]) * 8)
""")  # fmt: skip


def test_data_loader() -> None:
    pytest.importorskip("torch")
    run("""
import torch.utils.data
text = pickle.dumps(OBJECTS["array"])
class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, number):
        return pickle.loads(text)
loader = torch.utils.data.DataLoader(
    Samples(), num_workers=1, timeout=30, multiprocessing_context="fork",
    collate_fn=lambda samples: samples[0].to_numpy())
refused(lambda: list(loader))
""")  # fmt: skip
