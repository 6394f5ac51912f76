# SPDX-License-Identifier: Apache-2.0
"""Checks the language of the documentation and of the sources.

check_language.py [ROOT]

README.md, CONTRIBUTING.md and docs/ contain no word of WORDS outside of code, and no sentence of
more than MAX_WORDS words, list items included. The comments of C and C++ files contain no word of
DIALECT. No parameter in SOURCES is named by a preposition. docs/glossary.md has the terms to use.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_WORDS = 40
# The pattern of each word, with its replacement.
WORDS = {
    r"told|tells?": "returns, reports, raises, says",
    r"behind": "after",
    r"till": "until",
    r"lets? go|letting go": "releases, frees",
    r"whoever|who (?:finds|has|wants|asks)": "the caller, a thread that",
    r"he|his|him": "they, the caller",
    r"others'|somebody(?:'s)?|nobody(?:'s)?|strangers?": "another library, no thread, untrusted",
    r"lent": "exported",
    r"back-ends?": "backend",
    r"to come|planned": "a limitation under Limitations",
}
DIALECT = {re.compile(rf"\b(?:{word})\b", re.I): write for word, write in WORDS.items()}
PARAMETER = re.compile(
    r"[&*>\w]\s*[&*\s]\s*(?:on|where|home|from|how|what|most|least|into|of|over|to|by|whom|who)\s*[,)]"
)
CODE = re.compile(r"`[^`]*`|<!--.*?-->|\]\([^)]*\)|<[^>]+>", re.S)
SOURCES = ("src", "include", "python/src")
COMMENTED = (*SOURCES, "tests", "bench", "examples")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TEXT = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs, list items, headings and table rows, with the number of their first line."""
    block: list[str] = []
    begin, fenced = 1, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        starts = fence or fenced or not line.strip()
        if block and (starts or re.match(r"\s*(?:[-*+|#]|\d+\.)\s?", line)):
            yield begin, " ".join(block)
            block = []
        fenced ^= fence
        if not starts:
            begin = number if not block else begin
            block.append(line.strip())


def check_page(path: Path) -> Iterator[tuple[int, str]]:
    for number, block in prose(path.read_text(encoding="utf-8")):
        text = CODE.sub("CODE", block)
        for word, write in DIALECT.items():
            for found in word.findall(text):
                yield number, f'"{found}": write {write}'
        if text.startswith("|"):
            continue
        for sentence in re.split(r"(?<=[.!?:;])\s+", text):
            if (count := len(sentence.split())) > MAX_WORDS:
                yield number, f"a sentence of {count} words, at most {MAX_WORDS}: {sentence[:60]}"


def check_pages(root: Path) -> Iterator[str]:
    for path in [
        root / "README.md",
        root / "CONTRIBUTING.md",
        *sorted((root / "docs").rglob("*.md")),
    ]:
        for number, message in check_page(path):
            yield f"{path.relative_to(root)}:{number}: {message}"


def c_files(root: Path, folders: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    for path in sorted(each for folder in folders for each in (root / folder).rglob("*")):
        if path.suffix in {".c", ".cpp", ".h", ".hpp"}:
            yield path.relative_to(root), path.read_text(encoding="utf-8")


def check_comments(root: Path) -> Iterator[str]:
    for path, text in c_files(root, COMMENTED):
        for comment in COMMENT.finditer(text):
            line = text.count("\n", 0, comment.start()) + 1
            for found in (each for word in DIALECT for each in word.finditer(comment[0])):
                yield f"{path}:{line}: `{found[0]}` in a comment"


def check_parameters(root: Path) -> Iterator[str]:
    for path, text in c_files(root, SOURCES):
        for found in PARAMETER.finditer(TEXT.sub("", COMMENT.sub("", text))):
            yield f"{path}: a parameter named by a preposition: `{found[0]}`"


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    findings = [*check_pages(root), *check_comments(root), *check_parameters(root)]
    print("\n".join(findings) or "the language holds")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
