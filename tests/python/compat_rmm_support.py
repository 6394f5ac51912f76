# SPDX-License-Identifier: Apache-2.0
"""Helpers for the tests of isthmus.compat.rmm: the device of each backend as the current one, and
rejected arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import isthmus.compat.rmm as rmm
from isthmus.compat.rmm.pylibrmm.stream import DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isthmus import Device

# Values that are not valid byte counts, each with the error that they raise.
BAD_COUNTS: list[tuple[Any, type[Exception]]] = [
    (-1, OverflowError),
    (1 << 64, OverflowError),
    (1.5, TypeError),
    ("5", TypeError),
    (None, TypeError),
    (b"5", TypeError),
]
BAD_STREAMS: list[Any] = [None, 0, "default", object()]
NO_BUFFERS: list[Any] = [None, "abc", 3, object(), [1, 2]]


@pytest.fixture
def on(dev: Device) -> Iterator[Device]:
    """The device of each backend as the current one, in RMM's initial state."""
    with dev:
        rmm.reinitialize(devices=[])
        yield dev
        rmm.reinitialize(devices=[])


@pytest.fixture(params=["default", "per thread", "own"])
def stream(request: pytest.FixtureRequest, on: Device) -> Stream:
    """One stream of each kind."""
    if request.param == "own":
        return Stream()
    return DEFAULT_STREAM if request.param == "default" else PER_THREAD_DEFAULT_STREAM
