# SPDX-License-Identifier: Apache-2.0
"""The picture: patches sorted by contrast, a batch with and without a pool, and the memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus import _figure
from isthmus.cli.output import bytes_text, time_text

from .patches import SIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .outcome import Comparison, Outcome
    from .patches import Batch

ROWS = 8  # of patches
_HEIGHT = 8.6  # inches
_LOWER = 4.65  # inches, from the top of the patches to the panels below
_LOWER_HEIGHT = 2.1  # inches


@dataclass(frozen=True)
class Shown:
    """Patches by increasing contrast, and their contrasts."""

    patches: Batch
    contrast: NDArray[np.float32]


def draw(outcome: Outcome, shown: Shown, path: str) -> str:
    """Writes a PNG to ``path`` and returns it."""
    with _figure.style():
        _figure.save(compose(outcome, shown), path)
    return path


def compose(outcome: Outcome, shown: Shown) -> Any:
    """The figure. Preconditions: the style is entered; the comparison was made."""
    figure = _figure.new_figure(_HEIGHT)
    _patches(_figure.add_panel(figure, 0, 0, _figure.PANELS_WIDTH, _LOWER - 1.0), shown)
    assert outcome.comparison is not None
    _time(_figure.add_panel(figure, 0.15, _LOWER, 2.5, _LOWER_HEIGHT), outcome.comparison)
    _calls(_figure.add_panel(figure, 3.75, _LOWER, 2.5, _LOWER_HEIGHT), outcome.comparison)
    _memory(_figure.add_panel(figure, 7.25, _LOWER, 3.75, _LOWER_HEIGHT), outcome)
    _heading(figure, outcome)
    _figure.add_footer(figure, f"{outcome.device}, {outcome.device_name}", outcome.worker)
    return figure


def _heading(figure: Any, outcome: Outcome) -> None:
    options = outcome.options
    flat = {True: "in constant memory", False: "in memory that GROWS", None: ""}[outcome.flat]
    verdict = "equals" if outcome.exact else "DIFFERS from"
    _figure.add_heading(
        figure,
        f"{options.batches * options.patches:,} patches of photographs, measured on the device "
        f"{flat}".strip(),
        f"{options.batches:,} batches of {options.patches:,} patches, {bytes_text(outcome.nbytes)} "
        f"of pixels; each batch is a new array. Every contrast {verdict} NumPy's.",
    )


def _patches(axes: Any, shown: Shown) -> None:
    """Draws patches in columns, from the least contrast on the left to the most on the right."""
    columns = len(shown.patches) // ROWS
    cells = shown.patches[: columns * ROWS].reshape(columns, ROWS, 3, SIDE, SIDE)
    wide = np.full((ROWS, SIDE + 1, columns, SIDE + 1, 3), 255, np.uint8)
    wide[:, :SIDE, :, :SIDE] = cells.transpose(1, 3, 0, 4, 2)
    image = wide.reshape(ROWS * (SIDE + 1), columns * (SIDE + 1), 3)
    axes.imshow(image, interpolation="none")
    axes.set_anchor("NW")  # few patches do not fill the width
    axes.set_title(f"Some of the patches, {SIDE} x {SIDE} pixels each, sorted by contrast")
    _figure.frame_only(axes)
    for spine in axes.spines.values():
        spine.set_visible(False)
    labelled = range(0, columns, 3)
    axes.set_xticks(
        [column * (SIDE + 1) + SIDE / 2 for column in labelled],
        [f"{shown.contrast[column * ROWS]:,.0f}" for column in labelled],
    )
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("contrast: sum of the differences of neighbouring bytes", loc="left")


def _time(axes: Any, comparison: Comparison) -> None:
    pool, driver = comparison.pool_seconds, comparison.driver_seconds
    _pair(axes, (pool, driver), time_text)
    _figure.label_seconds(axes, "create, fill, free an array: median")
    axes.set_title(f"From a pool: {_figure.ratio_text(driver, pool, 'faster', 'slower')}")


def _calls(axes: Any, comparison: Comparison) -> None:
    pool, driver = comparison.pool_driver_allocations, comparison.driver_allocations
    _pair(axes, (pool, driver), lambda calls: f"{calls:,.0f}")
    axes.set_xlabel(f"allocations by the driver in {comparison.batches:,} batches")
    axes.set_title(f"Driver: {_figure.ratio_text(driver, pool, 'fewer calls', 'more calls')}")


def _pair(axes: Any, values: tuple[float, float], text: Any) -> None:
    colours = (_figure.OURS, _figure.BASELINE)
    _figure.draw_bars(axes, ("with\na pool", "without"), (("", values, colours),), text)


def _memory(axes: Any, outcome: Outcome) -> None:
    """Draws a line for each amount of memory, with its name and value above it."""
    memory = outcome.memory
    lines = [
        ("process in RAM", memory.resident, _figure.FAINT, "-"),
        ("reserved by the pool", memory.held, _figure.BLUE, "-"),
        ("of that, in use", memory.live, _figure.VERMILION, "--"),
    ]
    if outcome.beside:
        name = os.path.basename(outcome.options.beside)
        lines.insert(2, (f"reserved by {name}", outcome.beside, _figure.GREEN, "-."))
    for name, values, colour, dashes in lines:
        sizes = [_figure.mib(each) for each in values]
        axes.plot(
            range(1, len(sizes) + 1), sizes, dashes, color=colour, linewidth=2, clip_on=False,
            label=f"{name}: {bytes_text(values[-1])}",
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_xlim(1, max(2, *(len(values) for _, values, _, _ in lines)))
    axes.set_xlabel("batch")
    axes.set_ylabel("memory, MiB")
    calls = memory.driver_allocations[-1]
    times = "once" if calls == 1 else f"in {calls:,} steps"
    axes.set_title(f"The pool reserved {bytes_text(memory.held[-1])} {times}, and reuses it")
    axes.grid(axis="y")
    axes.legend(loc="upper right", bbox_to_anchor=(1, 0.84))
