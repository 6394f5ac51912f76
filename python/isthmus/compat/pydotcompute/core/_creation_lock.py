# SPDX-License-Identifier: Apache-2.0
"""One lock for all objects that this package creates once. It is taken rarely and held briefly."""

from __future__ import annotations

import os
import threading

# Re-entrant, because a garbage collection while it is held may free buffers, which acquires it
# again.
creation_lock = threading.RLock()
# Held during a fork, so that the child never sees a partly created object.
os.register_at_fork(
    before=creation_lock.acquire,
    after_in_parent=creation_lock.release,
    after_in_child=creation_lock.release,
)
