# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/ name what exists, and link to one another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
# The documents that list the backends.
TABLES = ("README.md", "docs/index.md", "docs/backends.md", "include/isthmus/isthmus.h")
INDEXES = ("README.md", "docs/index.md", "mkdocs.yml")


def backends() -> list[str]:
    source = (ROOT / "src/backend/drivers.cpp").read_text(encoding="utf-8")
    return re.findall(r'Driver\{"(\w+)", \w+::open\}', source)


def test_backends_are_found() -> None:
    assert sorted(backends()) == ["cuda", "host", "opencl", "sim", "sycl"]


@pytest.mark.parametrize("name", TABLES)
def test_every_backend_is_named(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".h"):  # the comment of the field that holds the backend
        text = " ".join(re.findall(r"const char\* backend;\s*(/\*.*?\*/)", text, re.S))
    assert [each for each in backends() if not re.search(rf"\b{each}\b", text)] == []


@pytest.mark.parametrize("name", INDEXES)
def test_every_page_is_linked(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    place = "docs/" if name == "README.md" else ""
    linked = {"index.md", "contributing.md"} if name == "README.md" else {Path(name).name}
    missing = [
        page.name
        for page in PAGES
        if page.name not in linked and not re.search(rf"\b{place}{re.escape(page.name)}\b", text)
    ]
    assert missing == []


def test_every_link_leads_to_a_file() -> None:
    broken = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        targets = [t for t in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in t]
        broken += [f"{page.name}: {t}" for t in targets if not (page.parent / t).exists()]
    assert broken == []


def test_every_file_that_cmake_names_exists() -> None:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    listed = re.search(r"set\(isthmus_warm ([^)]*)\)", text)
    assert listed
    missing = [each for each in listed[1].split() if not (ROOT / f"src/{each}.cpp").exists()]
    for each in re.findall(r"\$\{CMAKE_CURRENT_SOURCE_DIR\}/([\w./-]+\.\w+)", text):
        missing += [] if (ROOT / each).exists() else [each]
    assert missing == []
