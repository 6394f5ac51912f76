# SPDX-License-Identifier: Apache-2.0
"""The typed interface: every name of the stub exists, and a typed program passes the checker."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import ROOT
from test_docs import NO_GPU, blocks_of

import isthmus
from isthmus import _core, _dpctl, _frameworks

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

CLASSES = (_core.Buffer, _core.Device, _core.Context, _core.Queue, _core.Event, _core.Platform)
MODULES = (_core, _dpctl, _frameworks)

SAMPLE = '''
"""A typed program."""
import asyncio
from collections.abc import Sequence
import isthmus
from typing import TYPE_CHECKING, Any
from isthmus import Array, Buffer, Context, Device, Event, Queue
from isthmus.memory import MemoryUSMDevice, MemoryUSMShared, as_usm_memory, live

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from isthmus._kinds import Kind


def names(devices: Sequence[Device]) -> list[str]:
    return [device.name for device in devices if "usm" in device.capabilities]


def use(queue: Queue) -> int:
    buffer = Buffer(1024, kind="shared", queue=queue, alignment=64)
    part: Buffer = buffer[10:20]
    part.copy_from(b"0123456789")
    buffer.copy_to(bytearray(1024), blocking=False).wait(timeout=1.5)
    done: Event = queue.submit(lambda view: None, buffer, after=[queue.fence()])
    Event.wait_for([done])
    with buffer as same:
        return same.nbytes + len(same.tobytes())


def copy(array: Array, *, kind: "Kind", blocking: bool) -> "NDArray[Any]":
    event = array.fill(1, blocking=blocking)
    if event is not None:
        event.wait()
    return array.copy(kind=kind).to_numpy()


async def later(event: Event) -> None:
    await event
    await Buffer(8, kind="host").fill(1, blocking=False)


def classes(device: Device) -> tuple[int, int]:
    context: Context = device.default_context
    with device, Queue(context) as queue:
        memory = MemoryUSMDevice(64, queue=queue)
        memory.copy_from_device(MemoryUSMShared(64, queue=queue))
        as_usm_memory(memory)
    return live("device")


if __name__ == "__main__":
    names(isthmus.devices())
    asyncio.run(later(isthmus.current_queue().fence()))
'''
WRONG = """
from isthmus import Buffer, Queue
Buffer(b"8")
Buffer(8, kinds="host")
Queue().submit(5)
Buffer(8).nbytes = 3
Buffer(8, kind="managed")
Buffer(8).fill(1).wait()
Buffer(8).fill(1, blocking=bool(input())).wait()
"""


def stub_of(module: ModuleType) -> ast.Module:
    name = f"{module.__name__.rpartition('.')[2]}.pyi"
    return ast.parse((ROOT / "python" / "isthmus" / name).read_text())


def stub_names(body: list[ast.stmt], prefix: str = "") -> list[str]:
    found = []
    for node in body:
        if isinstance(node, ast.ClassDef):
            found += [prefix + node.name, *stub_names(node.body, f"{prefix}{node.name}.")]
        elif isinstance(node, ast.FunctionDef):
            found.append(prefix + node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.append(prefix + node.target.id)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_the_stub_exists(module: ModuleType) -> None:
    missing = []
    for name in stub_names(stub_of(module).body):
        at: object = module
        for part in name.split("."):
            at = inspect.getattr_static(at, part, missing)
            is_there = at is not missing or part == "__buffer__"  # added in Python 3.12
            if not is_there:
                missing.append(name)
                break
    assert not missing


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_of_a_module_is_in_its_stub(module: ModuleType) -> None:
    public = {name for name in vars(module) if not name.startswith("_")}
    named = set(stub_names(stub_of(module).body)) | {"annotations"}
    assert public <= named, public - named


def test_every_public_name_of_a_class_is_in_the_stub() -> None:
    told = set(stub_names(stub_of(_core).body))
    for cls in CLASSES:
        public = {f"{cls.__name__}.{name}" for name in vars(cls) if not name.startswith("_")}
        assert public <= told, public - told


@pytest.fixture
def mypy(tmp_path: Path):  # type: ignore[no-untyped-def]
    pytest.importorskip("mypy")

    def check(sources: str | dict[str, str], *options: str) -> tuple[int, str]:
        named = sources if isinstance(sources, dict) else {"program": sources}
        for name, source in named.items():
            (tmp_path / f"{name}.py").write_text(source)
        command = [sys.executable, "-m", "mypy", "--config-file=pyproject.toml", *options]
        command += [str(tmp_path / f"{name}.py") for name in named]
        # Concurrent runs would lock a shared cache.
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        done = subprocess.run(
            [*command, f"--cache-dir={ROOT / '.cache' / f'mypy-tests{worker}'}"],
            capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": ""},
            timeout=300, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return check


def test_a_typed_program(mypy) -> None:  # type: ignore[no-untyped-def]
    status, said = mypy(SAMPLE)
    assert status == 0, said


def test_a_program_with_errors(mypy) -> None:  # type: ignore[no-untyped-def]
    status, said = mypy(WRONG)
    assert status == 1
    wrong = {int(line.split(":")[1]) for line in said.splitlines() if "error:" in line}
    assert wrong == set(range(3, 3 + WRONG.count("\n") - 2)), said


def python_of(page: Path) -> str:
    """The Python blocks of a page that run, each line under its number in the page."""
    lines = [""] * len(page.read_text().splitlines())
    for block in blocks_of(page):
        if block.language == "python" and block.skip in (None, NO_GPU):
            source = block.source.splitlines()
            lines[block.line : block.line + len(source)] = source
    return "\n".join(lines) + "\n"


def test_the_programs_of_readme_are_typed(mypy) -> None:  # type: ignore[no-untyped-def]
    status, said = mypy({"readme": python_of(ROOT / "README.md")})
    assert status == 0, said


def test_the_programs_of_the_documentation_are_typed(mypy) -> None:  # type: ignore[no-untyped-def]
    """Their functions need no annotations, and a later block may assign another type to a name."""
    pages = {
        re.sub(r"\W", "_", page.stem): python_of(page)
        for page in sorted((ROOT / "docs").glob("*.md"))
    }
    status, said = mypy(
        {name: source for name, source in pages.items() if source.strip()},
        "--allow-redefinition", "--allow-untyped-defs", "--allow-incomplete-defs",
        "--allow-untyped-calls", "--no-warn-unreachable",
        "--disable-error-code=var-annotated",
    )  # fmt: skip
    assert status == 0, said


def test_the_sample_runs() -> None:
    space = {"__name__": "sample"}
    exec(SAMPLE, space)
    assert space["use"](isthmus.Queue("host")) == 2048  # type: ignore[operator]


def test_documented() -> None:
    for cls in CLASSES:
        assert cls.__doc__
        for name, member in vars(cls).items():
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{cls.__name__}.{name}"


def test_the_declarations_for_cython_are_those_of_the_header() -> None:
    program = [sys.executable, ROOT / "python" / "generate_pxd.py", "check"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_cython_sees_all_of_the_c_interface() -> None:
    comment = re.compile(r"/\*.*?\*/|#[^\n]*", re.S)
    headers = (ROOT / "include" / "isthmus" / name for name in ("isthmus.h", "experimental.h"))
    header = comment.sub("", "".join(path.read_text() for path in headers))
    seen = comment.sub("", (ROOT / "python" / "isthmus" / "__init__.pxd").read_text())
    functions, constants = r"\bisthmus_\w+(?=\()", r"\bISTHMUS_[A-Z_0-9]+(?=\s*=)"
    for pattern in (functions, constants, r"\bisthmus_\w+_t(?=;)"):
        wanted = set(re.findall(pattern, header))
        assert wanted
        assert wanted <= set(re.findall(r"\w+", seen))
