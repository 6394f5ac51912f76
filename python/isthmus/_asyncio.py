# SPDX-License-Identifier: Apache-2.0
"""``await event``: imported when an event is first awaited."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._core import Event


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def wait_for(event: Event) -> None:
    """Returns or raises as ``event.wait()`` does, without blocking the loop.

    Each await has its own file descriptor, which the library writes to on completion, so any number
    of tasks may await one event. A cancelled task closes only its own descriptor.
    """
    if not event.done:
        await _notified(event)
    event.wait(0)


async def _notified(event: Event) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    try:
        loop.add_reader(descriptor, _wake, future)
        try:
            event._notify(descriptor)
            await future
        finally:
            loop.remove_reader(descriptor)
    finally:
        os.close(descriptor)
