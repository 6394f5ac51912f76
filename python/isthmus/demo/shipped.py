# SPDX-License-Identifier: Apache-2.0
"""Finds data files of installed packages without importing the packages, which would take
seconds.
"""

from __future__ import annotations

import importlib.util
import os


def find(package: str, path: str) -> str | None:
    """The path of a file of an installed package, or None. ``path`` is separated by slashes."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = os.path.join(folder, *path.split("/"))
        if os.path.exists(file):
            return file
    return None
