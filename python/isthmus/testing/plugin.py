# SPDX-License-Identifier: Apache-2.0
"""The pytest plug-in, active wherever Isthmus is installed.

``device``      the test runs once for each device found: the host, a simulated device, and every
                device with USM of any backend; ``--isthmus-device=FILTER`` restricts them
``queue``       a new queue on that device
``sim_device``  creates simulated devices: ``sim_device(capacity="1MiB", fail={"allocate": 2})``
``leak_check``  fails the test if memory that it allocated outlives it

Tests that use none of these cost nothing: no driver is opened, and NumPy is not imported. A fixture
or parameter of the same name in a project replaces the one here.

Strict mode is on (``isthmus.strict``), so that a test which passes on the device ``host`` does not
fail on a GPU because the host accesses its memory. ISTHMUS_STRICT=0 turns it off, and ``with
isthmus.strict(False):`` does so for part of a test.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import isthmus

_SIM = "sim"
_failed = pytest.StashKey[bool]()
_was_strict = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--isthmus-device``."""
    parser.getgroup("isthmus").addoption(
        "--isthmus-device",
        action="append",
        default=[],
        metavar="FILTER",
        help="run tests with the fixture `device` on these devices only: host, sim, opencl:cpu, "
        "...; may be repeated (default: every backend found)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Turns strict mode on, unless the environment decides."""
    import isthmus

    if "ISTHMUS_STRICT" not in os.environ:
        config.stash[_was_strict] = isthmus.set_strict(True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Restores the mode that was set before the test run."""
    import isthmus

    if _was_strict in config.stash:
        isthmus.set_strict(config.stash[_was_strict])


@pytest.fixture
def device(request: pytest.FixtureRequest) -> isthmus.Device:
    """Each device in turn; a simulated one is new for each test."""
    from isthmus import testing

    return testing.open_device(getattr(request, "param", ""))


@pytest.fixture
def queue(device: isthmus.Device) -> isthmus.Queue:
    """A new queue on ``device``."""
    import isthmus

    return isthmus.Queue(device)


@pytest.fixture
def sim_device() -> Callable[..., isthmus.Device]:
    """Creates simulated devices; the options are those of ``isthmus.testing.sim_device``."""
    from isthmus import testing

    return testing.sim_device


@pytest.fixture
def leak_check(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails the test if more memory of Isthmus is live after it than before, with the numbers.

    A test that failed is not checked: its traceback keeps its variables alive.
    """
    from ._leaks import leaks, live_now

    before = live_now()
    yield
    if request.node.stash.get(_failed, False):
        return
    leaked = leaks(before)
    if leaked:
        pytest.fail(leaked, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Records failures for ``leak_check``."""
    if call.when == "call" and call.excinfo is not None:
        item.stash[_failed] = True
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrizes ``device`` if that fixture is this module's."""
    if "device" not in metafunc.fixturenames or not _is_ours(metafunc):
        return
    filters = _found(tuple(metafunc.config.getoption("--isthmus-device")))
    metafunc.parametrize("device", filters, ids=filters, indirect=True)


def _is_ours(metafunc: pytest.Metafunc) -> bool:
    """Whether ``device`` is neither the project's own fixture nor a parameter that is already
    set.
    """
    definitions = metafunc._arg2fixturedefs.get("device", ())
    if not definitions or definitions[-1].func.__module__ != __name__:
        return False
    return not any("device" in call.params for call in metafunc._calls)


@functools.lru_cache
def _found(filters: tuple[str, ...]) -> list[str]:
    """Filters of the devices to test on. Opens drivers."""
    import isthmus

    if filters:
        return list(dict.fromkeys(name for each in filters for name in _matching(each)))
    real = (each for each in isthmus.devices() if each.backend not in ("host", _SIM))
    return ["host", _SIM, *(each.filter for each in real if "usm" in each.capabilities)]


def _matching(wanted: str) -> list[str]:
    import isthmus

    if wanted == _SIM:
        return [_SIM]
    try:
        matching = [each.filter for each in isthmus.devices(wanted)]
    except isthmus.Error as reason:
        raise pytest.UsageError(f"--isthmus-device={wanted}: {reason}") from None
    if not matching:
        raise pytest.UsageError(f"--isthmus-device={wanted}: there is no such device")
    return matching
