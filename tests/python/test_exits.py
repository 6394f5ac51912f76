# SPDX-License-Identifier: Apache-2.0
"""Processes that end with work in flight and Python functions queued exit cleanly and silently.

About 30 of them; 1,000 with `--long` or ISTHMUS_LONG=1.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import python

SETUP = """
import sys, threading, time
import numpy as np
import isthmus
from isthmus import Buffer, Event, Queue
from support import open_backend
queue = Queue(open_backend(sys.argv[1]))
kind = queue.device.kinds[0]
gate = Event()
"""

SHAPES = {
    "copies in flight": """
        data = np.ones(8 << 20, np.uint8)
        buffers = [Buffer(8 << 20, kind=kind, queue=queue) for _ in range(4)]
        for _ in range(4):
            for buffer in buffers:
                buffer.copy_from(data, blocking=False)
                buffer.copy_to(np.empty_like(data), blocking=False)
    """,
    "work behind an event that never comes": """
        buffer = Buffer(1 << 16, kind=kind, queue=queue)
        events = [buffer.fill(1, after=[gate], blocking=False) for _ in range(20)]
        got = np.zeros(1 << 16, np.uint8)
        buffer.copy_to(got, blocking=False)
    """,
    "work behind several events that never come": """
        gates = [gate, Event()]
        buffers = [Buffer(1 << 16, kind=kind, queue=queue) for _ in range(2)]
        for _ in range(4):
            buffers[0].copy_from(buffers[1], after=gates, blocking=False)
            gates.append(Event())
    """,
    "an event dropped on the way out": """
        buffer = Buffer(1 << 16, kind=kind, queue=queue)
        buffer.fill(1, after=[gate], blocking=False)
        del gate, buffer, queue
    """,
    "functions that have not begun": """
        for _ in range(100):
            queue.submit(lambda: time.sleep(0.001), after=[gate])
    """,
    "functions that run": """
        host = Buffer(64, kind="host", device="host")
        for other in (queue, Queue("host")):
            for _ in range(10):
                other.submit(lambda: time.sleep(0.002))
        Queue("host").submit(lambda view: time.sleep(0.02), host)
        time.sleep(0.005)
    """,
    "functions that submit more": """
        def again():
            if queue is not None:
                queue.submit(again)
                Buffer(64, kind=kind, queue=queue).fill(1, blocking=False)
        queue.submit(again)
        time.sleep(0.01)
    """,
    "functions that raise": """
        def fail(): raise KeyError("never seen")
        for _ in range(50):
            queue.submit(fail)
    """,
    "threads that wait": """
        for _ in range(4):
            threading.Thread(target=lambda: queue.fence([gate]).wait(), daemon=True).start()
            threading.Thread(target=gate.wait, daemon=True).start()
        time.sleep(0.01)
    """,
    "threads at work": """
        def work():
            while True:
                buffer = Buffer(1 << 16, kind=kind, queue=queue)
                buffer.fill(1, blocking=False)
                buffer.tobytes()
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.02)
    """,
    "threads that are asked for memory": """
        from isthmus.memory import CustomResource, FailureCallbackResource, LimitResource
        from isthmus.memory import PoolResource
        class Waiting:
            def allocate(self, nbytes, alignment, queue): threading.Event().wait()
            def deallocate(self, pointer, nbytes, queue): pass
        def wait(nbytes): threading.Event().wait()
        limited = LimitResource(PoolResource(kind, queue.device), 10)
        for asks in (CustomResource(Waiting(), kind, queue.device),
                     FailureCallbackResource(limited, wait)):
            threading.Thread(target=asks.allocate, args=[100], daemon=True).start()
        time.sleep(0.02)
    """,
    "exports and cycles": """
        buffer = Buffer(1 << 16, kind="host", device="host")
        array, view = np.asarray(buffer), memoryview(buffer)
        taken = np.from_dlpack(buffer)
        class Box: pass
        box = Box()
        box.self, box.buffer, box.event = box, buffer, buffer.fill(1, blocking=False)
        box.work = queue.submit(lambda: box)
        buffer.free()
    """,
    "work at exit": """
        import atexit
        @atexit.register
        def late():
            buffer = Buffer(64, kind=kind, queue=queue)
            buffer.fill(3)
            assert buffer.tobytes() == bytes([3]) * 64
            buffer.fill(4, blocking=False)
        queue.submit(lambda: time.sleep(0.01))
    """,
    "an await that is given up": """
        import asyncio
        async def wait(): await queue.fence([gate])
        async def main():
            task = asyncio.create_task(wait())
            await asyncio.sleep(0.001)
            queue.submit(lambda: None, after=[gate])
        asyncio.run(main())
    """,
    "sys.exit in the middle": """
        Buffer(1 << 20, kind=kind, queue=queue).fill(1, blocking=False)
        queue.submit(lambda: time.sleep(0.01))
        sys.exit(0)
    """,
    "queues that wait for each other": """
        other = Queue(queue.device)
        buffers = [Buffer(32 << 20, kind=kind, queue=each) for each in (queue, other)]
        for _ in range(10):
            buffers[0].copy_from(buffers[1], blocking=False)
            buffers[1].copy_from(buffers[0], blocking=False)
    """,
    "copies between devices": """
        others = [Queue(name) for name in ("host", "opencl")]
        buffers = [Buffer(4 << 20, kind="device", queue=other) for other in (queue, *others)]
        for source in buffers:
            for target in buffers:
                if source is not target:
                    target.copy_from(source, blocking=False)
    """,
}
BACKENDS = ["host", "late", "sim", "opencl"]
# Each test runs every second case: every shape on two backends, every backend with half of the
# shapes.
CASES = [
    (shape, backend)
    for number, shape in enumerate(SHAPES)
    for backend in (BACKENDS if number % 2 == 0 else [*BACKENDS[1:], BACKENDS[0]])
]


def program(shape: str) -> str:
    lines = SHAPES[shape].splitlines()
    return SETUP + "\n".join(line[8:] for line in lines)


def exit_once(case: tuple[str, str]) -> str:
    shape, backend = case
    try:
        python(program(shape), backend, timeout=120)
    except BaseException as error:
        return f"{shape} on {backend}: {error}"
    return ""


def test_exits(exit_round: int, long_tier: bool) -> None:
    cases = CASES if long_tier else CASES[::2]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [failure for failure in pool.map(exit_once, cases) if failure]
    assert not failures, f"{len(failures)} of {len(cases)}:\n" + "\n".join(failures[:10])


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_that_run_are_waited_for(backend: str) -> None:
    code = SETUP + (
        "started = threading.Event()\n"
        "def work():\n"
        "    started.set()\n"
        "    time.sleep(0.1)\n"
        "    print('ended', flush=True)\n"
        "queue.submit(work)\n"
        "started.wait()\n"
    )
    assert python(code, backend).stdout == "ended\n"


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_that_have_not_begun_never_run(backend: str) -> None:
    code = SETUP + ("queue.submit(lambda: print('ran', flush=True), after=[gate])\n")
    assert python(code, backend).stdout == ""


EARLIER = """
import atexit
@atexit.register  # before isthmus is imported, so that it runs after isthmus' own
def told():
    gate.complete()  # its turn comes now
    try:
        event.wait(30)
    except isthmus.Error as error:
        print(type(error).__name__)
"""


def test_their_events_complete() -> None:
    code = EARLIER + SETUP + "event = queue.submit(lambda: None, after=[gate])\n"
    assert python(code, "host").stdout == "CallbackError\n"
