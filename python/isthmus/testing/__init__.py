# SPDX-License-Identifier: Apache-2.0
"""For the tests of programs that use Isthmus: queues, simulated devices, and leak checks.

With pytest the fixtures ``device``, ``queue``, ``sim_device`` and ``leak_check`` are available
without an import (see ``isthmus.testing.plugin``). The contents of this module work without pytest
too, except ``get_queue_or_skip``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import isthmus
from isthmus import _core

from ._leaks import LeakError, leak_check

__all__ = [
    "LeakError",
    "SimState",
    "get_queue_or_skip",
    "leak_check",
    "open_device",
    "sim_calls",
    "sim_configure",
    "sim_device",
    "sim_state",
]

Option = str | int | float | bool | Mapping[str, int] | tuple[str, ...] | list[str]


def get_queue_or_skip(filter: str | None = None) -> isthmus.Queue:  # noqa: A002
    """A new queue on the device that ``filter`` identifies (None: the default one).

    If there is no such device the running test is skipped, with the reason.
    """
    try:
        return isthmus.Queue(isthmus.Device(filter))
    except isthmus.DeviceNotFoundError as reason:
        import pytest

        pytest.skip(str(reason))


def open_device(wanted: str) -> isthmus.Device:
    """The device of a filter; ``"sim"`` creates a new one if ISTHMUS_SIM describes none."""
    is_new = wanted == "sim" and not os.environ.get("ISTHMUS_SIM")
    return sim_device() if is_new else isthmus.Device(wanted)


def sim_device(**options: Option) -> isthmus.Device:
    """Creates a simulated device on a new platform.

    The options are those of ``ISTHMUS_SIM``, described in the documentation of the simulated
    device: ``sim_device(capacity="64MiB", fail={"copy": 3}, effect="late", seed=7)``. In a ``with``
    statement it is the current device as well.
    """
    return _core.sim_create(options_text(options))


def sim_configure(device: isthmus.Device, **options: Option) -> None:
    """Changes the options that can change during the device's lifetime: faults, effect, speeds."""
    _core.sim_configure(device, options_text(options))


def sim_calls(device: isthmus.Device, kind: str = "any") -> int:
    """Number of driver calls of one kind so far ("allocate", "copy", ...; "any": all of them)."""
    return _core.sim_calls(device, kind)


class SimState(NamedTuple):
    """The state of a simulated device."""

    clock_ns: int  # its virtual time
    device_bytes: int  # live memory of device kind
    host_bytes: int  # live memory of the other kinds


def sim_state(device: isthmus.Device) -> SimState:
    """The device's virtual time, and its live memory."""
    return SimState(*_core.sim_state(device))


def options_text(options: Mapping[str, Option]) -> str:
    """Options in the syntax of ISTHMUS_SIM: ``capacity=64MiB,fail=copy:3,kinds=device+host``."""
    return ",".join(part for key, value in options.items() for part in _option_texts(key, value))


def _option_texts(key: str, value: Option) -> Iterator[str]:
    if isinstance(value, Mapping):  # faults: the number of the failing call of each kind
        for kind, number in value.items():
            yield f"{key}={kind}:{number}"
    elif isinstance(value, (tuple, list)):
        yield f"{key}={'+'.join(value)}"
    else:
        yield f"{key}={int(value) if isinstance(value, bool) else value}"
