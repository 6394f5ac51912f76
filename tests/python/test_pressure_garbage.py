# SPDX-License-Identifier: Apache-2.0
"""Situations in which a pool without memory may collect garbage, and in which it must not."""

from __future__ import annotations

import ctypes
import gc
import textwrap

import pytest
from support import python

import isthmus
from isthmus.memory import PoolResource, USMAllocationError

MIB = 1 << 20


def full() -> PoolResource:
    return PoolResource("host", "host", initial_bytes=8 * MIB, limit_bytes=8 * MIB, wait=0)


def note_of(pool: PoolResource) -> tuple[int, str]:
    """The collections that begin in a failing request, and its error message."""
    begun: list[str] = []

    def note(phase: str, _: object) -> None:
        begun.append(phase)

    gc.callbacks.append(note)
    thresholds = gc.get_threshold()
    gc.set_threshold(0)  # no collection that Python begins by itself
    try:
        pool.allocate(8 * MIB)
    except USMAllocationError as failed:
        return len(begun), str(failed)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(note)
    raise AssertionError("there was memory")


def test_collected_in_a_function_of_a_host_event() -> None:
    """It runs in the call that completes the event, where the program may wait."""
    pool = full()
    kept = pool.allocate(MIB)
    told: list[tuple[int, str]] = []
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: told.append(note_of(pool)))

    class Owner(ctypes.Structure):
        _fields_ = (("object", ctypes.c_void_p), ("release", type(release)))

    library = ctypes.CDLL(isthmus.get_library())
    event = ctypes.c_void_p()
    assert library.isthmus_event_create(ctypes.byref(event)) == 0
    assert library.isthmus_event_then(event, Owner(None, release)) == 0
    assert library.isthmus_event_complete(event, 0, None) == 0
    library.isthmus_event_release(event)
    ((begun, text),) = told
    assert begun == 2  # the start and the stop of a collection
    assert "tried collect, collect_idle, grow, trim, callback" in text
    assert kept.nbytes == MIB


@pytest.mark.parametrize("phase", ["start", "stop"])
def test_none_in_a_callback_of_a_collection(phase: str) -> None:
    pool = full()
    kept = pool.allocate(MIB)
    told: list[tuple[int, str]] = []

    def during(now: str, _: object) -> None:
        if now == phase and not told:
            told.append(note_of(pool))

    gc.callbacks.append(during)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(during)
    ((begun, text),) = told
    assert begun == 0
    assert "collect" in text
    assert kept.nbytes == MIB


def test_none_as_the_interpreter_ends() -> None:
    """Called from an object that a module holds, once interpreter shutdown has begun."""
    program = """
        import gc
        from isthmus.memory import PoolResource, USMAllocationError

        pool = PoolResource("host", "host", initial_bytes=8 << 20, limit_bytes=8 << 20, wait=0)
        kept = pool.allocate(1 << 20)

        class Last:
            def __init__(self, callbacks=gc.callbacks, pool=pool, kept=kept, out=print,
                         refused=USMAllocationError):
                self.held = callbacks, pool, kept, out, refused

            def __del__(self):
                callbacks, pool, kept, out, refused = self.held
                begun = []
                def note(phase, _):
                    begun.append(phase)
                callbacks.append(note)
                try:
                    pool.allocate(8 << 20)
                except refused as failed:
                    out(len(begun), "collect" in str(failed), flush=True)
                finally:
                    callbacks.remove(note)

        last = Last()
    """
    assert python(textwrap.dedent(program)).stdout == "0 True\n"
