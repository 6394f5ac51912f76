# SPDX-License-Identifier: Apache-2.0
"""Recorded allocations and frees: reading them, and replaying them on a memory resource.

``load`` reads ``.npz`` files, CSV logs in RMM's format, and memory snapshots of PyTorch; ``replay``
replays the trace. Needs NumPy.
"""

from __future__ import annotations

from ._load import load
from ._replay import Replay, replay
from ._trace import ALLOCATE, EVENT, FREE, Trace, TraceError

__all__ = ["ALLOCATE", "EVENT", "FREE", "Replay", "Trace", "TraceError", "load", "replay"]
