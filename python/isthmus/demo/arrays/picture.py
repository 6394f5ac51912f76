# SPDX-License-Identifier: Apache-2.0
"""The picture: memory after each batch, and patches sorted by contrast."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.demo.figure import FAINT, TEXT, new_figure, without_ticks

from .patches import SIDE

if TYPE_CHECKING:
    from .outcome import Outcome
    from .patches import Batch

_COLOURS = ("#d1782f", "#2f7f8f", "#8a8a8a")
_MIB = 1 << 20
_ROWS = 4  # of patches


def draw(outcome: Outcome, shown: Batch, path: str) -> str:
    """Writes a PNG to ``path`` and returns it."""
    figure = new_figure()
    grid = figure.add_gridspec(
        3, 2, height_ratios=(3, 3, 2.2), left=0.055, right=0.985, top=0.875, bottom=0.05,
        wspace=0.14, hspace=0.42,
    )  # fmt: skip
    memory = outcome.memory
    pools = [("held", np.array(memory.held) / _MIB), ("in use", np.array(memory.live) / _MIB)]
    if outcome.beside:
        name = f"held by {os.path.basename(outcome.options.beside)}"
        pools.append((name, np.array(outcome.beside) / _MIB))
    _lines(figure.add_subplot(grid[0, :]), "memory of the pool after each batch, MiB", pools)
    _lines(figure.add_subplot(grid[1, 0]), "the process in RAM, MiB", (
        ("resident", np.array(memory.resident) / _MIB),
    ))  # fmt: skip
    _lines(figure.add_subplot(grid[1, 1]), "allocations by the driver", (
        ("so far", np.array(memory.driver_allocations)),
    ))  # fmt: skip
    _patches(figure.add_subplot(grid[2, :]), shown)
    _heading(figure, outcome)
    figure.savefig(path)
    return path


def _heading(figure: Any, outcome: Outcome) -> None:
    verdict = "every number equals NumPy's" if outcome.exact else "DIFFERS from NumPy's"
    flat = {True: "flat memory", False: "memory that is NOT flat", None: "too few for memory"}[
        outcome.flat
    ]
    figure.text(
        0.055, 0.945, f"{outcome.options.batches} batches, {outcome.nbytes / 1e6:.0f} MB of real "
        f"pixels: {flat}; {verdict}", fontsize=15, fontweight="bold", color=TEXT,
    )  # fmt: skip
    figure.text(
        0.055, 0.918, f"{outcome.device}, {outcome.device_name}; {outcome.worker}", color=FAINT
    )


def _lines(axes: Any, title: str, lines: Any) -> None:
    for (name, values), colour in zip(lines, _COLOURS, strict=False):
        axes.plot(values, color=colour, linewidth=1.8, label=name, zorder=-len(axes.lines))
    axes.set_ylim(bottom=0, top=1.25 * max(1e-3, *(values.max() for _, values in lines)))
    axes.set_xlim(0, max(1, *(len(values) - 1 for _, values in lines)))
    axes.set_xlabel("batch", color=FAINT)
    axes.set_title(title, loc="left", fontsize=12, color=TEXT)
    if len(lines) > 1:
        axes.legend(frameon=False, loc="upper right", ncols=len(lines))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _patches(axes: Any, shown: Batch) -> None:
    """Draws patches in columns, from the least contrast on the left to the most on the right."""
    columns = len(shown) // _ROWS
    cells = shown[: columns * _ROWS].reshape(columns, _ROWS, 3, SIDE, SIDE)
    wide = np.full((_ROWS, SIDE + 1, columns, SIDE + 1, 3), 255, np.uint8)
    wide[:, :SIDE, :, :SIDE] = cells.transpose(1, 3, 0, 4, 2)
    image = wide.reshape(_ROWS * (SIDE + 1), columns * (SIDE + 1), 3)
    axes.imshow(image, interpolation="none", aspect="auto")
    axes.set_title(
        "patches, from the least contrast to the most", loc="left", fontsize=12, color=TEXT
    )
    without_ticks(axes)
