# SPDX-License-Identifier: Apache-2.0
"""Replaces RMM's compiled module of this name, which programs and RMM's own tests import."""

from . import *  # noqa: F403
from ._current import _flush_logs
from ._statistics import Statistics

__all__ = ["Statistics", "_flush_logs"]
