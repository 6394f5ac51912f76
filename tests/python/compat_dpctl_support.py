"""What the tests of isthmus.compat.dpctl share."""

from __future__ import annotations

from typing import Any


class Foreign:
    """What another library would hand over of some memory, which it keeps alive."""

    def __init__(self, memory: Any, **entries: Any) -> None:
        self.memory = memory
        self.__sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__ | entries
