# SPDX-License-Identifier: Apache-2.0
"""Helpers for the tests of isthmus.compat.dpctl."""

from __future__ import annotations

from typing import Any


class Foreign:
    """Exposes memory by interface as another library would, and keeps it alive."""

    def __init__(self, memory: Any, **entries: Any) -> None:
        self.memory = memory
        self.__sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__ | entries
