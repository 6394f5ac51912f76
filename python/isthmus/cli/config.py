# SPDX-License-Identifier: Apache-2.0
"""``isthmus config``: the paths of the library for compilers and build systems."""

from __future__ import annotations

import argparse
import os
from typing import Any

import isthmus

_HELP = "paths for compilers and build systems"
_EPILOG = """\
  cmake -Disthmus_ROOT=$(isthmus config --cmake-dir) ...
  PKG_CONFIG_PATH=$(isthmus config --pkgconfig-dir) pkg-config --cflags --libs isthmus
"""


def add_to(commands: Any) -> None:
    """Adds the command to the parser's subcommands."""
    command = commands.add_parser(
        "config",
        help=_HELP,
        description=_HELP,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    wanted = command.add_mutually_exclusive_group(required=True)
    for flag, text in (
        ("--cmake-dir", "directory of isthmusConfig.cmake"),
        ("--include-dir", "directory that holds isthmus/isthmus.h and isthmus/isthmus.hpp"),
        ("--library", "path of the shared library"),
        ("--pkgconfig-dir", "directory of isthmus.pc"),
    ):
        wanted.add_argument(flag, dest="what", action="store_const", const=flag, help=text)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the requested path."""
    find = {
        "--cmake-dir": isthmus.get_cmake_dir,
        "--include-dir": isthmus.get_include,
        "--library": isthmus.get_library,
        "--pkgconfig-dir": _pkgconfig_dir,
    }
    print(os.path.abspath(find[args.what]()))
    return 0


def _pkgconfig_dir() -> str:
    beside_cmake = os.path.join(isthmus.get_cmake_dir(), os.pardir, os.pardir, "pkgconfig")
    for directory in (os.path.normpath(beside_cmake), isthmus.get_cmake_dir()):
        if os.path.exists(os.path.join(directory, "isthmus.pc")):
            return directory
    raise FileNotFoundError("isthmus.pc was not installed with this package")
