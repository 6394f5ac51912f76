# SPDX-License-Identifier: Apache-2.0
"""Runs every example of README.md and docs/.

The language of a fenced block determines how it is run:

- ``python``: the blocks of a file share one namespace and run in order, one process per file.
- ``c``, ``cpp``: a program (it has ``main``) is compiled against the installed package and run;
  code with an ``#include`` is compiled as it is, and bare statements are compiled in a function.
- ``console``: lines ``$ isthmus ...`` are run; other commands are ignored.

Comments before a block modify this. ``<!-- gpu -->``: the block needs a CUDA device and PyTorch.
``<!-- no-run: reason -->``: the block is not run, for that reason. Both are reported as skipped.
``<!-- from: file#part -->``: the block equals that part of a file of the repository, which is
compiled and run as a test of its own. The part lies between two lines ``//! [part]``, and the block
has it without its common indentation.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from support import has_gpu

import isthmus

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"<!--\s*(gpu|no-run|from)(?::\s*(.*?))?\s*-->")
COMPILERS = {"c": ["cc", "-std=c99", "-pedantic"], "cpp": ["c++", "-std=c++20"]}
HEADERS = {"c": "isthmus/isthmus.h", "cpp": "isthmus/isthmus.hpp"}
TIMEOUT_S = 300
NO_GPU = "needs PyTorch and a CUDA device"

# Executes blocks, given as [[line, source], ...], with tracebacks that refer to the document's
# lines.
RUNNER = """
import json, sys
name, blocks = sys.argv[1], json.loads(sys.stdin.read())
space = {"__name__": "__main__"}
for line, source in blocks:
    exec(compile("\\n" * line + source, name, "exec"), space)
"""


@dataclass(frozen=True)
class Block:
    document: str
    line: int  # of the first line of the block, from 0
    language: str
    source: str
    skip: str | None  # the reason why it is not run
    origin: str | None  # the file and part that it must equal

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def skip_reason(mark: re.Match[str] | None, where: str) -> str | None:
    if mark is None or mark[1] == "from":
        return None
    if mark[1] == "gpu":
        return None if has_gpu() and find_spec("torch") else NO_GPU
    if not mark[2]:
        raise ValueError(f"{where}: no-run wants a reason: <!-- no-run: reason -->")
    return mark[2]


def blocks_of(path: Path) -> list[Block]:
    """The fenced blocks of a document, each with the mark of the comment right before it."""
    document = str(path.relative_to(ROOT))
    blocks, mark = [], None
    for token in MarkdownIt().parse(path.read_text(encoding="utf-8")):
        if token.type == "html_block":
            mark = MARK.search(token.content)
        elif token.type == "fence" and token.map:
            line = token.map[0] + 1
            language = token.info.split()[0] if token.info.strip() else ""
            reason = skip_reason(mark, f"{document}:{line}")
            origin = mark[2] if mark and mark[1] == "from" else None
            blocks.append(Block(document, line, language, token.content, reason, origin))
            mark = None
        elif token.nesting >= 0:
            mark = None
    return blocks


def documents() -> list[Path]:
    return [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if p.exists()]


BLOCKS = [block for path in documents() for block in blocks_of(path)]
NOT_RUN = [block for block in BLOCKS if block.skip]
PARTS = [block for block in BLOCKS if block.origin]


def runnable(*languages: str) -> list[Block]:
    candidates = [block for block in BLOCKS if block.language in languages]
    return [block for block in candidates if not block.skip and not block.origin]


def python_documents() -> list[str]:
    return sorted({block.document for block in runnable("python")})


def commands() -> list[tuple[str, str]]:
    lines = [(str(b), line) for b in runnable("console") for line in b.source.splitlines()]
    return [(where, line[2:]) for where, line in lines if line.startswith("$ isthmus ")]


def run(command: list[str], cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=cwd, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, env=env
    )
    output = f"{done.stdout}{done.stderr}"
    assert done.returncode == 0, f"{shlex.join(command[:4])} gave {done.returncode}\n{output}"
    return done


def installed(part: str) -> Path:
    """The directory `include` or `lib` of the installed package."""
    found = [Path(p) / part for p in isthmus.__path__ if (Path(p) / part).is_dir()]
    assert found, f"the installed package has no {part}/: looked in {list(isthmus.__path__)}"
    return found[0]


def compile_and_run(block: Block, cwd: Path) -> None:
    program = re.search(r"\bmain\s*\(", block.source) is not None
    source = cwd / f"example.{block.language}"
    text = f'#line {block.line + 1} "{ROOT / block.document}"\n{block.source}'
    if "#include" not in block.source:
        opening = f"#include <{HEADERS[block.language]}>\nvoid fragment(void);\n"
        text = f"{opening}void fragment(void) {{\n{text}\n}}\n"
    source.write_text(text)
    lib = installed("lib")
    link = [f"-L{lib}", "-l:libisthmus.so.0", f"-Wl,-rpath,{lib}", "-pthread", "-o", "example"]
    cache = [found] if (found := shutil.which("ccache")) else []
    compiler = COMPILERS[block.language]
    warnings = ["-Wall", "-Wextra", "-Werror" if program else "-Wno-unused"]
    include = f"-I{installed('include')}"
    run([*cache, *compiler, *warnings, include, "-c", source.name, "-o", "example.o"], cwd)
    if program:
        run([*compiler, "example.o", *link], cwd)
        run(["./example"], cwd)


@pytest.mark.parametrize("document", python_documents())
def test_python(document: str, tmp_path: Path) -> None:
    found = [[b.line, b.source] for b in runnable("python") if b.document == document]
    run([sys.executable, "-c", RUNNER, str(ROOT / document)], tmp_path, json.dumps(found))


@pytest.mark.parametrize("block", runnable("c", "cpp"), ids=str)
def test_compiled(block: Block, tmp_path: Path) -> None:
    compile_and_run(block, tmp_path)


@pytest.mark.parametrize(("where", "command"), commands())
def test_console(where: str, command: str, tmp_path: Path) -> None:
    run([sys.executable, "-m", *shlex.split(command)], tmp_path)


def test_signatures_of_array_creation() -> None:
    """`...` stands for the arguments of the row above."""
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    table = text.split("## Arrays: creation\n\n")[1].split("\n\n")[0]
    told = dict(re.findall(r"`(\w+)\((.+?)\)`", table))
    for name in ("empty", "full", "empty_like", "full_like", "asarray", "array"):
        known = inspect.signature(getattr(isthmus, name))
        bare = [each.replace(annotation=each.empty) for each in known.parameters.values()]
        text = str(inspect.Signature(bare)).replace("'", '"')
        if told[name].endswith("..."):
            assert text.startswith(f"({told[name].removesuffix('...')}")
        else:
            assert text == f"({told[name]})"


def part_of(path: Path, name: str) -> str:
    """The text of the file between its two lines ``//! [name]``."""
    between = path.read_text(encoding="utf-8").split(f"//! [{name}]\n")
    assert len(between) == 3, f"{path.name} has {len(between) - 1} lines //! [{name}], not two"
    return textwrap.dedent(between[1].rstrip(" "))


@pytest.mark.parametrize("block", PARTS, ids=str)
def test_part_of_a_program(block: Block) -> None:
    assert block.origin is not None
    file, _, name = block.origin.partition("#")
    assert block.source == part_of(ROOT / file, name)


@pytest.mark.parametrize("block", NOT_RUN, ids=str)
def test_not_run(block: Block) -> None:
    pytest.skip(f"{block}: {block.skip}")
