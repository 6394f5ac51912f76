# SPDX-License-Identifier: Apache-2.0
"""Runs the command ``isthmus`` with the arguments after the first, and writes all that it prints to
the JSON file of the first: by the width of a terminal, and under "pipe".
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from isthmus.cli import main, output

WIDTHS = {"60": 60, "80": 80, "120": 120, "pipe": None}
rendered: dict[str, list[str]] = {name: [] for name in WIDTHS}
print_to_terminal = output.emit


def record(render: output.Render) -> None:
    """Prints as before, and keeps the lines for each width."""
    for name, width in WIDTHS.items():
        rendered[name] += ["".join(text for text, _ in line).rstrip() for line in render(width)]
    print_to_terminal(render)


def draw(*_: object) -> str:
    """Takes the place of the demos' pictures, which take seconds and are tested elsewhere."""
    return "picture.png"


if sys.argv[2] == "demo":
    for name in ("", ".unified", ".arrays"):
        importlib.import_module(f"isthmus.demo{name}.picture").draw = draw  # type: ignore[attr-defined]
for module in list(sys.modules.values()):
    if getattr(module, "emit", None) is print_to_terminal:
        module.emit = record  # type: ignore[attr-defined]
status = main(sys.argv[2:])
Path(sys.argv[1]).write_text(json.dumps(rendered))
sys.exit(status)
