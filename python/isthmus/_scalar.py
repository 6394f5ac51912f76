# SPDX-License-Identifier: Apache-2.0
"""``allow_scalar()``: access to single elements of device memory, with a transfer for each."""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

Function = TypeVar("Function", bound="Callable[..., Any]")

# Per task, not per object: tasks that share an object may leave it in any order.
_entered: ContextVar[int] = ContextVar("isthmus.allow_scalar.entered", default=0)


class allow_scalar:  # noqa: N801
    """Allows single elements of arrays of device kind to be read and written.

    ``with isthmus.allow_scalar():``, or as a decorator of a function or coroutine function. A
    generator function raises TypeError, because the permission would remain in effect for its
    caller. The permission applies to the thread and ``asyncio`` task that entered it; several may
    share one object. Each element costs a transfer of some microseconds: suitable for inspection,
    not for loops.
    """

    def __enter__(self) -> Self:
        _entered.set(_entered.get() + 1)
        _core._scalar_is_allowed.set(True)
        return self

    def __exit__(self, *exc: object) -> None:
        before = _entered.get() - 1
        if before < 0:
            raise RuntimeError(
                "allow_scalar() was left without being entered in this thread or task"
            )
        _entered.set(before)
        _core._scalar_is_allowed.set(before > 0)

    def __call__(self, function: Function) -> Function:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__} is a generator function: between its steps, its caller "
                "would have the permission. Use `with isthmus.allow_scalar():` in the function, "
                "around code without a yield"
            )
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
