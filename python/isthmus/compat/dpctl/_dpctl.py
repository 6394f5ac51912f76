# SPDX-License-Identifier: Apache-2.0
"""Imports dpctl after Isthmus has registered the pip-installed OpenCL driver, which dpctl then
finds.

The order matters: dpctl lists its platforms only once, on first use.
"""

from __future__ import annotations

import isthmus

isthmus.devices("sycl")

try:
    import dpctl
    import dpctl.memory._memory as dpctl_module
    from dpctl._sycl_queue_manager import get_device_cached_queue
    from dpctl.memory import USMAllocationError as DpctlAllocationError
except ImportError as missing:
    raise ImportError(
        f"isthmus.compat.dpctl needs dpctl ({missing}): pip install isthmus[sycl]"
    ) from missing

__all__ = ["DpctlAllocationError", "dpctl", "dpctl_module", "get_device_cached_queue"]
