# SPDX-License-Identifier: Apache-2.0
"""Memory of device kind of the host device: exported with a warning, and refused in strict mode."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import filled
from test_testing_plugin import run

import isthmus
from isthmus import Array, Buffer, Event, PortabilityWarning, Queue
from isthmus.compat.rmm import DeviceBuffer
from isthmus.testing import plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest_plugins = ["pytester"]

MODEL = np.arange(24, dtype=np.float32).reshape(4, 6)
EXPORTS: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "array": np.array,
    "memoryview": lambda obj: np.asarray(memoryview(obj)),
    "dlpack": np.from_dlpack,
    "interface": lambda obj: np.asarray(Interface(obj.__array_interface__)),
    "__array__": lambda obj: obj.__array__(),
}
export = pytest.mark.parametrize("take", EXPORTS.values(), ids=EXPORTS)
warns = pytest.warns(PortabilityWarning, match=r"to_numpy\(\)")


class Interface:
    def __init__(self, entries: dict[str, Any]) -> None:
        self.__array_interface__ = entries


@pytest.fixture(autouse=True)
def relaxed() -> Iterator[None]:
    """What a program without the pytest plug-in observes."""
    former = isthmus.set_strict(False)
    yield
    isthmus.set_strict(former)


@pytest.fixture
def host() -> Queue:
    return Queue("host")


def array_on(queue: Queue) -> Array:
    return Array(filled(MODEL, kind="device", queue=queue), MODEL.shape)


@export
def test_arrays_are_exported(host: Queue, take: Callable[[Any], Any]) -> None:
    array = array_on(host)[1:, ::2]
    with pytest.warns(PortabilityWarning, match=r"to_numpy\(\)") as issued:
        view = take(array)
    assert [each.filename for each in issued] == [__file__]
    assert (view == MODEL[1:, ::2]).all()
    if take is not np.array:
        view[:] = 7
        assert (array.to_numpy() == 7).all()
    assert array.kind == "device"
    assert array.__sycl_usm_array_interface__["data"] == (array.ptr, False)


@export
def test_buffers_are_exported(host: Queue, take: Callable[[Any], Any]) -> None:
    buffer = filled(MODEL, kind="device", queue=host)
    with warns:
        view = take(buffer)
    assert view.tobytes() == MODEL.tobytes()
    buffer.free()
    assert view.tobytes() == MODEL.tobytes(), "the view keeps the memory"


@export
@pytest.mark.sim_and_host
def test_only_the_host_device_exports(q: Queue, take: Callable[[Any], Any]) -> None:
    if q.device.backend in ("host", "cuda", "sycl"):
        pytest.skip("exports device kind")
    for obj in (array_on(q), Buffer(8, kind="device", queue=q)):
        with pytest.raises((TypeError, BufferError, AttributeError), match="'device'"):
            take(obj)


@export
def test_exports_wait_for_pending_work(
    host: Queue, gate: Event, take: Callable[[Any], Any]
) -> None:
    array = array_on(host)
    array.fill(5, after=gate, blocking=False)
    opener = threading.Timer(0.02, gate.complete)
    opener.start()
    with warns:
        assert (take(array) == 5).all()
    opener.join()


def test_dlpack_reports_the_cpu(host: Queue) -> None:
    array = array_on(host)
    assert array.__dlpack_device__() == array.buffer.__dlpack_device__() == (1, 0)
    with warns:
        array.__dlpack__(dl_device=(1, 0), copy=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a copy is possible on every device
        array.__dlpack__(dl_device=(1, 0), copy=True)
    with isthmus.strict(), pytest.raises(BufferError, match="device"):
        array.__dlpack_device__()


def test_read_only_memory(host: Queue) -> None:
    source = filled(MODEL, kind="device", queue=host)
    buffer = Buffer.adopt(
        source.ptr, source.nbytes, kind="device", queue=host, owner=source, read_only=True
    )
    with warns:
        assert not np.asarray(buffer).flags.writeable


def issued_by(program: str, **variables: Any) -> list[tuple[str, int]]:
    """File and line of each warning that Python's default filters let pass."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("default")
        exec(compile(program, "program.py", "exec"), {"__name__": "program", **variables})
    assert all(each.category is PortabilityWarning for each in issued)
    return [(each.filename, each.lineno) for each in issued]


def test_one_warning_for_each_call_site(host: Queue) -> None:
    program = """
for array in arrays:
    np.asarray(array)
    memoryview(array)
    np.sum(array), np.add(array, 1), np.save(io.BytesIO(), array)
    for _ in range(3):
        np.array_equal(array, array)
        np.from_dlpack(array)
"""
    arrays = [array_on(host), array_on(host)[1:], array_on(host)[:, ::2]]
    lines = issued_by(program, arrays=arrays, np=np, io=io)
    assert lines == [("program.py", line) for line in (3, 4, 5, 7, 8)]


def test_no_warning_where_isthmus_copies(host: Queue) -> None:
    program = """
a, b = arrays
isthmus.asarray([a, b]), isthmus.asarray(a), isthmus.copyto(a, b), a.fill(0)
a[...] = [b[0], b[1], b[2], b[3]]
a.to_numpy(), a.tobytes() if hasattr(a, "tobytes") else a.buffer.tobytes(), str(a), repr(a)
isthmus.UnifiedBuffer((4, 6)).copy_from(a).copy_from([a[0]] * 4)
pickle.loads(pickle.dumps((a, a.buffer))), copy.copy(a), copy.deepcopy(a.buffer), a.tolist()
"""
    import copy
    import pickle

    arrays = (array_on(host), array_on(host))
    assert not issued_by(program, arrays=arrays, isthmus=isthmus, pickle=pickle, copy=copy)


@export
def test_a_warning_that_is_an_error_exports_nothing(
    host: Queue, take: Callable[[Any], Any]
) -> None:
    buffer = filled(MODEL, kind="device", queue=host)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for obj in (buffer, Array(buffer, MODEL.shape)):
            with pytest.raises(PortabilityWarning):
                take(obj)
    del obj
    buffer.disown()  # ValueError while it is exported


@pytest.mark.filterwarnings("ignore::isthmus.PortabilityWarning")
def test_freed_memory_is_not_exported(host: Queue) -> None:
    array = array_on(host)
    array.free()
    for take in (np.asarray, memoryview, np.from_dlpack):
        with pytest.raises(isthmus.ClosedError):
            take(array)


def test_rmms_buffers_are_exported_to_no_host(host: Queue) -> None:
    with host.device:
        buffer = DeviceBuffer(size=8)
        assert buffer.buffer.kind == "device"
        assert not hasattr(buffer, "__array_interface__")
        for export_to in (buffer.__dlpack__, buffer.__dlpack_device__):
            with pytest.raises(BufferError, match="device"):
                export_to()


def is_refused(array: Array) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            memoryview(array)
        except BufferError:
            return True
    return False


def in_thread(function: Callable[[], bool]) -> bool:
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_scopes(host: Queue) -> None:
    array = array_on(host)
    assert not is_refused(array)
    with isthmus.strict():
        assert is_refused(array)
        assert not in_thread(lambda: is_refused(array)), "another thread has its own scopes"
        with isthmus.strict(False):
            assert not is_refused(array)
        with pytest.raises(ZeroDivisionError), isthmus.strict(False):
            raise ZeroDivisionError
        assert is_refused(array)
    assert not is_refused(array)


def test_the_process_setting(host: Queue) -> None:
    array = array_on(host)
    assert isthmus.set_strict(True) is False
    assert is_refused(array)
    assert in_thread(lambda: is_refused(array))
    with isthmus.strict(False):
        assert not is_refused(array)
    assert isthmus.set_strict(False) is True


async def test_tasks_have_their_own_scopes(host: Queue) -> None:
    array = array_on(host)
    entered = asyncio.Event()

    async def strictly() -> bool:
        with isthmus.strict():
            entered.set()
            await asyncio.sleep(0)
            return is_refused(array)

    task = asyncio.create_task(strictly())
    await entered.wait()
    assert not is_refused(array)
    assert await task


PROGRAM = """
import isthmus
buffer = isthmus.Buffer(8, device="host")
try:
    memoryview(buffer)
except BufferError:
    print("refused")
"""


@pytest.mark.parametrize(
    ("value", "printed"), [(None, ""), ("", ""), ("0", ""), ("1", "refused\n")]
)
def test_the_environment(value: str | None, printed: str) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "ISTHMUS_STRICT"}
    if value is not None:
        environment["ISTHMUS_STRICT"] = value
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == printed
    assert ("PortabilityWarning" in done.stderr) is (printed == "")


def test_the_plug_in_is_strict(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
        import numpy as np
        import pytest
        import isthmus

        def test_refused():
            with pytest.raises(TypeError, match="to_numpy"):
                np.asarray(isthmus.zeros(3, device="host"))

        def test_allowed():
            with isthmus.strict(False), pytest.warns(isthmus.PortabilityWarning):
                np.asarray(isthmus.zeros(3, device="host"))
    """
    monkeypatch.delenv("ISTHMUS_STRICT", raising=False)
    run(pytester, body).assert_outcomes(passed=2)


def test_the_plug_in_leaves_the_choice_to_the_environment(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISTHMUS_STRICT", "0")
    plugin.pytest_configure(pytestconfig)
    assert isthmus.set_strict(False) is False
