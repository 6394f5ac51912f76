# SPDX-License-Identifier: Apache-2.0
"""Helpers for the Python tests: devices, programs in a subprocess, waiting without fixed delays."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import isthmus
from isthmus import Buffer, Device, _core, _drivers
from isthmus.memory import PoolResource, ProviderResource, live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from _pytest.mark.structures import ParameterSet

KINDS = ("device", "shared", "host")
HOST_KINDS = ("shared", "host")
Make = type[PoolResource] | type[ProviderResource]
# A sanitizer delays the reuse of freed memory, and aborts the process on RTLD_DEEPBIND.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
ROOT = Path(__file__).resolve().parents[2]


def other_threads_sleep() -> bool:
    """Whether no thread except the calling one is running."""
    caller = threading.get_native_id()
    for thread in Path("/proc/self/task").iterdir():
        try:
            status = (thread / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):  # the thread is ending
            return False
        # The state follows the name, which may contain any characters: proc(5).
        if int(thread.name) != caller and not status.rpartition(") ")[2].startswith("S"):
            return False
    return True


if SANITIZED:
    # AddressSanitizer's allocator has fork handlers only since LLVM 18 (llvm-project#75290). With
    # older ones, if a thread holds one of its locks at a fork, the child hangs at its next free.
    os.register_at_fork(before=lambda: until(other_threads_sleep))


def sim(**options: Any) -> Device:
    """A new simulated device, with options such as capacity="1MiB", fail="copy:3"."""
    return _core.sim_create(",".join(f"{key}={value}" for key, value in options.items()))


def has_cuda() -> bool:
    try:
        return bool(Device("cuda"))
    except isthmus.DeviceNotFoundError:
        if os.environ.get("ISTHMUS_REQUIRE_CUDA") == "1":
            raise
        return False


def has_gpu() -> bool:
    """Whether there is a CUDA device other than the stand-in."""
    return has_cuda() and "stand-in" not in Device("cuda").name


def driver_library(backend: str) -> str:
    """The library that Isthmus opens for "opencl" or "sycl"; empty if it is not installed."""
    named = os.environ.get(f"ISTHMUS_{backend.upper()}_LIBRARY")
    return named or dict(_drivers.libraries()).get(backend, "")


def opencl_library() -> str:
    """Intel's runtime as Isthmus finds it; empty if it is not installed."""
    return driver_library("opencl")


def relay(backend: str) -> dict[str, str]:
    """The environment of a program whose calls to a backend's driver pass through the relay.

    CUDA's relay forwards to the stand-in, or to the driver if there is a GPU. Skips the test if
    neither exists.
    """
    name = f"lib{backend}_relay.so"
    named = os.environ.get("ISTHMUS_CUDA_LIBRARY")
    folders = [Path(named).parent] if named else []
    built = next(
        (at for at in [*folders, ROOT / "build" / "dev" / "tests"] if (at / name).exists()), None
    )
    if built is None:
        pytest.skip(f"{name} is not built")
    if backend == "cuda":
        behind = "ISTHMUS_TEST_CUDA_DRIVER"
        driver = "libcuda.so.1" if has_gpu() else str(built / "libcuda_stand_in.so")
    else:
        behind = f"ISTHMUS_TEST_{backend.upper()}_LIBRARY"
        driver = driver_library(backend)
    if not driver or (driver.startswith("/") and not os.path.exists(driver)):
        pytest.skip(f"no driver of {backend} for the relay to stand in front of")
    return {f"ISTHMUS_{backend.upper()}_LIBRARY": str(built / name), behind: driver}


def has_pocl() -> bool:
    vendors = Path("/etc/OpenCL/vendors")
    return any("pocl" in entry.name.lower() for entry in vendors.glob("*.icd"))


def intel_device() -> Device:
    """The OpenCL CPU device of Intel's runtime. Its absence fails the test, and is no skip."""
    for device in isthmus.devices("opencl"):
        if "usm" in device.capabilities and "Intel" in device.platform.vendor:
            return device
    if os.environ.get("ISTHMUS_ALLOW_NO_OPENCL") == "1":
        pytest.skip("no Intel OpenCL runtime, and ISTHMUS_ALLOW_NO_OPENCL=1")
    raise AssertionError(f"Intel's OpenCL runtime is not there: {isthmus.absent()}")


def pocl_device() -> Device:
    for device in isthmus.devices("opencl"):
        if "Portable" in device.platform.name or "pocl" in device.platform.name.lower():
            return device
    raise AssertionError(f"PoCL is installed and was not found: {isthmus.absent()}")


def open_backend(name: str) -> Device:
    """Opens a backend. `late` is a simulated device on which a missing wait causes wrong data."""
    opened: dict[str, Callable[[], Device]] = {
        "host": lambda: Device("host"),
        "sim": sim,
        "late": lambda: sim(effect="late"),
        "opencl": intel_device,
        "pocl": pocl_device,
        "sycl": lambda: Device("sycl"),
        "cuda": lambda: Device("cuda"),
    }
    return opened[name]()


def stops_dependents(queue: isthmus.Queue) -> bool:
    """Whether the driver can keep dependents of a failure from running; else the error says so."""
    return "usm" in queue.device.capabilities


def backends() -> tuple[str, ...]:
    """The backends found, or those that ISTHMUS_TEST_BACKENDS names: host,late,opencl."""
    named = os.environ.get("ISTHMUS_TEST_BACKENDS")
    if named:
        return tuple(named.split(","))
    found = ["host", "late", "opencl"]
    return (*found, *(["pocl"] if has_pocl() else []), *(["cuda"] if has_cuda() else []))


BACKENDS = backends()


def noise(nbytes: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


def filled(data: Any, *, kind: str, queue: isthmus.Queue, **keywords: Any) -> Buffer:
    """A new buffer that contains these bytes."""
    raw = np.frombuffer(data, np.uint8)
    made = Buffer(raw.nbytes, kind=kind, queue=queue, **keywords)
    made.copy_from(raw)
    return made


def until(condition: Callable[[], object], seconds: float = 5.0) -> bool:
    """Waits for the condition and returns it; `seconds` only guards against a hang."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return bool(condition())
        time.sleep(0.002)
    return True


def raised(call: Callable[[], object]) -> type[BaseException] | None:
    """The type of the exception that the call raises, None if it raises none."""
    try:
        call()
    except BaseException as error:
        return type(error)
    return None


def sampled(cases: Iterable[tuple[object, ...]], step: int = 4) -> list[ParameterSet]:
    """Parameters, of which only every ``step``-th runs outside the long tier."""
    return [
        pytest.param(*case, marks=() if number % step == 0 else pytest.mark.long_tier)
        for number, case in enumerate(cases)
    ]


def driver_calls(pool: PoolResource, step: Callable[[], object]) -> int:
    """How often `pool` calls its driver during `step`; the end of a decay window may add calls."""
    before = pool.maps + pool.unmaps
    step()
    return pool.maps + pool.unmaps - before


def is_memory_released(before: tuple[int, int]) -> bool:
    """Whether no more memory is live than before; waits, since frees may be pending."""

    def is_released() -> bool:
        now = live()
        return now[0] <= before[0] and now[1] <= before[1]

    if is_released():
        return True
    gc.collect()
    return until(is_released)


def trim_default_pools(device: Device) -> None:
    """Makes the next large request obtain driver memory instead of what earlier tests left."""
    for kind in KINDS:
        for use in ("arrays", "buffers"):
            isthmus.default_pool(kind, device, use=use).trim()


def python(
    code: str, *arguments: str, timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program in a new interpreter, which must succeed without output to stderr."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=program_environment(**environment),
        check=False,
    )
    assert done.returncode == 0, f"gave {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.stderr == ""
    return done


def program_environment(**more: str) -> dict[str, str]:
    """The environment of a program that can import isthmus and this file."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent), *sys.path]))
    # Since Python 3.12 a fork in a multi-threaded process warns, and drivers create threads.
    own = {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore:This process:DeprecationWarning"}
    return os.environ | own | more


def message_has(error: pytest.ExceptionInfo[BaseException], parts: Iterable[object]) -> None:
    """Asserts that the message contains these values and limits."""
    text = str(error.value)
    missing = [part for part in map(str, parts) if part not in text]
    assert not missing, f"{missing} not in: {text}"
