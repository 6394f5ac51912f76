# SPDX-License-Identifier: Apache-2.0
"""No way to create objects of isthmus.compat.dpctl.memory leaks memory, a source or a queue."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest
from compat_dpctl_support import Foreign
from support import KINDS, until

import isthmus
from isthmus import Buffer, Queue
from isthmus.memory import LimitResource, live

if os.environ.get("ISTHMUS_ALLOW_NO_OPENCL") == "1":
    pytest.importorskip("dpctl")
import isthmus.compat.dpctl.memory as compat  # isort: skip  # before dpctl
import dpctl
import dpctl.memory as theirs
import dpnp.tensor as dpt

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 100
SIZE = 4096
CLASSES = {kind: getattr(compat, f"MemoryUSM{kind.capitalize()}") for kind in KINDS}
OTHER = {"device": "host", "shared": "device", "host": "shared"}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def queue() -> Any:
    return dpctl.SyclQueue()


def live_blocks() -> tuple[int, int, int]:
    """All live memory of this process, and the bytes that the package's pools hold once trimmed."""
    pools: list[Any] = [compat.pool(kind) for kind in KINDS]
    for each in pools:
        each.trim()
    return *live(), sum(each.held_bytes for each in pools)


def counts(objects: tuple[Any, ...]) -> list[int]:
    gc.collect()
    return [*live_blocks(), *(sys.getrefcount(each) for each in objects)]


def in_rounds(each: Callable[[], object], *objects: Any) -> None:
    """Repeated calls leave no more live memory, and no more references, than the first call."""
    each()  # objects that are kept once, such as the last queue seen, are no leak
    before = counts(objects)
    for _ in range(ROUNDS):
        each()

    def none_is_more() -> bool:
        return all(now <= then for now, then in zip(counts(objects), before, strict=True))

    assert until(none_is_more), f"{counts(objects)} now, {before} before"


@pytest.fixture(autouse=True)
def nothing_is_left(no_leak: None) -> Iterator[None]:
    yield
    gc.collect()
    assert until(lambda: live_blocks()[2] == 0)


# -- the objects that export what the constructors take --------------------------------------------


Lend = Callable[[str, Any], Any]


def ours(kind: str, queue: Any) -> Any:
    return CLASSES[kind](SIZE, queue=queue)


def of_dpctl(kind: str, queue: Any) -> Any:
    return getattr(theirs, f"MemoryUSM{kind.capitalize()}")(SIZE, queue=queue)


def array(kind: str, queue: Any) -> Any:
    return dpt.usm_ndarray(SIZE, dtype="u1", buffer=of_dpctl(kind, queue))


def buffer(kind: str, queue: Any) -> Any:
    return Buffer(SIZE, kind=kind, queue=Queue.from_sycl(queue))


def by_queue(kind: str, queue: Any) -> Any:
    return Foreign(ours(kind, queue))


def by_context(kind: str, queue: Any) -> Any:
    return Foreign(ours(kind, queue), syclobj=queue.sycl_context)


def by_capsule(kind: str, queue: Any) -> Any:
    return Foreign(ours(kind, queue), syclobj=queue._get_capsule())


def by_capsule_of_context(kind: str, queue: Any) -> Any:
    return Foreign(ours(kind, queue), syclobj=queue.sycl_context._get_capsule())


def by_filter(kind: str, queue: Any) -> Any:
    return Foreign(of_dpctl(kind, queue), syclobj="cpu")


def by_filter_of_ours(kind: str, queue: Any) -> Any:
    return Foreign(ours(kind, queue), syclobj="cpu")


LENDERS = (
    ours,
    of_dpctl,
    array,
    buffer,
    by_queue,
    by_context,
    by_capsule,
    by_capsule_of_context,
    by_filter,
    by_filter_of_ours,
)


@pytest.fixture(params=LENDERS, ids=lambda each: each.__name__)
def lend(request: pytest.FixtureRequest) -> Any:
    return request.param


def take_each_way(source: Any, kind: str, queue: Any) -> None:
    same, other = CLASSES[kind], CLASSES[OTHER[kind]]
    compat.as_usm_memory(source)
    same(source)
    same(source, copy=True, queue=queue)
    other(source, copy=True)
    other(source, copy=True, queue=queue)
    with pytest.raises(ValueError, match=kind):
        other(source)
    with pytest.raises(TypeError):
        same(source, queue=5)
    with pytest.raises(TypeError):
        other(source, copy=True, queue=5)


# -- rounds ----------------------------------------------------------------------------------------


def test_what_is_kept_is_counted(kind: str, queue: Any) -> None:
    """A block in use keeps all driver memory that its pool obtained for it."""
    ours(kind, queue)
    before = counts((queue,))
    kept = ours(kind, queue)
    now = counts((queue,))
    assert all(count > then for count, then in zip(now, before, strict=True)), (now, before)
    del kept
    assert until(lambda: counts((queue,)) == before)


def test_of_a_size(kind: str, queue: Any) -> None:
    made = CLASSES[kind]

    def each_way() -> None:
        made(SIZE)
        made(SIZE, alignment=1 << 16)
        made(SIZE, queue=queue)
        made(SIZE, copy=True, queue=queue).memset(1)
        made(SIZE, queue=queue)._pointer  # noqa: B018  # exported: freed in queue order
        made(3 << 20)

    in_rounds(each_way, queue)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0,), {}),
        ((-1,), {}),
        ((1 << 45,), {}),
        ((1 << 63,), {}),
        ((SIZE,), {"alignment": 3}),
        ((SIZE,), {"alignment": 1.5}),
        ((SIZE,), {"queue": "cpu"}),
        ((SIZE, SIZE), {}),
        (("text",), {}),
        ((None,), {"copy": True}),
    ],
)
def test_of_bad_arguments(kind: str, arguments: Any, named: Any, queue: Any) -> None:
    given = {"queue": queue, **named}

    def fail() -> None:
        with pytest.raises((ValueError, TypeError, OverflowError, MemoryError)):
            CLASSES[kind](*arguments, **given)

    in_rounds(fail, queue)


def test_of_a_subclass_that_fails_afterwards(kind: str, queue: Any) -> None:
    class Failing(CLASSES[kind]):  # type: ignore[misc, valid-type]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            raise KeyError("not made")

    source = ours(kind, queue)

    def fail() -> None:
        for given in (SIZE, source):
            with pytest.raises(KeyError, match="not made"):
                Failing(given, queue=queue)

    in_rounds(fail, queue, source)


def test_of_memory_exported_by_others(kind: str, lend: Lend, queue: Any) -> None:
    source = lend(kind, queue)
    in_rounds(lambda: take_each_way(source, kind, queue), queue, source)


def test_of_memory_exported_once(kind: str, lend: Lend, queue: Any) -> None:
    in_rounds(lambda: take_each_way(lend(kind, queue), kind, queue), queue)


def uses_of_dpctls(memory: Any) -> int:
    """The use count of dpctl's shared_ptr to its memory, which Python does not count."""
    shared = ctypes.c_void_p.from_address(id(memory) + 32).value
    counted = ctypes.c_void_p.from_address((shared or 0) + 8).value
    return ctypes.c_int.from_address((counted or 0) + 8).value


def test_first_use_by_several_threads(kind: str, queue: Any) -> None:
    source = of_dpctl(kind, queue)
    alone = uses_of_dpctls(source)
    kept = CLASSES[kind](source)
    assert uses_of_dpctls(source) > alone
    del kept
    with ThreadPoolExecutor(4) as pool:
        for _ in range(100):
            start, view = Barrier(4), CLASSES[kind](source)
            list(pool.map(lambda _n, v=view, b=start: (b.wait(), v.tobytes()), range(4)))
            del view
    gc.collect()

    def is_back() -> bool:
        Queue.from_sycl(queue).wait()  # which polls the objects kept for the queue
        return uses_of_dpctls(source) == alone

    assert until(is_back)


def test_few_are_cached_until_requested(kind: str, queue: Any) -> None:
    """Memory of dpctl that is wrapped, used and dropped, without any further call of Isthmus."""
    for _ in range(300):
        CLASSES[kind](of_dpctl(kind, queue)).tobytes()
    gc.collect()
    source = of_dpctl(kind, queue)
    alone = uses_of_dpctls(source)
    for _ in range(300):
        CLASSES[kind](source).tobytes()
    assert uses_of_dpctls(source) < alone + 200


def test_views_that_outlive_their_source(kind: str, lend: Lend, queue: Any) -> None:
    def view_of_a_view() -> None:
        view = CLASSES[kind](lend(kind, queue))
        compat.as_usm_memory(CLASSES[kind](view)).copy_to_host()

    in_rounds(view_of_a_view, queue)


@pytest.mark.parametrize(
    "entries",
    [
        {"version": 2},
        {"typestr": "zz"},
        {"shape": (-1,)},
        {"shape": (1 << 40,)},
        {"strides": (1, 1)},
        {"offset": "x"},
        {"data": (8, False)},
        {"data": None},
        {"syclobj": 5},
        {"syclobj": "no such filter"},
    ],
    ids=str,
)
def test_of_bad_interfaces(kind: str, entries: Any, queue: Any) -> None:
    source = Foreign(ours(kind, queue), **entries)

    def fail() -> None:
        for take in (compat.as_usm_memory, CLASSES[kind], CLASSES[OTHER[kind]]):
            with pytest.raises((ValueError, TypeError)):
                take(source)
        with pytest.raises((ValueError, TypeError)):
            CLASSES[OTHER[kind]](source, copy=True, queue=queue)

    in_rounds(fail, queue, source, source.memory)


def test_of_a_copy_without_memory(kind: str, lend: Lend, queue: Any) -> None:
    source, to = lend(kind, queue), OTHER[kind]
    pool: Any = compat.pool(to)

    def fail() -> None:
        limit = LimitResource(pool, limit_bytes=SIZE // 2)
        with isthmus.using(limit), pytest.raises(compat.USMAllocationError):
            CLASSES[to](source, copy=True)

    in_rounds(fail, queue, source)


def test_of_copies_and_pickles(kind: str, queue: Any) -> None:
    source = ours(kind, queue)

    def each_way() -> None:
        copy.copy(source)
        copy.deepcopy(source)
        pickle.loads(pickle.dumps(source))

    in_rounds(each_way, queue, source)
