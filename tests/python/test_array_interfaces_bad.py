# SPDX-License-Identifier: Apache-2.0
"""Array interfaces of other libraries that are invalid, or that no Array can represent."""

from __future__ import annotations

import itertools
import sys
from collections import UserList, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import message_has
from test_array_exchange import Foreign, array_of, tensor_in

import isthmus
from isthmus import Array, Buffer, Queue, _core
from isthmus._numpy_interface import readable

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = np.arange(24, dtype=np.float32).reshape(4, 6)


def told(q: Queue, **changes: Any) -> Foreign:
    buffer = Buffer(256, kind="host", queue=q)
    entries = buffer.__sycl_usm_array_interface__ | {"typestr": "<f4", "shape": (4,)} | changes
    address, is_locked = entries["data"]
    entries["data"] = (address + entries.pop("skip", 0), is_locked)
    made = Foreign("__sycl_usm_array_interface__", entries)
    made.buffer = buffer  # type: ignore[attr-defined]
    return made


@pytest.fixture
def host() -> Queue:
    return Queue("host")


def test_elements_that_are_not_aligned(host: Queue) -> None:
    assert isthmus.asarray(told(host, skip=4)).shape == (4,)
    assert isthmus.asarray(told(host, skip=1, shape=(0,))).size == 0
    with pytest.raises(BufferError, match="aligned") as error:
        isthmus.asarray(told(host, skip=1))
    message_has(error, ["float32", 4])


def test_strides_of_no_whole_elements(q: Queue) -> None:
    """CUDA's strides count bytes."""
    if q.device.backend != "cuda":
        pytest.skip("no CUDA device")
    made = array_of(MODEL, q, "device")
    entries = made.__cuda_array_interface__
    for shape, strides in [((1, 6), (5, 4)), ((0, 6), (5, 4))]:
        changed = entries | {"shape": shape, "strides": strides}
        taken = isthmus.asarray(Foreign("__cuda_array_interface__", changed))
        assert taken.strides == (4, 4)
    changed = entries | {"shape": (4,), "strides": (5,)}
    with pytest.raises(BufferError, match="5 bytes apart"):
        isthmus.asarray(Foreign("__cuda_array_interface__", changed))
    assert made[:0].__cuda_array_interface__["data"][0] == 0


def test_types_of_no_array(host: Queue) -> None:
    for typestr, reason in [(">f4", "native byte order"), ("<m8", "dates and times")]:
        with pytest.raises(TypeError, match=reason):
            isthmus.asarray(told(host, typestr=typestr))


def test_beyond_any_address(host: Queue) -> None:
    with pytest.raises(ValueError, match="63 bits"):
        isthmus.asarray(told(host, shape=(1 << 40, 1 << 40), strides=(0, 0)))
    wide = isthmus.broadcast_to(
        isthmus.empty((0, 1, 1), "u1", kind="host", queue=host), (0, 1 << 40, 1 << 40)
    )
    assert wide.T.shape == (1 << 40, 1 << 40, 0)
    assert (wide.size, wide.nbytes, wide[:, 1:].nbytes) == (0, 0, 0)
    with pytest.raises(isthmus.OutOfRangeError):
        isthmus.broadcast_to(isthmus.empty(1, "u1", kind="host", queue=host), (1 << 40, 1 << 40))


def test_too_many_dimensions(host: Queue) -> None:
    with pytest.raises(ValueError, match="65"):
        isthmus.asarray(told(host, shape=(1,) * 65))
    made = isthmus.zeros(4, kind="host", queue=host)
    for ndim in (65, -1):
        capsule = made.__dlpack__()
        tensor_in(capsule).ndim = ndim
        with pytest.raises(BufferError, match=str(ndim)):
            _core._array_from_dlpack(capsule)
        with pytest.raises(BufferError, match=str(ndim)):
            Buffer.from_dlpack(capsule)
        tensor_in(capsule).ndim = 1


def test_the_reason_why_there_is_no_view(host: Queue) -> None:
    made = isthmus.zeros(3, "f4", kind="host", queue=host)
    gone = memoryview(bytearray(12))
    gone.release()
    for use in (made.copy_from, made.copy_to, lambda other: isthmus.copyto(made, other)):
        with pytest.raises(ValueError, match="released"):
            use(gone)
        with pytest.raises(TypeError, match="dates and times"):
            use(np.zeros(3, "M8[s]"))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python's classes have no such method")
def test_an_interrupt_is_no_refusal(host: Queue) -> None:
    class Interrupted:
        def __buffer__(self, _flags: int) -> memoryview:
            raise KeyboardInterrupt

    made = isthmus.zeros(3, "f4", kind="host", queue=host)
    with pytest.raises(KeyboardInterrupt):
        made.copy_from(Interrupted())


def test_bfloat16_of_numpy(host: Queue) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    model = np.array([1, 2.5, -3], ml_dtypes.bfloat16)
    made, out = isthmus.asarray(model, queue=host), np.zeros_like(model)
    made.copy_to(out)
    assert (out == model).all()
    made.copy_from(model[::-1].copy())
    isthmus.copyto(out, made)
    assert (out == model[::-1]).all()


def test_empty_arrays_are_in_any_order(host: Queue) -> None:
    made = isthmus.empty((3, 0, 2), kind="host", queue=host)
    assert made.flags.f_contiguous
    assert np.asarray(made, order="F").shape == (3, 0, 2)
    assert memoryview(made).f_contiguous


def test_another_dtype_is_a_copy(host: Queue) -> None:
    made = isthmus.zeros(3, "f4", kind="host", queue=host)
    assert made.__array__("f4", copy=False).dtype == "f4"
    assert made.__array__("f8").dtype == "f8"
    with pytest.raises(ValueError, match="copy=None"):
        made.__array__("f8", copy=False)


class Failing:
    """A sequence that fails to return its elements."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        raise ZeroDivisionError


def test_a_sequence_keeps_its_own_error(host: Queue) -> None:
    made = isthmus.zeros((2, 3), kind="host", queue=host)
    failing: Any = Failing()
    for use in (
        lambda: isthmus.empty(failing, kind="host", queue=host),
        lambda: made.reshape(failing),
        lambda: made.transpose(failing),
        lambda: Array(made.buffer, 6, strides=failing),
    ):
        with pytest.raises(ZeroDivisionError):
            use()


# -- elements outside the memory of an interface's object -----------------------------------------


class ByBytes:
    """NumPy's interface over the bytes of an object, where NumPy expects no address."""

    def __init__(self, data: Any, **entries: Any) -> None:
        self.__array_interface__ = {
            "version": 3, "typestr": "<f4", "shape": (4,), "data": data, **entries
        }  # fmt: skip


TOO_SHORT: dict[str, tuple[int, dict[str, Any]]] = {
    "shape": (15, {}),
    "large shape": (2, {"shape": (1 << 28,)}),
    "no bytes": (0, {}),
    "strides": (16, {"strides": (8,)}),
    "backwards": (16, {"strides": (-4,)}),
    "offset": (16, {"offset": 4}),
    "negative offset": (16, {"shape": (2,), "offset": -4}),
    "huge offset": (16, {"shape": (1,), "offset": 1 << 62}),
    "huge strides": (16, {"shape": (2,), "strides": (1 << 62,)}),
    "dimensions": (16, {"shape": (4, 4), "strides": (4, 4)}),
    "no dimensions": (3, {"shape": ()}),
}
INTO: dict[str, Any] = {
    "asarray": lambda of: isthmus.asarray(of, device="host"),
    "asarray of the host": lambda of: isthmus.asarray(of, device="host", kind="host"),
    "asarray with a dtype": lambda of: isthmus.asarray(of, "f8", device="host"),
    "copyto": lambda of: isthmus.copyto(isthmus.zeros(4, device="host"), of),
    "assignment": lambda of: isthmus.zeros(4, device="host").__setitem__(..., of),
    "fill": lambda of: isthmus.zeros(4, device="host").fill(of),
    "unified": lambda of: isthmus.UnifiedBuffer(4, "f4", device="host").copy_from(of),
    "unified assignment": lambda of: isthmus.UnifiedBuffer(4, device="host").__setitem__(..., of),
    "scatter": lambda of: isthmus.scatter(of, ["host"]),
    "pipeline": lambda of: list(isthmus.pipeline([of], lambda taken: taken, device="host")),
}


@pytest.mark.parametrize("which", TOO_SHORT)
@pytest.mark.parametrize("into", INTO)
def test_fewer_bytes_than_elements(which: str, into: str) -> None:
    nbytes, entries = TOO_SHORT[which]
    for make in (bytes, bytearray, lambda n: memoryview(bytes(n))):
        with pytest.raises(ValueError, match="memory that has") as error:
            INTO[into](ByBytes(make(nbytes), **entries))
        message_has(error, [f"has {nbytes} bytes"])


def test_no_more_bytes_than_elements(host: Queue) -> None:
    data = np.arange(6, dtype="f4").tobytes()
    for entries, expected in (
        ({"shape": (6,)}, [0, 1, 2, 3, 4, 5]),
        ({"shape": (3,), "strides": (8,)}, [0, 2, 4]),
        ({"shape": (6,), "strides": (-4,), "offset": 20}, [5, 4, 3, 2, 1, 0]),
        ({"shape": (2, 2), "strides": (4, -4), "offset": 4}, [[1, 0], [2, 1]]),
        ({"shape": (1,), "strides": (1 << 40,), "offset": 20}, [5]),
        ({"shape": (), "offset": 20}, 5),
        ({"shape": (0, 9), "offset": 24}, []),
    ):
        of = ByBytes(data, **entries)
        taken = isthmus.asarray(of, kind="host", queue=host)
        assert taken.tolist() == expected
        assert taken.read_only or taken.size == 0
        made = isthmus.ones(taken.shape, "f8", queue=host)
        isthmus.copyto(made, of)
        assert made.tolist() == expected


def test_bytes_are_shared_and_kept(host: Queue) -> None:
    data = bytearray(16)
    taken = isthmus.asarray(ByBytes(data), kind="host", queue=host, copy=False)
    taken[3] = 1
    assert np.frombuffer(bytes(data), "f4").tolist() == [0, 0, 0, 1]
    with pytest.raises(BufferError):
        data.extend(b"more")  # which would move the bytes


class Changing:
    """Returns one shape to the validation and another to a later read."""

    def __init__(self) -> None:
        self.shapes = itertools.cycle([(4,), (1 << 28,)])

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return ByBytes(bytes(16), shape=next(self.shapes)).__array_interface__


def test_an_interface_that_changes(host: Queue) -> None:
    """The shape that was validated is the one that is used."""
    of = Changing()
    for _ in range(4):
        with suppress(ValueError):  # raised for the larger shape
            assert isthmus.asarray(of, kind="host", queue=host).tolist() == [0] * 4
        next(of.shapes)


@pytest.mark.parametrize("into", INTO)
def test_bytes_are_no_references(into: str) -> None:
    with pytest.raises(TypeError):
        INTO[into](ByBytes(bytes(range(32)), typestr="|O"))


# -- the same among the items of sequences, which NumPy reads itself -------------------------------

AMONG: dict[str, Any] = {
    "list": lambda of: [of],
    "pair": lambda of: [of, of],
    "tuple": lambda of: (of, of),
    "nested": lambda of: [[[0, 0, 0, 0]], [of]],
    "behind an array": lambda of: [np.zeros(4, "f4"), of],
    "deque": lambda of: deque([of, of]),
    "sequence": lambda of: [UserList([of])],
}


@pytest.mark.parametrize("among", AMONG)
@pytest.mark.parametrize("into", INTO)
def test_items_with_fewer_bytes_than_elements(among: str, into: str) -> None:
    for nbytes, entries in TOO_SHORT.values():
        with pytest.raises(ValueError, match="memory that has") as error:
            INTO[into](AMONG[among](ByBytes(bytes(nbytes), **entries)))
        message_has(error, [f"has {nbytes} bytes"])


@pytest.mark.parametrize("among", AMONG)
@pytest.mark.parametrize("into", INTO)
def test_bytes_of_items_are_no_references(among: str, into: str) -> None:
    with pytest.raises(TypeError):
        INTO[into](AMONG[among](ByBytes(bytes(range(32)), typestr="|O")))


@pytest.mark.parametrize("among", AMONG)
@pytest.mark.parametrize("into", INTO)
def test_items_with_numbers_that_cannot_be(among: str, into: str) -> None:
    for entries in (
        {"data": (1 << 64, False)},
        {"shape": (-1,)},
        {"data": (8, True), "strides": (-8,)},
    ):
        with pytest.raises(ValueError, match="__array_interface__"):
            INTO[into](AMONG[among](ByBytes(**{"data": bytes(16), **entries})))


@pytest.mark.parametrize("among", AMONG)
def test_items_with_enough_bytes(among: str, host: Queue) -> None:
    of = ByBytes(np.arange(6, dtype="f4").tobytes(), strides=(-4,), offset=20)
    expected = np.asarray(AMONG[among]([5, 4, 3, 2])).tolist()
    taken = isthmus.asarray(AMONG[among](of), kind="host", queue=host)
    assert taken.tolist() == expected
    made = isthmus.zeros(taken.shape, "f8", queue=host)
    made[...] = AMONG[among](of)
    assert made.tolist() == expected
    unified = isthmus.UnifiedBuffer(taken.shape, "f4", queue=host)
    unified[...] = AMONG[among](of)
    assert unified.host.tolist() == expected


@pytest.mark.parametrize("base", [int, float, list])
def test_interfaces_of_subclasses(base: type, host: Queue) -> None:
    """NumPy reads the interface before it treats the object as a number or a list."""
    of = type("Sub", (base,), {})()
    of.__array_interface__ = ByBytes(bytes(8)).__array_interface__
    for source in (of, [of]):
        with pytest.raises(ValueError, match="memory that has"):
            isthmus.asarray(source, queue=host)


def test_an_item_whose_interface_changes(host: Queue) -> None:
    of = Changing()
    for _ in range(4):
        with suppress(ValueError):
            made = isthmus.asarray([of], kind="host", queue=host)
            assert made.tolist() == [[0] * 4]
        next(of.shapes)


def test_sequences_that_hold_themselves_and_an_interface(host: Queue) -> None:
    for nbytes in (16, 15):
        own: list[Any] = [ByBytes(bytes(nbytes))]
        own.append(own)
        with pytest.raises((TypeError, ValueError)):
            isthmus.asarray(own, queue=host)


def test_plain_sequences_are_not_copied() -> None:
    for plain in (
        [1, 2.5, True, 1j, None, "text", b"bytes", (3, [np.float32(4), np.zeros(2)])],
        range(5),
        deque([1, 2]),
        {"of": "a mapping"},
        bytearray(4),
    ):
        assert readable(plain) is plain


def test_an_interface_with_an_address_is_checked_once() -> None:
    class Counting:
        def __init__(self) -> None:
            self.array, self.reads = np.arange(4, dtype="f4"), 0

        @property
        def __array_interface__(self) -> dict[str, Any]:
            self.reads += 1
            return self.array.__array_interface__

    by_numpy, by_copy = Counting(), Counting()
    np.asarray(by_numpy)
    made = isthmus.UnifiedBuffer(4, "f4", device="host").copy_from(by_copy)
    assert made.host.tolist() == [0, 1, 2, 3]
    assert by_copy.reads == by_numpy.reads + 1


class Keyed:
    """A sequence that NumPy treats as a scalar, because its items are not found by index."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> float:
        raise KeyError(index)

    def __float__(self) -> float:
        return 3.0


def nested(depth: int) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = [made]
    return made


@pytest.mark.parametrize("source", [Keyed(), nested(70), nested(2000)], ids=range(3))
def test_sequences_that_numpy_does_not_read_are_left_to_it(source: Any) -> None:
    def outcome(assign: Callable[[], None], made: Any) -> Any:
        try:
            assign()
        except Exception as failed:
            return type(failed)
        return made.tolist()

    theirs, unified = np.zeros(2, "f4"), isthmus.UnifiedBuffer(2, "f4", device="host")
    unified.host[:] = 0
    want = outcome(lambda: theirs.__setitem__(slice(None), source), theirs)
    assert outcome(lambda: unified.__setitem__(slice(None), source), unified.host) == want
    array = isthmus.zeros(2, "f4", device="host")
    got = outcome(lambda: array.__setitem__(slice(None), source), array)
    assert got == want or (isinstance(want, type) and issubclass(got, (TypeError, ValueError)))
