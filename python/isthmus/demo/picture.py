# SPDX-License-Identifier: Apache-2.0
"""The demo's picture: the photograph, the kernel's result, and the times of copies and kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus import _figure
from isthmus.cli.output import bytes_text, time_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .run import Outcome

_COLOURS = {"copy in": _figure.SKY, "kernel": _figure.ORANGE, "copy out": _figure.GREEN}
_FIRST_USE: dict[str, Any] = {
    "facecolor": "white",
    "edgecolor": _figure.FAINT,
    "hatch": "////",
    "linewidth": 0.8,
}
_SHOWN_WIDTH = 1024  # pixels, of each of the two images
_HEIGHT = 9.0  # inches


def draw(outcome: Outcome, source: NDArray[np.uint8], result: NDArray[np.uint8], path: str) -> str:
    """Writes a PNG to ``path`` and returns it."""
    with _figure.style():
        _figure.save(compose(outcome, source, result), path)
    return path


def compose(outcome: Outcome, source: NDArray[np.uint8], result: NDArray[np.uint8]) -> Any:
    """The figure. Precondition: the style is entered."""
    figure = _figure.new_figure(_HEIGHT)
    rows = figure.add_gridspec(
        2, 1, height_ratios=(4.1, 2.6), hspace=0.2, **_figure.panels_of(figure)
    )
    images = rows[0].subgridspec(1, 2, wspace=0.03)
    width, height = outcome.size
    _image(figure.add_subplot(images[0]), source, f"The photograph, {width} x {height} pixels")
    _image(figure.add_subplot(images[1]), result, "Its edges, computed on the device")
    times = rows[1].subgridspec(1, 2, width_ratios=(2.1, 1), wspace=0.22)
    _steps(figure.add_subplot(times[0]), outcome)
    _against_numpy(figure.add_subplot(times[1]), outcome)
    nbytes = bytes_text(outcome.steps[0].nbytes)
    verdict = "equals" if outcome.exact else "DIFFERS from"
    _figure.add_heading(
        figure,
        f"A photograph of {nbytes} goes to the device, is processed there, and comes back",
        f"The result {verdict} NumPy's{' in every byte' if outcome.exact else ''}. Each bar is for "
        "one kind of memory. Kinds differ in where it resides, and whether the host can access it.",
    )
    _figure.add_footer(figure, f"{outcome.device}, {outcome.device_name}", outcome.kernel)
    return figure


def _image(axes: Any, pixels: NDArray[np.uint8], title: str) -> None:
    from PIL import Image

    whole = Image.fromarray(pixels)
    axes.imshow(whole.reduce(max(1, whole.width // _SHOWN_WIDTH)))
    axes.set_title(title)
    _figure.frame_only(axes)


def _steps(axes: Any, outcome: Outcome) -> None:
    """Draws a bar for each kind of memory; what the first trip took in addition is hatched."""
    from matplotlib.patches import Patch

    kinds = [check.kind for check in outcome.checks]
    for row, kind in enumerate(kinds):
        end = 0.0
        for step in (each for each in outcome.steps if each.kind == kind):
            axes.barh(
                row, step.seconds, left=end, height=0.46, color=_COLOURS[step.what],
                edgecolor="white", label=step.what if row == 0 else None,
            )  # fmt: skip
            end += step.seconds
        more = _first_seconds(outcome, kind) - end
        if more > 0:
            axes.barh(row, more, left=end, height=0.46, **_FIRST_USE)
        axes.text(0, row - 0.28, _caption(outcome, kind), va="bottom", fontsize=9)
    axes.set_yticks(range(len(kinds)), [f"{kind}\nmemory" for kind in kinds])
    axes.set_ylim(len(kinds) - 0.65, -0.68)
    _figure.label_seconds(axes, "time")
    axes.set_title("Time of a trip")
    handles, _ = axes.get_legend_handles_labels()
    handles.append(Patch(**_FIRST_USE, label="more on first use"))
    axes.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(handles),
        columnspacing=1.2, handlelength=1.6,
    )  # fmt: skip
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def _first_seconds(outcome: Outcome, kind: str) -> float:
    return sum(step.first_seconds for step in outcome.steps if step.kind == kind)


def _caption(outcome: Outcome, kind: str) -> str:
    steps = ", ".join(
        f"{step.what} {time_text(step.seconds)}" for step in outcome.steps if step.kind == kind
    )
    return f"{steps}; first use {time_text(_first_seconds(outcome, kind))} in all"


def _against_numpy(axes: Any, outcome: Outcome) -> None:
    """Draws the whole trip through the first kind beside the same work without a device."""
    kind = outcome.checks[0].kind
    ours, numpy = outcome.seconds_of(kind), outcome.numpy_seconds
    _figure.draw_bars(
        axes,
        (f"{kind}\nmemory", "NumPy,\nno copies"),
        (("", (ours, numpy), (_figure.OURS, _figure.BASELINE)),),
        time_text,
    )
    _figure.label_seconds(axes, "time")
    axes.set_title(f"NumPy alone: {_figure.ratio_text(numpy, ours, 'slower', 'faster')}")
