"""Recorded allocations and frees: read, and played against a memory resource.

``load`` reads ``.npz`` files, CSV logs as RMM writes them, and memory snapshots of PyTorch;
``replay`` plays what it read. Needs NumPy.
"""

from __future__ import annotations

from ._load import load
from ._replay import Replay, replay
from ._trace import ALLOCATE, EVENT, FREE, Trace, TraceError

__all__ = ["ALLOCATE", "EVENT", "FREE", "Replay", "Trace", "TraceError", "load", "replay"]
