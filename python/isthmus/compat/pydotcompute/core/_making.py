"""One lock for all that this door makes once: rare, and soon done."""

from __future__ import annotations

import os
import threading

# Re-entrant, as a collection of garbage within may free whatever it collects.
making = threading.RLock()
# Nothing is half made in a child.
os.register_at_fork(
    before=making.acquire, after_in_parent=making.release, after_in_child=making.release
)
