# SPDX-License-Identifier: Apache-2.0
"""Statistics of the current device's resource, and a memory profiler for functions and blocks."""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from inspect import unwrap
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from . import mr
from .pylibrmm.memory_resource._statistics import Statistics, StatisticsResourceAdaptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import ParamSpec, Self

    from .mr import DeviceMemoryResource

    P = ParamSpec("P")
T = TypeVar("T")

__all__ = [
    "ProfilerContext",
    "ProfilerRecords",
    "Statistics",
    "default_profiler_records",
    "enable_statistics",
    "get_statistics",
    "pop_statistics",
    "profiler",
    "push_statistics",
    "statistics",
]


def enable_statistics() -> None:
    """Wraps the current resource in a ``StatisticsResourceAdaptor``, unless it already is one."""
    current = mr.get_current_device_resource()
    if not isinstance(current, StatisticsResourceAdaptor):
        mr.set_current_device_resource(StatisticsResourceAdaptor(current))


def get_statistics() -> Statistics | None:
    """The current resource's ``allocation_counts``; None if statistics are not enabled."""
    counting = _counting()
    return None if counting is None else counting.allocation_counts


def push_statistics() -> Statistics | None:
    """Starts counters at 0 for this thread or task; returns the values of the previous ones.

    None if statistics are not enabled.
    """
    counting = _counting()
    return None if counting is None else counting.push_counters()


def pop_statistics() -> Statistics | None:
    """Ends the innermost counters and returns their values; None if statistics are not enabled.

    Raises the errors of ``StatisticsResourceAdaptor.pop_counters``.
    """
    counting = _counting()
    return None if counting is None else counting.pop_counters()


@contextmanager
def statistics() -> Iterator[None]:
    """Starts counters at 0 for a block. Enables statistics during it if they are not enabled.

    Unless the block itself raises, its end raises ValueError if the current resource was changed
    within it (the change remains), and RuntimeError on another thread or task than that of its
    entry.
    """
    before, counting = mr.get_current_device_resource(), _counting()
    block = None if counting is None else _Block(counting)
    if block is None:
        enable_statistics()
    resource = mr.get_current_device_resource()
    try:
        yield
    except BaseException:
        with suppress(RuntimeError, ValueError):
            _leave(block, resource, before)
        raise
    _leave(block, resource, before)


def _leave(
    block: _Block | None, resource: DeviceMemoryResource, before: DeviceMemoryResource
) -> None:
    if block is not None:
        block.end()
    if mr.get_current_device_resource() is not resource:
        raise ValueError("the current resource was changed within `with statistics():`")
    if before is not resource:
        mr.set_current_device_resource(before)


class ProfilerRecords:
    """The results of profilers, by name. Thread-safe."""

    @dataclass
    class MemoryRecord:
        """The record of one function or block."""

        num_calls: int = 0
        memory_total: int = 0
        """Bytes allocated in all calls."""
        memory_peak: int = 0
        """The maximum, over all calls, of the bytes of one call that were live at any time."""

        def add(self, memory_total: int, memory_peak: int) -> None:
            """Adds one call."""
            self.num_calls += 1
            self.memory_total += memory_total
            self.memory_peak = max(self.memory_peak, memory_peak)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[str, ProfilerRecords.MemoryRecord] = {}

    def add(self, name: str, data: Statistics) -> None:
        """Adds one call of ``name``."""
        with self._lock:
            record = self._records.setdefault(name, self.MemoryRecord())
            record.add(memory_total=data.total_bytes, memory_peak=data.peak_bytes)

    @property
    def records(self) -> dict[str, MemoryRecord]:
        """A copy of all records."""
        with self._lock:
            return {name: replace(record) for name, record in self._records.items()}

    def report(
        self, ordered_by: Literal["num_calls", "memory_peak", "memory_total"] = "memory_peak"
    ) -> str:
        """A table with a line for each name, largest first."""
        fields = ("num_calls", "memory_peak", "memory_total")
        if ordered_by not in fields:
            raise ValueError(f"ordered_by must be one of {', '.join(fields)}, not {ordered_by!r}")
        title = "Memory Profiling\n================\n\n"
        records = sorted(
            self.records.items(), key=lambda item: getattr(item[1], ordered_by), reverse=True
        )
        if not records:
            return f"{title}No data: no call ran under a profiler while statistics were enabled"
        lines = [
            f"{record.num_calls:6,d} {record.memory_peak:15,d} {record.memory_total:15,d}  {name}"
            for name, record in records
        ]
        head = (
            "  ncalls       - number of calls, or of entries of a block\n"
            "  memory_peak  - the maximum of live bytes of one call\n"
            "  memory_total - bytes allocated in all calls\n\n"
            f"Ordered by: {ordered_by}\n\n"
            "ncalls     memory_peak    memory_total  filename:lineno(function)\n"
        )
        return title + head + "\n".join(lines)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.records})"

    def __str__(self) -> str:
        return self.report()


default_profiler_records = ProfilerRecords()

# The active blocks of this thread or task, innermost last.
_entered: ContextVar[tuple[_Block, ...]] = ContextVar("isthmus.compat.rmm.entered", default=())


class _Block:
    """Counters of a resource until ``end``; without statistics, only the entry in ``_entered``."""

    def __init__(self, counting: StatisticsResourceAdaptor | None) -> None:
        if counting is not None:
            counting.push_counters()
        self._counting = counting
        self._token = _entered.set((*_entered.get(), self))

    def end(self) -> Statistics | None:
        """Ends the counters and returns their values. RuntimeError on another thread or task."""
        try:
            _entered.reset(self._token)
        except ValueError:
            raise RuntimeError(
                "this block was entered in another thread or task: leave it where it was entered"
            ) from None
        return None if self._counting is None else self._counting.end_block()


class ProfilerContext:
    """The result of ``profiler()``: a decorator and a context manager.

    It is reusable and reentrant, and thread-safe.
    """

    def __init__(self, records: ProfilerRecords, name: str) -> None:
        self._records, self._name = records, name

    def __call__(self, func: Callable[P, T]) -> Callable[P, T]:
        """Wraps the function so that each call is added to the record of its name."""
        block = ProfilerContext(self._records, self._name or _get_descriptive_name_of_object(func))

        @wraps(func)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            with block:
                return func(*args, **kwargs)

        return wrapper

    def __enter__(self) -> Self:
        if not self._name:
            raise ValueError("a profiler of a block needs a name: profiler(name=...)")
        _Block(_counting())
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        """Ends the block.

        Unless the block raised, RuntimeError on another thread or task than that of its entry.
        """
        with nullcontext() if kind is None else suppress(RuntimeError):
            self._leave()

    def _leave(self) -> None:
        entered = _entered.get()
        if not entered:
            raise RuntimeError(
                f"the profiler {self._name!r} was entered in another thread or task, if at all: "
                "leave its block where it was entered"
            )
        counted = entered[-1].end()
        if counted is not None:
            self._records.add(self._name, counted)


def profiler(
    *, records: ProfilerRecords = default_profiler_records, name: str = ""
) -> ProfilerContext:
    """A decorator for functions and a context manager for blocks, which need a ``name``.

    It counts allocations of the calling thread or task, if statistics are enabled when the call or
    block begins. ``name``: the name of the record; if empty, a function's file, line and name.
    """
    return ProfilerContext(records, name)


def _counting() -> StatisticsResourceAdaptor | None:
    current = mr.get_current_device_resource()
    return current if isinstance(current, StatisticsResourceAdaptor) else None


def _get_descriptive_name_of_object(function: Any) -> str:
    """A function's file, line and name. RMM's tests use this function's own name."""
    inner = unwrap(function)
    code = getattr(inner, "__code__", None)
    name = getattr(inner, "__qualname__", repr(inner))
    return f"{code.co_filename}:{code.co_firstlineno}({name})" if code is not None else name
