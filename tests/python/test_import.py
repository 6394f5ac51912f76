# SPDX-License-Identifier: Apache-2.0
"""Side effects that `import isthmus` must not have."""

from __future__ import annotations

import pytest
from support import python

MAPS = "open('/proc/self/maps').read()"


def test_no_driver_is_opened() -> None:
    python(
        "import isthmus, isthmus.memory\n"
        f"maps = {MAPS}\n"
        "assert 'libisthmus' in maps\n"
        "for name in ('OpenCL', 'intelocl', 'pocl', 'libcuda', 'libze_'):\n"
        "    assert name not in maps, name\n"
        "isthmus.devices()\n"
        f"assert 'intelocl' in {MAPS}\n"
    )


def test_only_the_drivers_that_a_filter_allows() -> None:
    python(
        "import isthmus\n"
        "isthmus.Buffer(8, device='host').fill(1)\n"
        f"assert 'intelocl' not in {MAPS}\n"
    )


NOT_IMPORTED = ["numpy", "asyncio", "rich", "pytest", "pickle", "subprocess"]
NOT_IMPORTED += ["isthmus._dpctl", "isthmus._frameworks"]


@pytest.mark.parametrize("module", NOT_IMPORTED)
def test_modules_that_are_not_imported(module: str) -> None:
    python(f"import isthmus, isthmus.memory, sys\nassert {module!r} not in sys.modules")


def test_classes_of_other_modules_are_unchanged() -> None:
    """PyTorch cannot be imported if typing.Any reports another module as its own."""
    python(
        "import sys, typing\n"
        "def places():\n"
        "    return {\n"
        "        (name, key): value.__module__\n"
        "        for name, module in list(sys.modules.items())\n"
        "        if not name.startswith('isthmus')\n"
        "        for key, value in list(vars(module).items())\n"
        "        if isinstance(value, type) and not value.__module__.startswith('isthmus.')\n"
        "    }\n"
        "before = places()\n"
        "import isthmus, isthmus.memory, isthmus.low_level\n"
        "after = places()\n"
        "assert {key: after[key] for key in before if key in after} == before\n"
        "moved = {key for key, place in after.items() if place == 'isthmus'}\n"
        "assert not moved, moved\n"
        "assert isthmus.Array.__module__ == isthmus.Error.__module__ == 'isthmus'\n"
    )


def test_numpy_is_imported_with_the_first_array() -> None:
    python(
        "import isthmus, sys\n"
        "buffer = isthmus.Buffer(64, kind='host')\n"
        "buffer.copy_from(bytes(range(64)))\n"
        "assert bytes(memoryview(buffer)) == buffer.tobytes() == bytes(range(64))\n"
        "buffer.__sycl_usm_array_interface__, buffer.__array_interface__\n"
        "assert 'numpy' not in sys.modules\n"
        "assert buffer.to_numpy()[3] == 3\n"
        "assert 'numpy' in sys.modules\n"
    )


def test_few_threads_are_started() -> None:
    python(
        "import isthmus, os\n"
        "threads = lambda: len(os.listdir('/proc/self/task'))\n"
        "assert threads() == 1\n"
        "buffer = isthmus.Buffer(64, resource=isthmus.memory.ProviderResource('host', 'host'))\n"
        "buffer.fill(3)\n"
        "assert buffer.tobytes() == bytes([3]) * 64\n"
        "assert threads() == 1, 'a small copy needs no worker'\n"
        "made = [isthmus.Buffer(64, kind='host', device='host') for _ in range(100)]\n"
        "assert threads() == 2, 'one thread returns what pools do not need'\n"
    )


def test_where_the_package_keeps_its_parts() -> None:
    python(
        "import isthmus, os\n"
        "assert os.path.exists(os.path.join(isthmus.get_include(), 'isthmus', 'isthmus.h'))\n"
        "assert 'libisthmus.so.0' in os.path.basename(isthmus.get_library())\n"
        "assert os.path.exists(isthmus.get_library())\n"
    )


def test_public_names() -> None:
    python(
        "import isthmus\n"
        "for name in isthmus.__all__:\n"
        "    assert hasattr(isthmus, name), name\n"
        "for cls in (isthmus.Buffer, isthmus.Device, isthmus.Queue, isthmus.Error):\n"
        "    assert cls.__module__ == 'isthmus', cls\n"
    )


def test_errors_derive_from_pythons_own() -> None:
    import isthmus

    bases = {
        "InvalidArgumentError": ValueError,
        "OutOfRangeError": ValueError,
        "USMAllocationError": MemoryError,
        "UnsupportedError": RuntimeError,
        "WrongContextError": ValueError,
        "DeviceNotFoundError": ValueError,
        "ClosedError": ValueError,
        "ReadOnlyError": BufferError,
        "DeviceLostError": RuntimeError,
        "DriverError": RuntimeError,
        "WaitTimeoutError": TimeoutError,
        "DependencyError": RuntimeError,
        "AbandonedError": RuntimeError,
        "CallbackError": RuntimeError,
        "ForkedError": RuntimeError,
        "InternalError": RuntimeError,
        "ConflictError": RuntimeError,
        "DeadlockError": RuntimeError,
    }
    for name, base in bases.items():
        assert issubclass(getattr(isthmus, name), isthmus.Error), name
        assert issubclass(getattr(isthmus, name), base), name
    assert issubclass(isthmus.ReadOnlyError, ValueError)


ENVIRONMENT = """
import subprocess, sys

def of_a_child():
    # Without os.environ, which does not see what native code sets.
    told = subprocess.run(["env", "-0"], capture_output=True, check=True).stdout
    return dict(each.split(b"=", 1) for each in told.split(b"\\0") if each)

before = of_a_child()
import isthmus, isthmus.memory
assert of_a_child() == before
isthmus.Buffer(8, device="host").fill(1)
assert of_a_child() == before
isthmus.devices()
isthmus.absent()
for backend in sys.argv[1:]:
    isthmus.devices(backend)
added = of_a_child().items() - before.items()
names = {name for name, _ in added}
# The one exception: loaders of OpenCL take drivers of no other place. SYCL and the threading
# library of Intel's runtime set one each.
assert names <= {b"OCL_ICD_FILENAMES", b"ZES_ENABLE_SYSMAN", b"HWLOC_PLUGINS_PATH"}, added
assert of_a_child().keys() >= before.keys()
"""


@pytest.mark.parametrize("backends", [(), ("opencl",), ("opencl", "sycl")])
def test_the_environment_of_children_stays(backends: tuple[str, ...]) -> None:
    unset = ("OCL_ICD_FILENAMES", "ISTHMUS_OPENCL_LIBRARY", "ISTHMUS_SYCL_LIBRARY")
    code = f"import os\nfor name in {unset}: os.environ.pop(name, None)\n" + ENVIRONMENT
    python(code, *backends)


def test_a_named_library_comes_before_those_that_are_found() -> None:
    named = {"ISTHMUS_OPENCL_LIBRARY": "/nowhere.so", "ISTHMUS_SYCL_LIBRARY": "/nowhere.so"}
    python(
        "import isthmus\n"
        "from isthmus import _drivers\n"
        "assert _drivers.libraries() == []\n"
        "assert '/nowhere.so' in dict(isthmus.absent()).get('opencl', '/nowhere.so')\n",
        **named,
    )
