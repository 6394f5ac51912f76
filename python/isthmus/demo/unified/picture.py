# SPDX-License-Identifier: Apache-2.0
"""The picture: the map with its dirty blocks, and the bytes and times of each round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.demo.figure import FAINT, TEXT, new_figure, without_ticks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .outcome import Outcome

_WHOLE, _OURS = "#c9c9c9", "#d1782f"
_LAND = 0.35  # darkness of land


def draw(outcome: Outcome, land: NDArray[np.float64], dirty: NDArray[np.float64], path: str) -> str:
    """Writes a PNG to ``path`` and returns it.

    ``land`` and ``dirty`` have the same shape. For each block of the map they hold the share of
    land, and the dirty cells of all rounds divided by the block's cells.
    """
    figure = new_figure()
    grid = figure.add_gridspec(
        2, 2, height_ratios=(5, 2.6), left=0.055, right=0.985, top=0.875, bottom=0.07,
        wspace=0.14, hspace=0.24,
    )  # fmt: skip
    _map(figure.add_subplot(grid[0, :]), land, dirty)
    nbytes = [each.bytes_to_device + each.bytes_to_host for each in outcome.rounds]
    whole = [2 * outcome.nbytes] * len(nbytes)
    _bars(figure.add_subplot(grid[1, 0]), nbytes, whole, "bytes moved in each round", "bytes")
    seconds = [each.sync_seconds * 1e3 for each in outcome.rounds]
    copies = [each.whole_seconds * 1e3 for each in outcome.rounds]
    _bars(figure.add_subplot(grid[1, 1]), seconds, copies, "time to update the device",
          "ms")  # fmt: skip
    _heading(figure, outcome)
    figure.savefig(path)
    return path


def _heading(figure: Any, outcome: Outcome) -> None:
    verdict = "every result equals NumPy's" if outcome.exact else "DIFFERS from NumPy's"
    figure.text(
        0.055, 0.945, f"{outcome.nbytes / 1e6:.0f} MB on host and device, edited by both: "
        f"{outcome.bytes_moved / 1e6:.0f} MB moved, {outcome.whole_bytes / 1e6:.0f} MB as whole "
        f"copies; {verdict}", fontsize=15, fontweight="bold", color=TEXT,
    )  # fmt: skip
    figure.text(
        0.055, 0.918, f"{outcome.device}, {outcome.device_name}; {outcome.worker}", color=FAINT
    )


def _map(axes: Any, land: NDArray[np.float64], dirty: NDArray[np.float64]) -> None:
    """Draws land in grey, overlaid with the dirty blocks, darker where a larger share was dirty."""
    axes.imshow(land * _LAND, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="none")
    shown = np.ma.masked_equal(dirty, 0)
    axes.imshow(shown, cmap="autumn_r", vmin=0, vmax=1, aspect="auto", interpolation="none")
    axes.set_title(
        "the dirty map: where the host wrote after the first round", loc="left", fontsize=12,
        color=TEXT,
    )  # fmt: skip
    without_ticks(axes)


def _bars(axes: Any, ours: list[Any], whole: list[Any], title: str, unit: str) -> None:
    """Draws two bars for each round, on a logarithmic scale."""
    positions = np.arange(len(ours))
    axes.bar(positions - 0.2, whole, 0.4, color=_WHOLE, label="whole copies")
    axes.bar(positions + 0.2, ours, 0.4, color=_OURS, label="unified buffer")
    axes.set_yscale("log")
    axes.set_ylabel(unit, color=FAINT)
    axes.set_xlabel("round; the first copies the whole map", color=FAINT)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_title(title, loc="left", fontsize=12, color=TEXT)
    axes.legend(frameon=False, loc="upper right", ncols=2, bbox_to_anchor=(1, 1.17))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
