# SPDX-License-Identifier: Apache-2.0
"""Strict mode: the host device refuses to export memory of device kind, like all other devices."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ._core import _set_strict_default, _strict_scope

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def strict(enabled: bool = True) -> Iterator[None]:
    """Turns strict mode on or off in a ``with`` block, for this thread or ``asyncio`` task.

    Memory of kind ``"device"`` of the device ``"host"`` is ordinary host memory. By default NumPy's
    conversion, the buffer protocol and DLPack export it to the host, after pending work, and issue
    a ``PortabilityWarning``. In strict mode they raise TypeError or BufferError, as they do on
    every other device. Takes precedence over ``set_strict``. Thread-safe; blocks may be nested.
    """
    token = _strict_scope.set(bool(enabled))
    try:
        yield
    finally:
        _strict_scope.reset(token)


def set_strict(enabled: bool) -> bool:
    """Turns strict mode on or off in all threads, and returns the former setting.

    Initially it is on if the environment variable ISTHMUS_STRICT is set to anything but ``0`` when
    Isthmus is imported, and in test runs with the pytest plug-in. Thread-safe.
    """
    return _set_strict_default(bool(enabled))


set_strict(os.environ.get("ISTHMUS_STRICT", "") not in ("", "0"))
