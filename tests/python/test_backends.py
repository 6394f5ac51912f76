# SPDX-License-Identifier: Apache-2.0
"""The backends found on this machine, and their descriptions."""

from __future__ import annotations

import pytest
from support import KINDS, intel_device, python, sim

import isthmus
from isthmus import Device

pytestmark = pytest.mark.second_driver
CAPABILITIES = {
    "device_kind",
    "shared_kind",
    "host_kind",
    "usm",
    "wait_for_host",
    "prefetch",
    "advise",
    "profile",
    "query_free_memory",
    "run_functions",
    "export_handles",
    "remap",
    "ipc",
    "write_combine",
}


def test_intel_opencl_is_there() -> None:
    device = intel_device()
    assert device.backend == "opencl"
    assert device.type == "cpu"
    assert device.kinds == KINDS
    assert device.native_handle != 0
    assert device.platform.library.endswith("libintelocl.so")


def test_the_default_device_is_the_best_with_usm() -> None:
    default = isthmus.devices()[0]
    assert default == Device()
    assert "usm" in default.capabilities
    assert default.backend != "host", "a driver with USM is here and goes before the host"
    assert default.backend != "sim", "simulated devices are found only by name"


def test_the_host_is_always_there() -> None:
    host = Device("host")
    assert host.backend == "host"
    assert host.kinds == KINDS
    assert host in isthmus.devices()


def test_description(dev: Device) -> None:
    assert dev.name
    assert dev.backend in ("host", "sim", "cuda", "opencl")
    assert dev.filter.startswith(dev.backend)
    assert dev.type in ("cpu", "gpu", "accelerator")
    assert isinstance(dev.vendor, str)
    assert isinstance(dev.driver_version, str)
    assert dev.capabilities <= CAPABILITIES
    assert {f"{kind}_kind" for kind in dev.kinds} <= dev.capabilities
    assert dev.compute_units >= 1
    assert dev.copy_engines >= 0
    assert 0 < dev.max_allocation <= dev.total_memory
    assert dev.base_alignment & (dev.base_alignment - 1) == 0
    assert dev.max_alignment >= dev.base_alignment


def test_limitations_are_reported(dev: Device) -> None:
    assert isinstance(dev.limitations, str)
    if "usm" not in dev.capabilities:
        assert "cl_intel_unified_shared_memory" in dev.limitations


def test_memory_info(dev: Device) -> None:
    if "query_free_memory" not in dev.capabilities:
        with pytest.raises(isthmus.UnsupportedError, match="free"):
            dev.memory_info()
        return
    free, total = dev.memory_info()
    assert 0 < free <= total


def test_platforms() -> None:
    found = isthmus.platforms()
    assert "host" in [platform.backend for platform in found]
    for platform in found:
        assert platform.name in repr(platform)
        assert isinstance(platform.vendor, str)
        assert isinstance(platform.version, str)
        assert isinstance(platform.library, str)
        assert platform.devices
        assert all(device.platform.name == platform.name for device in platform.devices)


def test_absent_drivers_have_a_reason() -> None:
    for backend, reason in isthmus.absent():
        assert backend
        assert reason


def test_each_device_is_found_by_its_own_filter() -> None:
    for device in isthmus.devices():
        assert Device(device.filter) == device


def test_sim_devices_are_each_their_own() -> None:
    one, other = sim(), sim()
    assert one != other
    assert one.default_context != other.default_context


@pytest.mark.parametrize("first", ["sim", "sim:3", "host:gpu", "host:cpu:5"])
def test_a_filter_without_matches_keeps_drivers_open(first: str) -> None:
    listing = "print([each.name for each in isthmus.devices()])"
    fresh = python(f"import isthmus; {listing}")
    after = python(f"import isthmus; assert isthmus.devices({first!r}) == []; {listing}")
    assert after.stdout == fresh.stdout


def test_a_missing_device_is_reported_with_its_variable() -> None:
    code = "import isthmus\ntry: isthmus.Buffer(1)\nexcept isthmus.Error as error: print(error)"
    assert "ISTHMUS_DEVICE: no device" in python(code, ISTHMUS_DEVICE="gpu:7").stdout
    # SYCL's devices are searched only if no other is found, and are listed from then on.
    others = "[each for each in isthmus.devices() if each.backend != 'sycl']"
    listing = f"import isthmus; print(len({others}))"
    assert python(listing, ISTHMUS_DEVICE="gpu:7").stdout == python(listing).stdout
