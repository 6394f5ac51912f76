"""``allow_scalar()``: single elements of device memory, each by a transfer of its own."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token

    from typing_extensions import Self

Function = TypeVar("Function", bound="Callable[..., Any]")


class allow_scalar:  # noqa: N801
    """Allows single elements of arrays of device kind to be read and written.

    ``with isthmus.allow_scalar():``, or as a decorator of a function, a coroutine function too. It
    holds for the thread and ``asyncio`` task that entered it. Each element takes a transfer, some
    microseconds: good for a look, not for a loop.
    """

    def __init__(self) -> None:
        self._entered: list[Token[bool]] = []

    def __enter__(self) -> Self:
        self._entered.append(_core._scalar_is_allowed.set(True))
        return self

    def __exit__(self, *exc: object) -> None:
        _core._scalar_is_allowed.reset(self._entered.pop())

    def __call__(self, function: Function) -> Function:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with allow_scalar():
                    return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with allow_scalar():
                return function(*args, **kwargs)

        return called  # type: ignore[return-value]
