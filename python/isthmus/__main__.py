# SPDX-License-Identifier: Apache-2.0
"""``python -m isthmus``: the command ``isthmus``."""

from __future__ import annotations

from isthmus.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
