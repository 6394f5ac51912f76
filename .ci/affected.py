# SPDX-License-Identifier: Apache-2.0
"""Prints what a change needs, one item per line: `build TARGET`, `ctest NAME` or `pytest FILE`.

affected.py PATH...

The paths are those of changed files, relative to the root. A source file needs the unit tests of
its layer and the conformance suite. A file of the Python package needs the tests that share a word
with its name. A test file needs itself, and a document needs the tests of the documents. The choice
is by name alone and may miss tests: `./dev test` runs everything.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON_TESTS = sorted((ROOT / "tests/python").glob("test_*.py"))
ALWAYS_OF_THE_PACKAGE = ("test_buffer_make.py", "test_bad_input.py", "test_gil.py")
DOCUMENTS = ("docs/", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml")


def words(name: str) -> set[str]:
    """The words of a file's name that describe its subject, in the singular."""
    return {word.removesuffix("s") for word in re.split(r"[_./]+", name) if len(word) > 2}


def of_python(path: str) -> Iterator[str]:
    about = words(Path(path).stem) | words(Path(path).parent.name) - {"isthmu", "src", "python"}
    for test in PYTHON_TESTS:
        if test.name in ALWAYS_OF_THE_PACKAGE or about & (words(test.stem) - {"test"}):
            yield f"pytest tests/python/{test.name}"


def of_source(layer: str, driver: str) -> Iterator[str]:
    if (ROOT / "tests/unit" / layer).is_dir():
        yield f"build unit_{layer}"
        yield f"ctest unit_{layer}"
    yield "build conformance"
    if driver == "cuda":
        yield from ("build cuda_stand_in", "build unit_backend")
        yield from ("ctest conformance_cuda_stand_in.*", "ctest unit_backend_cuda_stand_in")
    elif layer != "core" and layer != "os":
        yield "ctest conformance_[0-9]"


def needed(path: str) -> Iterator[str]:
    parts = path.split("/")
    match parts:
        case ["src", layer, *rest]:
            yield from of_source(layer, rest[0])
        case ["include", *_]:
            yield from ("build plain_tests", "build conformance")
            yield from ("ctest compile_fail.*", "ctest abi_symbols", "ctest conformance_[0-9]")
        case ["python", *_]:
            yield from of_python(path)
        case ["tests", "python", name] if name.startswith("test_"):
            yield f"pytest {path}"
        case ["tests", "unit", layer, *_]:
            yield f"build unit_{layer}"
            yield f"ctest unit_{layer}"
        case ["tests", "conformance", *_]:
            yield "build conformance"
            yield "ctest conformance_[0-9]"
        case ["tests", "fault", *_]:
            yield "build fault"
            yield "ctest fault_[0-9]"
    if path.startswith(DOCUMENTS):
        yield "pytest tests/python/test_docs.py"


if __name__ == "__main__":
    print("\n".join(sorted({line for path in sys.argv[1:] for line in needed(path)})))
