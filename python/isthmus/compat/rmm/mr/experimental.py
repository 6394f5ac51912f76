# SPDX-License-Identifier: Apache-2.0
"""The resources that RMM calls experimental."""

from __future__ import annotations

from isthmus.compat.rmm.pylibrmm.memory_resource.experimental import CudaAsyncManagedMemoryResource

__all__ = ["CudaAsyncManagedMemoryResource"]
