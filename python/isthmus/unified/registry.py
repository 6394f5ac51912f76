# SPDX-License-Identifier: Apache-2.0
"""``BufferRegistry``: unified buffers by an id, so that a message need only contain the id."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

from .buffer import UnifiedBuffer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BufferRegistry", "UnknownBufferError", "get_buffer_registry"]


class UnknownBufferError(KeyError):
    """The id was never assigned, was released, or its buffer no longer exists."""

    def __init__(self, buffer_id: object) -> None:
        super().__init__(buffer_id)
        self.buffer_id = buffer_id
        """The id as it was passed."""

    def __str__(self) -> str:
        return (
            f"no buffer is registered as {self.buffer_id!r}: it was never registered, was "
            "released as often as registered, or was registered with weak=True and is no longer "
            "referenced"
        )


class _Entry:
    __slots__ = ("buffer", "count", "is_weak", "nbytes", "number", "ref")

    def __init__(self, ref: weakref.ref[UnifiedBuffer], nbytes: int, number: int) -> None:
        self.ref = ref
        self.nbytes = nbytes
        self.number = number  # id() of the buffer
        self.count = 0
        self.buffer: UnifiedBuffer | None = None  # set while the count is not 0
        self.is_weak = False  # may be looked up with a count of 0 too


class BufferRegistry:
    """Assigns ids to unified buffers, by which other threads look them up; nothing is copied.

    Registrations are counted, and keep the buffer alive until it was released as often:

        buffer_id = registry.register(buf)       # here
        registry.get(buffer_id).device           # there
        registry.release(buffer_id)              # by the last user

    A registration with ``weak=True`` is not counted and does not keep the buffer alive, which is
    available only while it is referenced elsewhere. Ids are valid in this process only.
    Thread-safe.
    """

    def __init__(self) -> None:
        # Reentrant: a garbage collection under the lock may release buffers of the objects it
        # collects.
        self._lock = threading.RLock()
        self._entries: dict[str, _Entry] = {}
        self._ids: dict[int, str] = {}  # by id() of the buffer, which lives as long as the entry

    def register(self, buf: UnifiedBuffer, *, weak: bool = False) -> str:
        """Returns the buffer's id, a UUID as text, which is the same while the buffer is
        registered.

        TypeError unless it is a whole ``UnifiedBuffer``; for a part, register its buffer.
        """
        if not isinstance(buf, UnifiedBuffer):
            raise TypeError(
                f"a registry takes whole UnifiedBuffers, not {type(buf).__name__}: for a part, "
                "register its buffer, and pass the range along"
            )
        with self._lock:
            buffer_id = self._ids.get(id(buf)) or self._add(buf)
            entry = self._entries[buffer_id]
            if weak:
                entry.is_weak = True
            else:
                entry.count += 1
                entry.buffer = buf
            return buffer_id

    def get(self, buffer_id: str) -> UnifiedBuffer:
        """The buffer itself. UnknownBufferError, a KeyError, if there is none."""
        entry = self._entries.get(buffer_id)
        buf = entry.ref() if entry is not None else None
        if buf is None:
            raise UnknownBufferError(buffer_id)
        return buf

    def release(self, buffer_id: str) -> int:
        """Ends one registration; returns the number of remaining ones that keep the buffer alive.

        After the last one the id is unknown, unless the buffer was registered with ``weak=True``
        too: that registration lasts until the buffer is destroyed or released once more. Raises
        UnknownBufferError for an unknown id.
        """
        with self._lock:
            entry = self._entries.get(buffer_id)
            if entry is None:
                raise UnknownBufferError(buffer_id)
            if entry.count > 1:
                entry.count -= 1
                return entry.count
            buffer, entry.buffer = (
                entry.buffer,
                None,
            )  # perhaps its last reference
            if buffer is None or not entry.is_weak:
                self._entries.pop(buffer_id, None)
                self._ids.pop(entry.number, None)
            entry.count = 0
            return 0

    def count(self, buffer_id: str) -> int:
        """The number of registrations to release; 0 if the buffer is only registered weakly.

        Raises UnknownBufferError for an unknown id.
        """
        entry = self._entries.get(buffer_id)
        if entry is None:
            raise UnknownBufferError(buffer_id)
        return entry.count

    @property
    def held_bytes(self) -> int:
        """Bytes of the buffers that the registry keeps alive, each counted once, not for each
        copy.
        """
        return sum(entry.nbytes for entry in list(self._entries.values()) if entry.count)

    def clear(self) -> None:
        """Ends all registrations."""
        with self._lock:
            ended = list(self._entries.values())
            self._entries.clear()
            self._ids.clear()
        del ended  # destroys buffers outside of the lock

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        """The ids that are known at this moment."""
        return iter(list(self._entries))

    def __contains__(self, buffer_id: object) -> bool:
        return buffer_id in self._entries

    def __repr__(self) -> str:
        return f"<isthmus.BufferRegistry {len(self)} buffers, {self.held_bytes} bytes kept alive>"

    def _add(self, buf: UnifiedBuffer) -> str:
        from uuid import uuid4

        buffer_id, number = str(uuid4()), id(buf)
        entries, ids = self._entries, self._ids

        # Needs no lock: no other buffer can have the same id() before this returns.
        def dropped(_: weakref.ref[UnifiedBuffer]) -> None:
            if entries.pop(buffer_id, None) is not None:
                ids.pop(number, None)

        entries[buffer_id] = _Entry(weakref.ref(buf, dropped), buf.nbytes, number)
        ids[number] = buffer_id
        return buffer_id

    def _after_fork(self) -> None:
        self._lock = threading.RLock()  # a thread of the parent may have held it


_process_registry = BufferRegistry()
os.register_at_fork(after_in_child=_process_registry._after_fork)


def get_buffer_registry() -> BufferRegistry:
    """The process's registry, always the same one."""
    return _process_registry
