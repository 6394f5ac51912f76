# SPDX-License-Identifier: Apache-2.0
"""Three pages of the documentation, as Chromium shows them, compared with recorded pictures.

Part of the long tier. It needs `chromium`, MkDocs and Pillow. After a wanted change of a page,
``ISTHMUS_RECORD_SCREENSHOTS=1`` records its picture anew: look at it before you commit it.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parent / "screenshots"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
HEIGHT = 1000
# Pixels of a recorded picture: a letter is smaller, a column, a picture or a code block is not.
SIDE = 8
# Of 255: the pale ground of a picture differs from white by 16.
MAX_DIFFERENCE = 12
MAX_CHANGED = 0.04  # of the pixels

pytestmark = [
    pytest.mark.long_tier,
    pytest.mark.skipif(BROWSER is None, reason="no chromium on PATH"),
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="no MkDocs: ./dev docs"),
]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line of output for each."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Writes nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site: search needs one that is served."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def screenshot(address: str, width: int, target: Path) -> np.ndarray:
    """The page in gray, reduced to pixels of SIDE by SIDE."""
    assert BROWSER is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += ["--force-device-scale-factor=1", "--virtual-time-budget=8000"]
    options += [f"--window-size={width},{HEIGHT}", f"--screenshot={target}"]
    subprocess.run([BROWSER, *options, address], check=True, capture_output=True, timeout=60)
    with Image.open(target) as picture:
        gray = picture.convert("L")
        reduced = gray.resize((gray.width // SIDE, gray.height // SIDE), Image.Resampling.BOX)
        return np.asarray(reduced).copy()


@pytest.mark.parametrize(
    ("page", "width"), [("index", 1280), ("python", 1280), ("pools", 390)], ids=str
)
def test_pages_look_as_recorded(site: str, page: str, width: int, tmp_path: Path) -> None:
    shown = screenshot(f"{site}/{page}.html", width, tmp_path / f"{page}.png")
    recorded = RECORDED / f"{page}-{width}.png"
    if os.environ.get("ISTHMUS_RECORD_SCREENSHOTS") == "1":
        recorded.parent.mkdir(exist_ok=True)
        Image.fromarray(shown).save(recorded, optimize=True)
    with Image.open(recorded) as picture:
        expected = np.asarray(picture)
    assert shown.shape == expected.shape
    changed = np.abs(shown.astype(int) - expected) > MAX_DIFFERENCE
    share = float(changed.mean())
    assert share <= MAX_CHANGED, f"{share:.1%} of {page}.html differ; seen: {tmp_path}/{page}.png"
