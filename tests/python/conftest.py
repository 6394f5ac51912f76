"""Fixtures over every back-end found, a leak check around each test, the long tier."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from support import BACKENDS, HOST_KINDS, KINDS, Make, live_again, open_backend

import isthmus
from isthmus import Device, Queue, _core
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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The rounds of exits: as many tests, since none may take longer than a hang."""
    if "exit_round" in metafunc.fixturenames:
        metafunc.parametrize("exit_round", range(20 if in_long_tier(metafunc.config) else 1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was absent, a line for each reason: a line for each test would hide what failed."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"absent in {count} tests: {reason}")


@pytest.fixture(params=BACKENDS)
def dev(request: pytest.FixtureRequest) -> Device:
    """Every back-end found; the simulated one delays each effect as long as it may."""
    return open_backend(request.param)


@pytest.fixture
def q(dev: Device) -> Queue:
    """A new queue of the back-end's device."""
    return Queue(dev)


def offered(dev: Device, kind: str) -> str:
    if kind not in dev.kinds:
        pytest.skip(f"{dev.filter} offers no {kind} kind: {dev.lacks}")
    return kind


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, dev: Device) -> str:
    return offered(dev, request.param)


@pytest.fixture(params=HOST_KINDS)
def host_kind(request: pytest.FixtureRequest, dev: Device) -> str:
    """The kinds that the host can touch."""
    return offered(dev, request.param)


@pytest.fixture
def gate() -> Iterator[isthmus.Event]:
    """A host event that holds work back; opened at the end if the test has not."""
    event = isthmus.Event()
    yield event
    if not event.done:
        event.complete()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(params=[PoolResource, ProviderResource], ids=["pool", "provider"])
def make(request: pytest.FixtureRequest) -> Make:
    """What is stood on: with frees in the queue's order, and without. The memory is the test's."""
    made: Make = request.param
    return made


@pytest.fixture(autouse=True)
def no_leak(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves more memory than it found; the traceback of one that failed may hold some."""
    _core._trim_default_pools()
    before = live()
    yield
    if request.node.stash.get(FAILED, False):
        return
    assert live_again(before), f"{live()} live, {before} before"
