# SPDX-License-Identifier: Apache-2.0
"""Ends writes of exact ranges."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from isthmus._core import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def end_after(end: Callable[..., None], *args: Any) -> Iterator[None]:
    """Calls ``end`` after the block. An error of the block takes precedence over one of ``end``."""
    try:
        yield
    except BaseException:
        with suppress(ClosedError):
            end(*args)
        raise
    end(*args)
