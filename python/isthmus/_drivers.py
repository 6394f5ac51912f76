# SPDX-License-Identifier: Apache-2.0
"""Finds drivers that pip installed; called before the first driver is opened."""

from __future__ import annotations

import os
import site
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENCL = "libintelocl.so"
_SYCL = "libDPCTLSyclInterface.so"


def libraries() -> list[tuple[str, str]]:
    """The paths of Intel's OpenCL runtime and dpctl, unless the environment names them.

    Pairs of a backend and a path. The environment is not changed, because child processes inherit
    it.
    """
    searches = (
        ("opencl", "ISTHMUS_OPENCL_LIBRARY", _opencl),
        ("sycl", "ISTHMUS_SYCL_LIBRARY", _sycl),
    )
    found = []
    for backend, variable, search in searches:
        if not os.environ.get(variable):
            path = next(filter(os.path.exists, search()), None)
            if path is not None:
                found.append((backend, path))
    return found


def _opencl() -> Iterator[str]:
    # The directory in which pip installs the files of intel-opencl-rt. Reading the package's
    # metadata instead costs twenty times as much.
    yield os.path.join(sys.prefix, "lib", _OPENCL)
    if site.USER_BASE is not None:
        yield os.path.join(site.USER_BASE, "lib", _OPENCL)
    from importlib import metadata

    try:
        files = metadata.files("intel-opencl-rt") or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == _OPENCL:
            yield os.path.abspath(str(file.locate()))


def _sycl() -> Iterator[str]:
    # Only the location is looked up: importing dpctl would make SYCL list its platforms.
    spec = PathFinder.find_spec("dpctl")
    for folder in (spec and spec.submodule_search_locations) or []:
        yield os.path.join(folder, _SYCL)
