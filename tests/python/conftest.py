# SPDX-License-Identifier: Apache-2.0
"""Fixtures over every backend found, a leak check around each test, and the long tier's options."""

from __future__ import annotations

import gc
import os
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from support import BACKENDS, HOST_KINDS, KINDS, Make, is_memory_released, open_backend

import isthmus
from isthmus import Device, Queue
from isthmus.memory import PoolResource, ProviderResource, live

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="the long tier: 1000 exits")


def in_long_tier(config: pytest.Config) -> bool:
    return bool(config.getoption("--long")) or os.environ.get("ISTHMUS_LONG") == "1"


@pytest.fixture(scope="session")
def long_tier(pytestconfig: pytest.Config) -> bool:
    return in_long_tier(pytestconfig)


def pytest_configure(config: pytest.Config) -> None:
    isthmus.set_strict(True)  # as the plug-in does, which is not installed with a build tree
    settings.register_profile("ordinary", max_examples=60, deadline=None)
    settings.register_profile("long", max_examples=500, deadline=None)
    settings.load_profile("long" if in_long_tier(config) else "ordinary")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if in_long_tier(config):
        return
    left_out = [item for item in items if item.get_closest_marker("long_tier")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long_tier")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # Each round is a test, because the time limit that detects hangs applies per test.
    if "exit_round" in metafunc.fixturenames:
        metafunc.parametrize("exit_round", range(20 if in_long_tier(metafunc.config) else 1))
    if "dev" in metafunc.fixturenames:
        parametrize_devices(metafunc)


# For behaviour that is decided above the backend interface and thus the same on every driver:
# memory that the host cannot access and whose operations complete late, and memory that the host
# can access; also CUDA's and SYCL's where present.
TWO_PLACES = (("late", "device"), ("host", "host"), ("cuda", "device"), ("sycl", "device"))
TWO_HOST_PLACES = (("late", "shared"), ("host", "host"), ("cuda", "shared"), ("sycl", "shared"))
ONE_PLACE = (("host", "host"), ("cuda", "host"), ("sycl", "host"))


def parametrize_devices(metafunc: pytest.Metafunc) -> None:
    """Chooses where a test of `dev` runs: on every backend in the long tier or without a mark."""
    asked = [name for name in ("kind", "host_kind") if name in metafunc.fixturenames]
    kind = next((name for name in asked if not parametrizes(metafunc, name)), None)
    some = marked_devices(metafunc, TWO_HOST_PLACES if kind == "host_kind" else TWO_PLACES)
    if some is None:
        metafunc.parametrize("dev", drivers(metafunc), indirect=True)
        if kind is not None:
            every = HOST_KINDS if kind == "host_kind" else KINDS
            metafunc.parametrize(kind, every, indirect=True)
    elif kind is None:
        metafunc.parametrize("dev", [name for name, _ in some], indirect=True)
    else:
        metafunc.parametrize(("dev", kind), some, indirect=True)


def parametrizes(metafunc: pytest.Metafunc, name: str) -> bool:
    """Whether the test parametrizes this argument itself."""
    names = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    return any(name in (each.split(",") if isinstance(each, str) else each) for each in names)


Places = list[tuple[str, str]]


def marked_devices(metafunc: pytest.Metafunc, two: tuple[tuple[str, str], ...]) -> Places | None:
    marked = metafunc.definition.get_closest_marker
    if in_long_tier(metafunc.config) or marked("every_backend"):
        return None
    if marked("host_only"):
        return [place for place in ONE_PLACE if place[0] in BACKENDS][:1]
    if marked("sim_and_host"):
        return [place for place in two if place[0] in BACKENDS]
    return None


def drivers(metafunc: pytest.Metafunc) -> list[str]:
    long = in_long_tier(metafunc.config) or metafunc.definition.get_closest_marker("second_driver")
    return [name for name in BACKENDS if long or name != "pocl"]


def pytest_collection_finish() -> None:
    """Excludes imported modules from garbage collection, as hundreds of tests run collections."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Reports skipped tests by reason, since one line per test would hide the failures."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"absent in {count} tests: {reason}")


@pytest.fixture
def dev(request: pytest.FixtureRequest) -> Device:
    """The device of each backend found; the simulated one delays each effect as long as allowed."""
    return open_backend(request.param)


@pytest.fixture
def q(dev: Device) -> Queue:
    """A new queue on the device of the backend."""
    return Queue(dev)


def supported_kind(dev: Device, kind: str) -> str:
    if kind not in dev.kinds:
        pytest.skip(f"{dev.filter} offers no {kind} kind: {dev.limitations}")
    return kind


@pytest.fixture
def kind(request: pytest.FixtureRequest, dev: Device) -> str:
    return supported_kind(dev, request.param)


@pytest.fixture
def host_kind(request: pytest.FixtureRequest, dev: Device) -> str:
    """The kinds that the host can access."""
    return supported_kind(dev, request.param)


@pytest.fixture
def gate() -> Iterator[isthmus.Event]:
    """A host event that delays work; completed at teardown if the test has not completed it."""
    event = isthmus.Event()
    yield event
    if not event.done:
        event.complete()


@pytest.fixture
def unpooled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Buffers without a resource come from the driver, so that ``live`` counts each of them."""
    devices = [Device("host")]
    if "dev" in request.fixturenames:
        devices.append(request.getfixturevalue("dev"))
    devices += [
        request.getfixturevalue(each).device
        for each in ("q", "queue")
        if each in request.fixturenames
    ]
    with ExitStack() as stack:
        for device in devices:
            for each in device.kinds:
                stack.enter_context(isthmus.using(ProviderResource(each, device)))
        yield


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(params=[PoolResource, ProviderResource], ids=["pool", "provider"])
def make(request: pytest.FixtureRequest) -> Make:
    """The upstream resource: with and without stream-ordered frees. The test owns its memory."""
    made: Make = request.param
    return made


@pytest.fixture(autouse=True)
def no_leak(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaks memory. A failed test is exempt, because its traceback may keep some alive."""
    before = live()
    yield
    if request.node.stash.get(FAILED, False):
        return
    assert is_memory_released(before), f"{live()} live, {before} before"
