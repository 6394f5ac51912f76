# SPDX-License-Identifier: Apache-2.0
"""The demo's picture: the photograph, the kernel's result, and a timeline of the transfers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .figure import FAINT, TEXT, new_figure, without_ticks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .run import Outcome, Step

_COLOURS = {"copy in": "#2f6f9f", "kernel": "#d1782f", "copy out": "#4f9a68"}
_SHOWN_WIDTH = 1024  # pixels, of each of the two images


def draw(outcome: Outcome, source: NDArray[np.uint8], result: NDArray[np.uint8], path: str) -> str:
    """Writes a PNG to ``path`` and returns it."""
    figure = new_figure()
    grid = figure.add_gridspec(
        2, 2, height_ratios=(5.4, 2.6), left=0.055, right=0.985, top=0.885, bottom=0.07,
        wspace=0.02, hspace=0.2,
    )  # fmt: skip
    width, height = outcome.size
    _image(figure.add_subplot(grid[0, 0]), source, f"the photograph, {width} x {height}")
    _image(figure.add_subplot(grid[0, 1]), result, "its edges, by a user-defined kernel")
    _timeline(figure.add_subplot(grid[1, :]), outcome)
    _heading(figure, outcome)
    figure.savefig(path)
    return path


def _heading(figure: Any, outcome: Outcome) -> None:
    verdict = "every byte equals NumPy's" if outcome.exact else "DIFFERS from NumPy's"
    megabytes = outcome.steps[0].nbytes / 1e6
    figure.text(
        0.055, 0.95, f"{megabytes:.0f} MB to {outcome.device} and back, {verdict}",
        fontsize=19, fontweight="bold", color=TEXT,
    )  # fmt: skip
    figure.text(0.055, 0.923, f"{outcome.device_name}; {outcome.kernel}", color=FAINT)


def _image(axes: Any, pixels: NDArray[np.uint8], title: str) -> None:
    from PIL import Image

    whole = Image.fromarray(pixels)
    axes.imshow(whole.reduce(max(1, whole.width // _SHOWN_WIDTH)))
    axes.set_title(title, loc="left", fontsize=12, color=TEXT)
    without_ticks(axes)


def _timeline(axes: Any, outcome: Outcome) -> None:
    """Draws a row for each kind of memory, beginning with the copy to it."""
    kinds = [check.kind for check in outcome.checks]
    longest = 0.0
    for row, kind in enumerate(kinds):
        steps = [step for step in outcome.steps if step.kind == kind]
        start = steps[0].began
        for step in steps:
            axes.barh(
                row, step.seconds * 1e3, left=(step.began - start) * 1e3, height=0.62,
                color=_COLOURS[step.what], edgecolor="white",
                label=step.what if row == 0 else None,
            )  # fmt: skip
        longest = max(longest, (steps[-1].began + steps[-1].seconds - start) * 1e3)
    _labels(axes, outcome, kinds, longest)
    axes.set_yticks(range(len(kinds)), [f"{kind}\nmemory" for kind in kinds], fontsize=11)
    axes.invert_yaxis()
    axes.set_xlim(0, longest * 1.06)
    axes.set_xlabel("milliseconds since the photograph left the host's memory", color=TEXT)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    axes.set_title("transfers over time", loc="left", fontsize=12, color=TEXT)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e4e4e4", zorder=0)
    axes.set_axisbelow(True)


def _labels(axes: Any, outcome: Outcome, kinds: list[str], longest: float) -> None:
    """Labels bars with time and bandwidth if they fit; the last bar's label is beside it if not."""
    starts = {kind: next(s.began for s in outcome.steps if s.kind == kind) for kind in kinds}
    for step in outcome.steps:
        begin = (step.began - starts[step.kind]) * 1e3
        milliseconds = step.seconds * 1e3
        roomy = milliseconds >= 0.055 * longest
        if not roomy and step.what != "copy out":
            continue
        axes.text(
            begin + milliseconds * (0.5 if roomy else 1) + (0 if roomy else 0.006 * longest),
            kinds.index(step.kind), _label(step), va="center", fontsize=10,
            ha="center" if roomy else "left", color="white" if roomy else TEXT,
        )  # fmt: skip


def _label(step: Step) -> str:
    return f"{step.seconds * 1e3:.0f} ms\n{step.nbytes / step.seconds / 1e9:.1f} GB/s"
