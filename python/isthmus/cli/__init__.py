# SPDX-License-Identifier: Apache-2.0
"""The command ``isthmus``: one module for each of its subcommands.

Exit status: 0 success, 1 failure (the reason is on stderr, in one line), 2 wrong usage, 130 Ctrl-C.
Drivers, NumPy and rich are loaded by the subcommand that needs them, so ``--version`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

import isthmus

from . import bench, config, demo_command, info, replay

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_DESCRIPTION = "One memory layer for hosts and devices: lists devices, measures speed, runs demos."


def parser() -> argparse.ArgumentParser:
    """The command line and all its subcommands."""
    root = argparse.ArgumentParser(prog="isthmus", description=_DESCRIPTION)
    root.set_defaults(run=lambda _: root.print_help())
    root.add_argument("--version", action="version", version=f"isthmus {isthmus.__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND")
    for module in (info, bench, replay, demo_command, config):
        module.add_to(commands)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    try:
        args = parser().parse_args(arguments)
        status: int = args.run(args) or 0
        sys.stdout.flush()
    except SystemExit as left:  # argparse has printed the message
        return left.code if isinstance(left.code, int) else 2
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    except BrokenPipeError:  # the reader closed the pipe, as in `isthmus info | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (isthmus.Error, OSError, ValueError, ImportError, MemoryError) as failure:
        return _failed((str(failure) or type(failure).__name__).splitlines()[0], 1)
    return status


def _failed(reason: str, status: int) -> int:
    print(f"isthmus: {reason}", file=sys.stderr)
    return status
