# SPDX-License-Identifier: Apache-2.0
"""isthmus, dpctl, dpnp and pyopencl in one process, in every order of imports and of first uses.

SYCL lists its platforms at its first use, and never again. So dpctl may be imported before Isthmus
exposes Intel's runtime to it, but not be used before. Each order takes a process of a second or
more. Outside the long tier, only orders run that differ in the first library and in its effect.
"""

from __future__ import annotations

import functools
import itertools
import os

import pytest
from conftest import in_long_tier
from support import python

LIBRARIES = ("isthmus", "dpctl", "dpnp", "pyopencl")
Order = tuple[str, ...]
ORDERS = list(itertools.permutations(LIBRARIES))
# Isthmus first, and each of the others first; dpctl represents dpnp, which uses dpctl's list.
TELLING_USED = [
    ("isthmus", "dpctl", "dpnp", "pyopencl"),
    ("isthmus", "pyopencl", "dpnp", "dpctl"),
    ("pyopencl", "isthmus", "dpctl", "dpnp"),
    ("dpctl", "isthmus", "dpnp", "pyopencl"),
    ("pyopencl", "dpnp", "dpctl", "isthmus"),
]
TELLING_IMPORTED = [
    ("dpctl", "isthmus", "dpnp", "pyopencl"),
    ("pyopencl", "dpnp", "dpctl", "isthmus"),
]
# Set in a process that opened the drivers; it exposes them to libraries loaded later.
SET_BY_ISTHMUS = ("OCL_ICD_FILENAMES",)

if os.environ.get("ISTHMUS_ALLOW_NO_OPENCL") == "1":
    for _name in LIBRARIES:
        pytest.importorskip(_name)


def comes_first(order: Order) -> bool:
    """Whether Isthmus precedes every library that uses SYCL; dpnp imports dpctl."""
    return order.index("isthmus") < min(order.index("dpctl"), order.index("dpnp"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    long = in_long_tier(metafunc.config)
    if "used_order" in metafunc.fixturenames:
        metafunc.parametrize("used_order", ORDERS if long else TELLING_USED, ids="-".join)
    if "late_order" in metafunc.fixturenames:
        late = [each for each in ORDERS if not comes_first(each)]
        metafunc.parametrize("late_order", late if long else TELLING_IMPORTED, ids="-".join)


# What each library does alone. A device of PoCL has no USM, so that nothing of dpctl works on it.
USES = """
import sys

def uses_usm():
    import dpctl
    return dpctl.SyclDevice().has_aspect_usm_shared_allocations

def use_isthmus():
    import isthmus
    isthmus.devices("sycl")
    for name in ("opencl", *(["sycl"] if isthmus.devices("sycl") else [])):
        made = isthmus.ones(100, queue=isthmus.Queue(name))
        made[:] = 3
        assert (made.to_numpy() == 3).all()

def use_dpctl():
    import dpctl, dpctl.memory
    assert dpctl.get_devices()
    if uses_usm():
        made = dpctl.memory.MemoryUSMDevice(4096)
        made.memset(5)
        assert made.tobytes() == bytes([5]) * 4096

def use_dpnp():
    import dpnp
    if uses_usm():
        assert int(dpnp.arange(100).sum()) == 4950

def use_pyopencl():
    import pyopencl
    use_buffer_of(pyopencl.create_some_context(interactive=False))

def use_buffer_of(context):
    import numpy, pyopencl
    queue = pyopencl.CommandQueue(context)
    made = pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE, 4096)
    pyopencl.enqueue_fill_buffer(queue, made, numpy.uint8(7), 0, 4096)
    got = numpy.zeros(4096, numpy.uint8)
    pyopencl.enqueue_copy(queue, got, made)
    assert (got == 7).all()

def use_each(order):
    for name in order:
        globals()["use_" + name]()
"""

# What they do with the memory of one another.
TOGETHER = """
def share_usm():
    import dpctl.memory, dpnp.tensor, isthmus
    ours = isthmus.Buffer(4096, kind="shared", queue=isthmus.Queue("sycl"))
    theirs = dpctl.memory.as_usm_memory(ours)
    theirs.memset(3)
    array = dpnp.tensor.asarray(ours)
    array += 1
    array.sycl_queue.wait()
    assert ours.tobytes() == bytes([4]) * 4096
    made = dpnp.arange(100, dtype="u1")
    made.sycl_queue.wait()
    assert isthmus.memory.as_usm_memory(made).tobytes() == bytes(range(100))
    del theirs, array
    ours.fill(9)
    assert ours.tobytes() == bytes([9]) * 4096

def share_opencl():
    import isthmus, numpy, pyopencl
    queue = isthmus.Queue("opencl")
    use_buffer_of(pyopencl.Context.from_int_ptr(queue.context.native_handle))
    ours = isthmus.Buffer(4096, kind="host", queue=queue)
    theirs = pyopencl.create_some_context(interactive=False)
    lent = pyopencl.Buffer(theirs, pyopencl.mem_flags.READ_WRITE, 4096)
    seen = pyopencl.CommandQueue(theirs)
    pyopencl.enqueue_copy(seen, lent, numpy.full(4096, 8, numpy.uint8))
    pyopencl.enqueue_copy(seen, numpy.asarray(ours), lent)
    assert ours.tobytes() == bytes([8]) * 4096
"""


@pytest.fixture
def shown_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SET_BY_ISTHMUS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYOPENCL_NO_CACHE", "1")


def run(code: str, order: Order) -> str:
    """Prints the output of `code`; after a hang, the traceback shows where."""
    hang = "import faulthandler; faulthandler.dump_traceback_later(100, exit=True)\n"
    return python(hang + USES + TOGETHER + code, *order, timeout=120).stdout.strip()


@functools.cache
def sycl_has_usm() -> bool:
    """Without Isthmus: if the environment already exposes the runtime, every order works."""
    return run('print(uses_usm() or "")', ()) == "True"


@pytest.mark.usefixtures("shown_nothing")
def test_each_used_when_it_is_imported(used_order: Order) -> None:
    said = run(
        """if True:
        order = sys.argv[1:]
        use_each(order)
        import isthmus
        share_opencl()
        if uses_usm():
            share_usm()
            use_each(reversed(order))
            print("shared")
        else:
            try:
                print(isthmus.Device("sycl"))
            except isthmus.DeviceNotFoundError as refused:
                assert "OCL_ICD_FILENAMES=" in str(refused), refused
            print("told")""",
        used_order,
    )
    assert said == ("shared" if comes_first(used_order) or sycl_has_usm() else "told")


@pytest.mark.usefixtures("shown_nothing")
def test_imported_only_before_isthmus_is_used(late_order: Order) -> None:
    """In any order, it suffices that dpctl is not used before."""
    said = run(
        """if True:
        import importlib
        order = sys.argv[1:]
        for name in order:
            importlib.import_module(name)
        import dpctl.memory, dpnp.tensor, isthmus
        assert isthmus.devices("sycl"), isthmus.absent()
        use_each(order)
        share_usm()
        share_opencl()
        print("shared")""",
        late_order,
    )
    assert said == "shared"
