# SPDX-License-Identifier: Apache-2.0
"""Replays a trace on a memory resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus import Queue
from isthmus._core import _replay

from ._trace import EVENT

if TYPE_CHECKING:
    from isthmus.memory import MemoryResource

    from ._trace import Trace

__all__ = ["Replay", "replay"]

_SAMPLE = np.dtype([("held_bytes", "u8"), ("ns", "u8")])  # isthmus_trace_sample_t


@dataclass(frozen=True, eq=False)
class Replay:
    """Results. ``held`` (bytes) and ``ns`` have an element for each event of the trace."""

    trace: Trace
    mean_ns: float  # per event, of the second replay
    held: np.ndarray[Any, Any]
    ns: np.ndarray[Any, Any]
    maps: int  # how often memory was obtained from the driver
    unmaps: int  # how often memory was returned, up to the last event

    @property
    def peak_held_bytes(self) -> int:
        """The maximum of ``held``; 0 without events."""
        return int(self.held.max(initial=0))

    @property
    def ratio(self) -> float:
        """Peak bytes held of the driver's memory over peak bytes requested; 0 without events."""
        return self.peak_held_bytes / max(self.trace.peak_requested_bytes, 1)

    def as_dict(self) -> dict[str, Any]:
        """The numbers only, for ``--json``."""
        samples = self.ns if len(self.ns) else np.zeros(1)
        p50, p99, maximum = (float(each) for each in np.percentile(samples, [50, 99, 100]))
        return {
            "trace": self.trace.name,
            "events": len(self.ns),
            "queues": self.trace.queues,
            "frees_before": self.trace.frees_before,
            "mean_ns": self.mean_ns,
            "p50_ns": p50,
            "p99_ns": p99,
            "max_ns": maximum,
            "peak_requested_bytes": self.trace.peak_requested_bytes,
            "peak_held_bytes": self.peak_held_bytes,
            "ratio": self.ratio,
            "maps": self.maps,
            "unmaps": self.unmaps,
        }


def replay(trace: Trace, resource: MemoryResource) -> Replay:
    """Replays all events twice: with a measurement after each, then once more for the total time.

    Memory that the resource held before the call counts as held. Blocks without the interpreter's
    lock; Ctrl-C does not interrupt it. All memory is freed at the end. Raises
    isthmus.memory.USMAllocationError if there is not enough memory, ValueError for an impossible
    sequence of events.
    """
    if trace.events.dtype != EVENT:
        raise ValueError(f"events have the dtype {trace.events.dtype}, but must have EVENT")
    queues = tuple(Queue(resource.device, context=resource.context) for _ in range(trace.queues))
    events = np.array(trace.events, order="C").view(np.uint8)  # aligned, and not shared
    samples = np.zeros(len(trace.events), _SAMPLE)
    _, maps, unmaps = _replay(resource, queues, events, samples.view(np.uint8))
    total_ns, _, _ = _replay(resource, queues, events, None)
    return Replay(
        trace,
        total_ns / max(len(samples), 1),
        samples["held_bytes"].copy(),
        samples["ns"].copy(),
        maps,
        unmaps,
    )
