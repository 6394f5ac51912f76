"""The tests of document 000, with their imports changed and nothing else."""

import numpy as np
import pytest

from isthmus.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared
from isthmus.testing import get_queue_or_skip


class TestUSMMemory:
    @pytest.mark.parametrize("mem_class", [
        MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost
    ])  # fmt: skip
    def test_allocation(self, mem_class):
        q = get_queue_or_skip()
        mem = mem_class(1024, queue=q)
        assert mem.nbytes == 1024
        assert mem.sycl_queue == q

    @pytest.mark.parametrize("mem_class", [
        MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost
    ])  # fmt: skip
    def test_copy_roundtrip(self, mem_class):
        q = get_queue_or_skip()

        src = np.array([1, 2, 3, 4], dtype=np.float32)
        mem = mem_class(src.nbytes, queue=q)

        mem.copy_from_host(src.view(np.uint8))

        dst = np.empty_like(src)
        mem.copy_to_host(dst.view(np.uint8))

        assert np.array_equal(src, dst)

    def test_interface(self):
        q = get_queue_or_skip()
        mem = MemoryUSMDevice(1024, queue=q)

        iface = mem.__sycl_usm_array_interface__
        assert "data" in iface
        assert "shape" in iface
        assert iface["shape"] == (1024,)
        assert iface["syclobj"] == q
