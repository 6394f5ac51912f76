# SPDX-License-Identifier: Apache-2.0
"""UnifiedBuffer: created from contents, and exported through DLPack."""

from __future__ import annotations

import array
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import isthmus
from isthmus import UnifiedBuffer

if TYPE_CHECKING:
    from isthmus import Device

CONTENTS = [
    np.arange(12, dtype="int16").reshape(3, 4),
    np.arange(24.0).reshape(2, 3, 4)[:, ::2, ::-1],
    np.array(5.0),
    memoryview(b"some bytes"),
    array.array("d", [1.5, 2.5]),
]


@pytest.mark.parametrize("contents", CONTENTS, ids=lambda each: type(each).__name__)
def test_an_array_gives_shape_dtype_and_elements(dev: Device, contents: Any) -> None:
    with UnifiedBuffer(contents, device=dev) as buf:
        expected = np.asarray(contents)
        assert (buf.shape, buf.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(isthmus.asarray(buf).to_numpy(), expected)


def test_our_arrays_are_contents(dev: Device) -> None:
    source = isthmus.asarray(np.arange(6.0).reshape(2, 3), device=dev)
    with UnifiedBuffer(source, device=dev) as buf, UnifiedBuffer(buf, device=dev) as copy:
        np.testing.assert_array_equal(copy.host, source.to_numpy())
        copy.host[:] = 0
        np.testing.assert_array_equal(buf.host, source.to_numpy())


def test_a_dtype_casts_the_elements() -> None:
    with UnifiedBuffer(np.arange(3.0), np.float32) as buf:
        assert buf.dtype == np.float32
        assert buf.host.tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match=r"cannot be cast to int32: use astype\(\)"):
        UnifiedBuffer(np.arange(3.0), "int32")


@pytest.mark.parametrize("shape", [3, np.int64(3), (3,), [3], range(3, 4)], ids=repr)
def test_integers_lists_and_ranges_are_shapes(shape: Any) -> None:
    with UnifiedBuffer(shape) as buf:
        assert (buf.shape, buf.dtype) == ((3,), np.float32)


def test_from_array_takes_lists(dev: Device) -> None:
    with UnifiedBuffer.from_array([[1, 2], [3, 4]], "uint8", device=dev, separate=True) as buf:
        assert (buf.shape, buf.dtype) == ((2, 2), np.uint8)
        assert buf.host.tolist() == [[1, 2], [3, 4]]
    with UnifiedBuffer.from_array([1.5, 2.5]) as buf:
        assert (buf.shape, buf.dtype) == ((2,), np.float64)
    with UnifiedBuffer.from_array(7) as buf:
        assert buf.shape == ()
    with pytest.raises(OverflowError):
        UnifiedBuffer.from_array([300], "uint8")
    with pytest.raises(TypeError):
        UnifiedBuffer.from_array(["text", object()])


def test_a_subclass_is_created(dev: Device) -> None:
    class Weights(UnifiedBuffer):
        pass

    assert type(Weights.from_array([1.0], device=dev)) is Weights


def test_dlpack_exports_the_host_copy(dev: Device) -> None:
    with UnifiedBuffer(np.arange(4.0), device=dev, separate=True) as buf:
        assert buf.__dlpack_device__() == (1, 0)
        shared = np.from_dlpack(buf)
        np.testing.assert_array_equal(buf.device.to_numpy(), [0, 1, 2, 3])
        assert shared.__array_interface__["data"][0] == buf.host.__array_interface__["data"][0]
        part = np.from_dlpack(buf[1:3])
        assert part.tolist() == [1, 2]


def test_torch_shares_the_host_copy(dev: Device) -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    with UnifiedBuffer(np.arange(4.0), device=dev, separate=True) as buf:
        tensor = torch.from_dlpack(buf)
        assert buf.device.to_numpy().tolist() == [0, 1, 2, 3]
        tensor += 1
        assert buf.device.to_numpy().tolist() == [1, 2, 3, 4]
