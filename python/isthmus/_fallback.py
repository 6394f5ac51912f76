# SPDX-License-Identifier: Apache-2.0
"""``fallback=`` of isthmus.empty and similar functions: another kind to use if memory runs out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._core import (
    FallbackResource,
    InvalidArgumentError,
    MemoryResource,
    Queue,
    current_resource,
    default_pool,
)

if TYPE_CHECKING:
    from ._kinds import Kind

_KINDS: tuple[Kind, ...] = ("shared", "host")


def with_fallback(
    kind: Kind, fallback: object, queue: Queue, resource: MemoryResource | None
) -> FallbackResource:
    """``resource`` (None: the current or default one), falling back to ``fallback``'s kind."""
    if fallback not in _KINDS or fallback == kind:
        others = " or ".join(repr(each) for each in _KINDS if each != kind)
        raise InvalidArgumentError(f"fallback of {kind} memory must be {others}, not {fallback!r}")
    return FallbackResource(resource or _resource(kind, queue), _resource(fallback, queue))


def _resource(kind: Kind, queue: Queue) -> MemoryResource:
    current = current_resource(kind, queue=queue)
    if current is None or current.context != queue.context:
        return default_pool(kind, queue=queue)
    return current
