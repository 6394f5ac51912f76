# SPDX-License-Identifier: Apache-2.0
"""``isthmus.testing`` and its pytest plug-in, in test runs of their own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import isthmus
from isthmus import testing
from isthmus.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared
from isthmus.testing import get_queue_or_skip

pytest_plugins = ["pytester"]


# Document 000's block, with the imports above.
class TestUSMMemory:
    @pytest.mark.parametrize("mem_class", [MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost])
    def test_allocation(self, mem_class: type) -> None:
        q = get_queue_or_skip()
        mem = mem_class(1024, queue=q)
        assert mem.nbytes == 1024
        assert mem.sycl_queue == q

    @pytest.mark.parametrize("mem_class", [MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost])
    def test_copy_roundtrip(self, mem_class: type) -> None:
        q = get_queue_or_skip()
        src = np.array([1, 2, 3, 4], dtype=np.float32)
        mem = mem_class(src.nbytes, queue=q)
        mem.copy_from_host(src.view(np.uint8))
        dst = np.empty_like(src)
        mem.copy_to_host(dst.view(np.uint8))
        assert np.array_equal(src, dst)

    def test_interface(self) -> None:
        q = get_queue_or_skip()
        mem = MemoryUSMDevice(1024, queue=q)
        iface = mem.__sycl_usm_array_interface__
        assert "data" in iface
        assert "shape" in iface
        assert iface["shape"] == (1024,)
        assert iface["syclobj"] == q


def test_no_such_device_skips() -> None:
    with pytest.raises(pytest.skip.Exception):
        get_queue_or_skip("opencl:accelerator:9")


def test_a_filter_that_is_none_fails() -> None:
    with pytest.raises(ValueError):
        get_queue_or_skip("not a filter")


def test_sim_device_counts_and_fails() -> None:
    device = testing.sim_device(capacity="1MiB", fail={"copy": 2}, kinds=("device", "host"))
    assert device.kinds == ("device", "host")
    before = testing.sim_calls(device, "allocate")
    buffer = isthmus.Buffer(4096, device=device)
    assert testing.sim_calls(device, "allocate") > before
    assert testing.sim_state(device).device_bytes >= 4096
    with pytest.raises(isthmus.USMAllocationError):
        isthmus.Buffer(2 << 20, device=device)
    source = np.ones(4096, np.uint8)
    buffer.copy_from(source)
    with pytest.raises(isthmus.Error):
        buffer.copy_from(source)
    buffer.copy_from(source)
    testing.sim_configure(device, fail={"copy": testing.sim_calls(device, "copy") + 1})


def test_sim_device_as_context_is_current() -> None:
    with testing.sim_device() as device:
        assert isthmus.current_device() == device
        assert isthmus.Buffer(16).device == device
    assert isthmus.current_device() != device


def test_an_unknown_option_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="colour"):
        testing.sim_device(colour="red")


def test_leak_check_reports_the_amount() -> None:
    kept = []
    leak = pytest.raises(testing.LeakError, match=r"1 of shared kind, \d+ bytes")
    with leak, testing.leak_check(timeout=0.1):
        kept.append(isthmus.Buffer(4096, kind="shared", device="host"))
    kept.clear()
    with testing.leak_check():
        isthmus.Buffer(4096, kind="shared", device="host").fill(1)


def run(pytester: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    """Runs a test file in a separate pytest process."""
    pytester.makepyfile(body)
    plugin = () if _is_installed() else ("-p", "isthmus.testing.plugin")
    return pytester.runpytest_subprocess(*plugin, "-v", *arguments)


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    return any(entry.value == "isthmus.testing.plugin" for entry in entry_points(group="pytest11"))


USES_DEVICE = """
    import numpy as np
    import isthmus

    def test_copy(device, queue, leak_check):
        assert queue.device == device
        buffer = isthmus.Buffer(64, queue=queue)
        buffer.copy_from(np.arange(64, dtype=np.uint8))
        assert buffer.tobytes() == bytes(range(64))
"""


def test_device_is_every_back_end(pytester: pytest.Pytester) -> None:
    result = run(pytester, USES_DEVICE)
    names = ["host", "sim"]
    names += [d.filter for d in isthmus.devices("opencl") if "usm" in d.capabilities]
    result.assert_outcomes(passed=len(names))
    for name in names:
        result.stdout.fnmatch_lines([f"*test_copy?{name}?*PASSED*"])


def test_the_option_restricts(pytester: pytest.Pytester) -> None:
    result = run(pytester, USES_DEVICE, "--isthmus-device=sim", "--isthmus-device=host")
    result.assert_outcomes(passed=2)
    result = run(pytester, USES_DEVICE, "--isthmus-device=opencl:accelerator")
    assert result.ret != 0
    assert "there is no such device" in result.stdout.str() + result.stderr.str()


def test_a_leak_fails_the_test_with_numbers(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import isthmus
        kept = []

        def test_leaks(leak_check):
            kept.append(isthmus.Buffer(4096, device="host"))

        def test_fails_for_another_reason(leak_check):
            buffer = isthmus.Buffer(4096, device="host")
            assert buffer.nbytes == 1
        """,
    )
    result.assert_outcomes(passed=1, errors=1, failed=1)
    result.stdout.fnmatch_lines(["*not freed: 1 of device kind, * bytes*"])


def test_sim_device_fixture(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import isthmus, pytest

        def test_full(sim_device):
            device = sim_device(capacity="64KiB")
            with pytest.raises(MemoryError):
                isthmus.Buffer(1 << 20, device=device)
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_project_keeps_its_own_names(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.fixture
        def device():
            return "mine"

        def test_fixture(device):
            assert device == "mine"

        class TestParameter:
            @pytest.fixture
            def queue(self):
                return "also mine"

            @pytest.mark.parametrize("device", [1, 2])
            def test_it(self, device, queue):
                assert device in (1, 2)
        """,
    )
    result.assert_outcomes(passed=3)


def test_a_parameter_named_device_is_left_alone(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.parametrize("device", ["a", "b"])
        def test_it(device):
            assert device in "ab"
        """,
    )
    result.assert_outcomes(passed=2)


def test_runs_that_do_not_use_it_open_nothing(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import sys

        def test_nothing_was_loaded():
            with open("/proc/self/maps") as maps:
                mapped = maps.read()
            assert "libintelocl" not in mapped and "libOpenCL" not in mapped
            assert "numpy" not in sys.modules
        """,
    )
    result.assert_outcomes(passed=1)


def test_the_plug_in_costs_no_numpy_and_little_time() -> None:
    code = (
        "import sys, pytest, time; t = time.process_time(); import isthmus.testing.plugin; "
        "print(time.process_time() - t, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, numpy = done.stdout.split()
    assert numpy == "False"
    assert float(seconds) < 1.0
