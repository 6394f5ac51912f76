# SPDX-License-Identifier: Apache-2.0
"""Runs commands in a pseudo-terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Finished(NamedTuple):
    """The exit status of a command, and what the terminal showed, without colours."""

    status: int
    text: str
    errors: str


def run_in_terminal(columns: int, command: Sequence[str]) -> Finished:
    """Runs ``sys.executable`` with ``command``, with standard output in a terminal."""
    main, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    with subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.DEVNULL,
        stdout=child,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        os.close(child)
        shown = _read_all(main)
        assert process.stderr is not None
        errors = process.stderr.read().decode()
    os.close(main)
    return Finished(process.returncode, _ESCAPES.sub("", shown).replace("\r\n", "\n"), errors)


def _read_all(terminal: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # EIO: the child has closed its end
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()
