# SPDX-License-Identifier: Apache-2.0
"""The picture: the map and how often it was dirty, a close-up, and bytes and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus import _figure
from isthmus.cli.output import bytes_text, time_text

from .close_up import WRITTEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .close_up import CloseUp
    from .outcome import Outcome

_SEA, _LAND, _COAST = "#ffffff", "#d4d4d4", "#8c8c8c"
# From dirty once to dirty in each round: one hue that becomes darker.
_ONCE, _ALWAYS = "#fdb97d", "#5c1f00"
_MAX_MAP_HEIGHT = 5.5  # inches
_MIN_LABELLED_HEIGHT = 1.5  # a lower map has no space for labels
_LOWER_HEIGHT = 2.5  # inches, of the panels below the map
_GAP = 1.3  # inches, between the map and these panels
_LEGENDS = 0.4  # inches, below these panels


@dataclass(frozen=True)
class Overview:
    """The map in blocks: their shares of land, the rounds in which they were dirty, and the
    latitude of each row of cells, from the north.
    """

    land: NDArray[np.float64]
    rounds: NDArray[np.int64]
    latitudes: NDArray[np.float64]


def draw(outcome: Outcome, overview: Overview, close_up: CloseUp, path: str) -> str:
    """Writes a PNG to ``path`` and returns it."""
    with _figure.style():
        _figure.save(compose(outcome, overview, close_up), path)
    return path


def compose(outcome: Outcome, overview: Overview, close_up: CloseUp) -> Any:
    """The figure. Precondition: the style is entered."""
    north, south = float(overview.latitudes[0]), float(overview.latitudes[-1])
    aspect = 1 / np.cos(np.radians((north + south) / 2))  # true to scale in the middle row
    height = min(_figure.PANELS_WIDTH * (north - south) * aspect / 360, _MAX_MAP_HEIGHT)
    lower = height + _GAP
    figure = _figure.new_figure(_figure.figure_height(lower + _LOWER_HEIGHT + _LEGENDS))
    area = _figure.add_panel(figure, 0, 0, _figure.PANELS_WIDTH, height)
    shown = _map(area, outcome, overview, aspect)
    area.set_title(
        f"What was dirty after round 0, in ranges of mostly {_unit_text(outcome, close_up)}"
    )
    if height >= _MIN_LABELLED_HEIGHT:
        _mark_window(area, outcome, overview, close_up)
    else:
        area.set_yticks([(north + south) / 2])
    _map_legend(figure, area, shown, outcome.options.rounds, height + 0.42)
    consequence = "copied with it" if outcome.bytes_moved else "dirty"
    area = _figure.add_panel(figure, 0, lower, 4.3, _LOWER_HEIGHT)
    _close_up(area, close_up, f"{consequence} (mostly {bytes_text(close_up.range_bytes)})")
    _bytes(_figure.add_panel(figure, 5.3, lower, 2.4, _LOWER_HEIGHT), outcome)
    _times(_figure.add_panel(figure, 8.6, lower, 2.4, _LOWER_HEIGHT), outcome)
    _heading(figure, outcome)
    _figure.add_footer(figure, f"{outcome.device}, {outcome.device_name}", outcome.worker)
    return figure


def _heading(figure: Any, outcome: Outcome) -> None:
    moved, whole = outcome.later_bytes
    verdict = "equals" if outcome.exact else "DIFFERS from"
    less = _figure.ratio_text(whole, moved, "less than", "more than")
    _figure.add_heading(
        figure,
        f"A unified buffer copies what changed: {less} whole copies" if moved
        else "Host and device use one copy: nothing is copied",
        f"A map of {bytes_text(outcome.nbytes)} on host and device. In each round the host edits "
        f"coasts, the device counts land and writes a band of rows. Every result {verdict} "
        "NumPy's.",
    )  # fmt: skip


def _map(axes: Any, outcome: Outcome, overview: Overview, aspect: float) -> Any:
    """Draws land in grey, overlaid with the dirty blocks, darker where dirty more often.

    Returns the image of these blocks.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.ticker import MaxNLocator

    extent = (-180.0, 180.0, float(overview.latitudes[-1]), float(overview.latitudes[0]))
    placed = {"aspect": aspect, "extent": extent, "interpolation": "none"}
    axes.imshow(overview.land, cmap=_hue(_SEA, _LAND), vmin=0, vmax=1, **placed)
    rounds = outcome.options.rounds
    levels = ListedColormap(_hue(_ONCE, _ALWAYS)(np.linspace(0, 1, min(rounds, 256))))
    dirty = np.ma.masked_equal(overview.rounds, 0)
    shown = axes.imshow(dirty, cmap=levels, vmin=0.5, vmax=rounds + 0.5, **placed)
    axes.contour(
        overview.land, levels=[0.5], colors=_COAST, linewidths=0.4, extent=extent, origin="upper"
    )
    _figure.frame_only(axes)
    axes.set_xticks(range(-150, 180, 30))
    axes.xaxis.set_major_formatter(lambda east, _: _degrees(east, "E", "W"))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(lambda north, _: _degrees(north, "N", "S"))
    return shown


def _unit_text(outcome: Outcome, close_up: CloseUp) -> str:
    """``4 KiB, or 34° of a row``: why single edits look like long strokes."""
    rows = close_up.range_bytes / outcome.shape[1]
    part = f"{360 * rows:.2g}° of a row" if rows < 1 else f"{rows:.0f} rows"
    return f"{bytes_text(close_up.range_bytes)}, or {part}"


def _mark_window(axes: Any, outcome: Outcome, overview: Overview, close_up: CloseUp) -> None:
    """Points to the window of the last round."""
    rows, columns = close_up.window
    middle = (columns.start + columns.stop) / 2 / outcome.shape[1] * 360 - 180
    latitude = float(overview.latitudes[(rows.start + rows.stop) // 2])
    upper_half = (rows.start + rows.stop) / 2 < outcome.shape[0] / 2
    axes.annotate(
        f"window of edits in round {close_up.number}", (middle, latitude),
        xytext=(24, -34 if upper_half else 34), textcoords="offset points", va="center",
        color=_figure.BLUE, arrowprops={"arrowstyle": "->", "color": _figure.BLUE},
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
    )  # fmt: skip


def _hue(first: str, last: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("hue", (first, last))


def _degrees(degrees: float, positive: str, negative: str) -> str:
    """``-150`` as ``150° W``."""
    side = positive if degrees > 0 else negative
    return f"{abs(degrees):.3g}°{f' {side}' if degrees else ''}"


def _map_legend(figure: Any, area: Any, shown: Any, rounds: int, top: float) -> None:
    """Adds a legend of land and sea, and a bar with the colours of the dirty blocks."""
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    bar_axes = _figure.add_panel(figure, _figure.PANELS_WIDTH - 3.4, top, 3.4, 0.14)
    bar = figure.colorbar(shown, cax=bar_axes, orientation="horizontal")
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(12, integer=True)
    bar.ax.tick_params(which="both", length=0)
    bar.ax.minorticks_off()
    bar.ax.text(
        -0.03, 0.5, f"dirty in how many of {rounds} rounds", ha="right", va="center",
        transform=bar.ax.transAxes,
    )  # fmt: skip
    land = Patch(facecolor=_LAND, label="land")
    sea = Patch(facecolor=_SEA, edgecolor=_figure.FRAME, label="sea")
    corner = bar_axes.get_position()
    figure.legend(
        handles=[land, sea], loc="center left", ncols=2, borderpad=0,
        bbox_to_anchor=(area.get_position().x0, (corner.y0 + corner.y1) / 2),
    )  # fmt: skip


def _close_up(axes: Any, close_up: CloseUp, consequence: str) -> None:
    """Draws the cells around the window: what was written, and the ``consequence`` of that."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch, Rectangle

    rows, columns = close_up.region
    colours = (_SEA, _ONCE, _ALWAYS)
    axes.imshow(
        _coarser(close_up.cells), cmap=ListedColormap(colours), vmin=0, vmax=WRITTEN, aspect="auto",
        extent=(columns.start, columns.stop, rows.stop, rows.start), interpolation="none",
    )  # fmt: skip
    high, wide = close_up.window
    outline = Rectangle(
        (wide.start, high.start), wide.stop - wide.start, high.stop - high.start, fill=False,
        linestyle="--", edgecolor=_figure.BLUE, label="window of edits",
    )  # fmt: skip
    axes.add_patch(outline)
    written = Patch(facecolor=_ALWAYS, label="written")
    dirty = Patch(facecolor=_ONCE, label=consequence)
    axes.legend(
        handles=[written, dirty, outline], loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3,
        columnspacing=1.2, handlelength=1.4, borderaxespad=0,
    )  # fmt: skip
    axes.set_title(f"Close-up of round {close_up.number}")
    axes.set_xlabel("column of the map, one byte each", labelpad=2)
    axes.set_ylabel("row of the map", labelpad=2)
    axes.locator_params(axis="x", nbins=6, integer=True)


def _coarser(cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The maximum of every eight columns: a picture has fewer pixels than columns."""
    width = cells.shape[1] // 8 * 8
    coarse: NDArray[np.uint8] = cells[:, :width].reshape(len(cells), -1, 8).max(axis=2)
    return coarse


def _bytes(axes: Any, outcome: Outcome) -> None:
    first = outcome.rounds[0]
    moved, whole = outcome.later_bytes
    firsts = first.bytes_moved, 2 * outcome.nbytes
    _pairs(
        axes, outcome, [_figure.mib(each) for each in (firsts[0], moved)],
        [_figure.mib(each) for each in (firsts[1], whole)], _figure.mib_text,
    )  # fmt: skip
    axes.set_xlabel("copied in both directions, MiB")
    axes.set_title(_comparison(outcome, whole, moved))


def _times(axes: Any, outcome: Outcome) -> None:
    first = outcome.rounds[0]
    later, whole_later = outcome.later_seconds
    ours = first.sync_seconds, later
    whole = first.whole_seconds, whole_later
    _pairs(axes, outcome, ours, whole, time_text)
    _figure.label_seconds(axes, "time to update the device")
    axes.set_title(_comparison(outcome, whole[1], ours[1]))


def _later(outcome: Outcome) -> str:
    last = outcome.options.rounds
    return "round 1" if last == 1 else f"rounds 1 to {last}"


def _comparison(outcome: Outcome, whole: float, ours: float) -> str:
    later = _later(outcome)
    ratio = _figure.ratio_text(whole, ours, "less", "more") or "nothing copied"
    return f"{later[0].upper()}{later[1:]}: {ratio}"


def _pairs(axes: Any, outcome: Outcome, ours: Any, whole: Any, text: Any) -> None:
    """Draws the first round, which copies the whole map, apart from the sum of the others."""
    bars = (
        ("unified buffer", ours, _figure.OURS),
        ("whole copies", whole, _figure.BASELINE),
    )
    groups = ("round 0", _later(outcome).replace(" to", "\nto"))
    _figure.draw_bars(axes, groups, bars, text)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2, columnspacing=1.2,
        handlelength=1.4, borderaxespad=0,
    )  # fmt: skip
