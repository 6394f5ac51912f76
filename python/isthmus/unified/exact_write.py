# SPDX-License-Identifier: Apache-2.0
"""The end of a write of an exact range."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from isthmus._core import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def ended(end: Callable[..., None], *args: Any) -> Iterator[None]:
    """Ends a write after the block. An error of the block takes precedence over one of the end."""
    try:
        yield
    except BaseException:
        with suppress(ClosedError):
            end(*args)
        raise
    end(*args)
