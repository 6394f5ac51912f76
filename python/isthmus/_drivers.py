"""Finds drivers that pip installed; called before the first driver is opened."""

from __future__ import annotations

import os
import site
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIBRARY = "libintelocl.so"


def prepare() -> None:
    """Tells the library where Intel's OpenCL runtime lies, unless the user told it."""
    if "ISTHMUS_OPENCL_LIBRARY" in os.environ:
        return
    for path in _candidates():
        if os.path.exists(path):
            os.environ["ISTHMUS_OPENCL_LIBRARY"] = path
            return


def _candidates() -> Iterator[str]:
    # Where pip puts the files of intel-opencl-rt; asking its metadata costs twenty times as much.
    yield os.path.join(sys.prefix, "lib", _LIBRARY)
    if site.USER_BASE is not None:
        yield os.path.join(site.USER_BASE, "lib", _LIBRARY)
    from importlib import metadata

    try:
        files = metadata.files("intel-opencl-rt") or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == _LIBRARY:
            yield os.path.abspath(str(file.locate()))
