"""What the tests of isthmus.compat.rmm share: a back-end's device as the current one, and rows of
what is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import isthmus.compat.rmm as rmm
from isthmus.compat.rmm.pylibrmm.stream import DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isthmus import Device

# What no count of bytes may be, and what is told.
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
    """Every back-end's device, as the current one, with nothing set."""
    with dev:
        rmm.reinitialize(devices=[])
        yield dev
        rmm.reinitialize(devices=[])


@pytest.fixture(params=["default", "per thread", "own"])
def stream(request: pytest.FixtureRequest, on: Device) -> Stream:
    """The kinds of streams there are."""
    if request.param == "own":
        return Stream()
    return DEFAULT_STREAM if request.param == "default" else PER_THREAD_DEFAULT_STREAM
