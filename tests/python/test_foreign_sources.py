# SPDX-License-Identifier: Apache-2.0
"""Sources and memory of other libraries: choice of protocol, stream and read-only state."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from dlpack_support import Made, Producer
from support import filled, has_cuda

import isthmus
from isthmus import Array, Buffer, Queue

HOST: dict[str, Any] = {"kind": "host", "device": "host"}
VALUES = np.arange(4, dtype=np.float32)


class NotANumber:
    """The number methods that non-scalar arrays have, which raise."""

    def __index__(self) -> int:
        raise IndexError("only integer scalar arrays can be converted to a scalar index")

    def __float__(self) -> float:
        raise ZeroDivisionError("no float")

    def __complex__(self) -> complex:
        raise ZeroDivisionError("no complex")

    def __bool__(self) -> bool:
        raise ZeroDivisionError("no bool")


class BySycl(NotANumber):
    """Like arrays of dpnp, of which those with a dimension are no index."""

    def __init__(self, of: Array) -> None:
        self.of = of

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        return self.of.__sycl_usm_array_interface__


class ByDlpack(NotANumber):
    def __init__(self, of: Array) -> None:
        self.of = of

    def __dlpack__(self, **request: Any) -> Any:
        return self.of.__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.of.__dlpack_device__()


class ByNumpy(NotANumber):
    def __init__(self, of: Array) -> None:
        self.of = of

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.of.to_numpy() if dtype is None else self.of.to_numpy().astype(dtype)


class ByAttribute(NotANumber):
    """An attribute of the instance instead of its type."""

    def __init__(self, of: Array) -> None:
        self.__sycl_usm_array_interface__ = of.__sycl_usm_array_interface__


WRAPPERS = pytest.mark.parametrize("wrap", [BySycl, ByDlpack, ByNumpy, ByAttribute])


@WRAPPERS
def test_arrays_come_before_numbers(wrap: Any, q: Queue, host_kind: str) -> None:
    if wrap is ByDlpack and q.device.backend != "host":
        pytest.skip("by DLPack the CPU's memory is plain memory")
    source = isthmus.asarray(VALUES, kind=host_kind, queue=q)
    made = isthmus.zeros(4, "f8", kind=host_kind, queue=q)
    isthmus.copyto(made, wrap(source))
    assert made.tolist() == VALUES.tolist()
    made[::-1] = wrap(source)
    assert made.tolist() == VALUES[::-1].tolist()
    made[0] = wrap(source[3:].reshape(()))
    made[1:2] = wrap(source[:1])
    assert made.tolist() == [3, 0, 1, 0]
    made.fill(wrap(source[2:3].reshape(())))
    assert made.tolist() == [2] * 4


@pytest.mark.parametrize("wrap", [BySycl, ByDlpack, ByNumpy])
def test_arrays_go_into_unified_buffers(wrap: Any, q: Queue) -> None:
    source = isthmus.asarray(VALUES, kind="shared", queue=q)
    made = isthmus.UnifiedBuffer(4, "f4", queue=q)
    made.copy_from(wrap(source))
    assert made.host.tolist() == VALUES.tolist()
    made[::-1] = wrap(source)
    assert made.host.tolist() == VALUES[::-1].tolist()
    (batch,) = isthmus.pipeline([wrap(source)], lambda taken: taken, queue=q)
    assert np.asarray(batch).tolist() == VALUES.tolist()


@pytest.mark.parametrize("source", [NotANumber(), [NotANumber()], [[1.0, NotANumber()]]])
def test_errors_of_a_foreign_number_do_not_leak(source: Any) -> None:
    made = isthmus.ones(2, "f4", **HOST)
    for use in (
        lambda: isthmus.copyto(made, source),
        lambda: made.__setitem__(..., source),
        lambda: made.__setitem__(0, source),
        lambda: made.fill(source),
    ):
        with pytest.raises((TypeError, ValueError)):
            use()
    assert made.tolist() == [1, 1]


def test_an_interrupt_of_a_foreign_number_is_raised() -> None:
    class Interrupted:
        def __index__(self) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        isthmus.ones(2, **HOST)[...] = Interrupted()


@pytest.mark.parametrize("name", ["dpctl.tensor", "dpnp"])
def test_of_dpctl_and_dpnp(name: str) -> None:
    pytest.importorskip("dpctl")
    tensor = pytest.importorskip(name)
    source = tensor.arange(4, dtype="i4")
    for kind in ("device", "host"):
        made = isthmus.zeros(4, "i4", kind=kind)
        isthmus.copyto(made, source)
        assert made.tolist() == [0, 1, 2, 3]
        made[...] = source[::-1]
        assert made.tolist() == [3, 2, 1, 0]
        made[1:2] = source[2:3]
        made[:1] = source[0]
        assert made.tolist() == [0, 2, 1, 0]
    unified = isthmus.UnifiedBuffer(4, "i4")
    unified.copy_from(source)
    unified[1:2] = source[3:]
    assert unified.host.tolist() == [0, 3, 2, 3]


# -- of two protocols the stricter one applies ----------------------------------------------------


class Both:
    """Like JAX arrays: a capsule that cannot express read-only, and another protocol that can."""

    def __init__(self, memory: np.ndarray, version: Any, entries: str | None = None) -> None:
        self.memory = memory
        shape = memory.shape
        self.made = [Made(memory.ctypes.data, shape, version=version) for _ in range(8)]
        self.left = iter(self.made)
        if entries is not None:
            setattr(self, entries, {**memory.__array_interface__, "data": (self.at, True)})

    @property
    def at(self) -> int:
        return self.memory.ctypes.data

    def __dlpack__(self, **_: Any) -> Any:
        return next(self.left).capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class LockedBytes(bytes):
    """Supports a read-only buffer protocol in every Python version."""

    def __dlpack__(self, **_: Any) -> Any:
        return next(self.left).capsule  # type: ignore[attr-defined]

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def strict(version: Any) -> list[Any]:
    made: list[Any] = [Both(VALUES.copy(), version, "__array_interface__")]
    made.append(LockedBytes(VALUES.tobytes()))
    at = np.frombuffer(made[1], np.float32).ctypes.data
    made[1].made = [Made(at, (4,), version=version) for _ in range(8)]
    made[1].left = iter(made[1].made)
    return made


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize("which", [0, 1])
def test_the_stricter_protocol_holds(version: Any, which: int) -> None:
    for take in (
        lambda of: isthmus.asarray(of, **HOST),
        lambda of: isthmus.asarray(of, copy=False, **HOST),
        lambda of: Array(Buffer.from_dlpack(of), 4, "f4"),
    ):
        taken = take(strict(version)[which])
        assert taken.tolist() == VALUES.tolist()
        assert taken.read_only
        with pytest.raises(isthmus.ReadOnlyError):
            taken[...] = 99
        assert not np.asarray(taken).flags.writeable
    written = isthmus.ones(4, "f4", **HOST)
    with pytest.raises(isthmus.ReadOnlyError):
        written.copy_to(strict(version)[which])


def test_sycls_interface_and_a_stricter_one() -> None:
    of = isthmus.ones(4, "f4", **HOST)
    made = ByAttribute(of)
    made.__array_interface__ = {**of.__array_interface__, "data": (of.ptr, True)}  # type: ignore
    assert isthmus.asarray(made, copy=False).read_only
    with pytest.raises(isthmus.ReadOnlyError):
        of.copy_to(made)
    assert not isthmus.asarray(ByAttribute(of), copy=False).read_only


def test_what_may_be_written_stays_so() -> None:
    memory = VALUES.copy()
    for version in (None, (1, 0)):
        made = isthmus.asarray(Both(memory, version), copy=False, **HOST)
        assert not made.read_only
        made[0] = 7
        assert memory[0] == 7


def test_of_jax() -> None:
    jax = pytest.importorskip("jax")
    source = jax.device_put(jax.numpy.arange(4.0), jax.devices("cpu")[0])
    made = isthmus.asarray(source, **HOST)
    with pytest.raises(isthmus.ReadOnlyError):
        made[...] = 99
    assert source.tolist() == [0, 1, 2, 3]
    with pytest.raises(isthmus.ReadOnlyError):
        isthmus.copyto(source, made)


# -- the stream that a producer receives ----------------------------------------------------------


class AsPyTorch(Producer):
    """Checks its stream as PyTorch tensors do, which count pinned memory as the CPU's."""

    def __dlpack__(self, *, stream: Any = None, **request: Any) -> object:
        if stream is not None and type(stream) is not int:
            raise TypeError("stream must be ``int`` or ``none``")
        if self.device[0] in (1, 3):
            assert stream is None, "stream should be None on cpu."
        else:
            assert stream in (1, 2) or stream > 2
        return super().__dlpack__(**request)


def test_producers_of_the_cpu_get_no_stream() -> None:
    made = isthmus.zeros(4, "f4", **HOST)
    for use in (
        lambda of: isthmus.copyto(made, of),
        lambda of: made.__setitem__(..., of),
        made.copy_from,
        lambda of: isthmus.asarray(of, **HOST),
        Buffer.from_dlpack,
    ):
        use(AsPyTorch(Made(VALUES.ctypes.data, (4,)).capsule))


@pytest.mark.skipif(not has_cuda(), reason="no CUDA driver")
@pytest.mark.parametrize(
    ("kind", "device"),
    [("host", (3, 0)), ("device", (2, 0)), ("shared", (2, 0)), ("shared", (13, 0))],
)
def test_the_stream_follows_the_device(kind: str, device: tuple[int, int]) -> None:
    queue = Queue("cuda:0")
    memory = Array(filled(VALUES, kind=kind, queue=queue), 4, "f4")
    for made in (isthmus.zeros(4, "f4", **HOST), isthmus.zeros(4, "f4", device="cuda:0")):
        for use in (
            lambda of, made=made: isthmus.copyto(made, of),
            lambda of, made=made: made.__setitem__(..., of),
            made.copy_from,
        ):
            made.fill(9)
            stream = None if device[0] == 3 else -1
            capsule = memory.__dlpack__(dl_device=device, max_version=(1, 0), stream=stream)
            use(AsPyTorch(capsule, device))
            assert made.to_numpy().tolist() == VALUES.tolist()
    capsule = memory.__dlpack__(dl_device=device, max_version=(1, 0))
    taken = isthmus.asarray(AsPyTorch(capsule, device), copy=False)
    assert (taken.kind, taken.ptr) == (kind, memory.ptr)


@pytest.mark.skipif(not has_cuda(), reason="no CUDA driver")
def test_of_pinned_memory_of_pytorch() -> None:
    """Runs on a real GPU."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA")
    source = torch.arange(4, dtype=torch.float32).pin_memory()
    for made in (isthmus.zeros(4, "f4", **HOST), isthmus.zeros(4, "f4", device="cuda:0")):
        isthmus.copyto(made, source)
        assert made.to_numpy().tolist() == VALUES.tolist()
        made[...] = source + 1
        made[...] = (source + 1).pin_memory()
        assert made.to_numpy().tolist() == (VALUES + 1).tolist()
    assert isthmus.asarray(source, copy=False).ptr == source.data_ptr()


# -- arrays with negative strides -----------------------------------------------------------------


def test_numpy_accepts_negative_strides() -> None:
    made = isthmus.asarray(VALUES, **HOST)
    numpy_version = tuple(int(part) for part in np.__version__.split(".")[:2])
    if numpy_version >= (2, 1):  # these pass a DLPack version
        seen = np.from_dlpack(made[::-1])
        assert seen.tolist() == VALUES[::-1].tolist()
        assert seen.ctypes.data == made[::-1].ptr
    assert np.asarray(made[::-1]).tolist() == VALUES[::-1].tolist()


@pytest.mark.parametrize("key", [slice(None, None, -1), (slice(None), slice(None, None, -1))])
def test_a_capsule_without_a_version_does_not_run_backwards(q: Queue, kind: str, key: Any) -> None:
    if kind == "device" and q.backend not in ("cuda",):
        pytest.skip("is exported to nobody")
    made = isthmus.asarray(VALUES.reshape(2, 2), kind=kind, queue=q)[key]
    for version in (None, (0, 9)):
        with pytest.raises(BufferError, match=r"negative strides.*copy\(\)"):
            made.__dlpack__(max_version=version)
        assert made.__dlpack__(max_version=version, copy=True) is not None
        assert made.copy().__dlpack__(max_version=version) is not None
    assert made.__dlpack__(max_version=(1, 0)) is not None


def test_strides_that_say_nothing_are_no_way_backwards() -> None:
    made = isthmus.asarray(VALUES, **HOST)
    for part in (made[:1][::-1], made[:0][::-1], made[3:2:-1]):
        assert part.__dlpack__() is not None


def test_pytorch_is_known_by_its_caller() -> None:
    """PyTorch passes a version since 2.9, but still rejects such strides."""
    made = isthmus.asarray(VALUES, **HOST)
    place: dict[str, Any] = {"__name__": "torch.utils.dlpack"}
    exec("def from_dlpack(of): return of.__dlpack__(max_version=(1, 0))", place)
    with pytest.raises(BufferError, match=r"to PyTorch: pass copy\(\)"):
        place["from_dlpack"](made[::-1])
    assert place["from_dlpack"](made) is not None
    assert place["from_dlpack"](made[::-1].copy()) is not None


def test_handles_are_no_memory() -> None:
    numbers = (ctypes.c_void_p * 2)()
    made = Made(ctypes.addressof(numbers), (2,), dtype=(3, 64, 1))
    with pytest.raises(BufferError, match="handles"):
        Buffer.from_dlpack(made.capsule)
