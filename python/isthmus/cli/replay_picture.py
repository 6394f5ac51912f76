# SPDX-License-Identifier: Apache-2.0
"""The picture of ``isthmus replay --plot``: memory requested and held after each event."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isthmus import _figure

from .output import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from isthmus import Device
    from isthmus.trace import Replay

REQUESTED = "requested"  # the name of that peak
_MAX_POINTS = 4000  # of a line, more than the picture has pixels
_HEIGHT = 7.0  # inches
_UP = 0.2  # inches, because the panel has no title of its own
_COLOURS = (_figure.BLUE, _figure.ORANGE, _figure.GREEN, _figure.VERMILION, _figure.PURPLE)
_DASHES = ("-", "-", "--", "-")
_WIDEST, _THINNEST = 5.5, 1.1  # points, of several lines
_SHADE = "#dbe4ea"
# Points from a peak to its label: beside it, above, below.
_OFFSETS = ((-12, 0), (12, 0), (-4, 8), (4, 8), (-4, -8), (4, -8))
_LABEL_HEIGHT = 0.042  # of the largest peak


class Peak(NamedTuple):
    """The maximum of a line."""

    name: str
    event: int
    nbytes: int


def draw(replays: dict[str, Replay], device: Device, kind: str, file: Path) -> None:
    """Writes the picture, in the format of the extension."""
    with _figure.style():
        _figure.save(compose(replays, device, kind), file)


def compose(replays: dict[str, Replay], device: Device, kind: str) -> Any:
    """The figure. Precondition: the style is entered."""
    names = list(replays)
    trace = replays[names[0]].trace
    figure = _figure.new_figure(_HEIGHT)
    height = _HEIGHT - _figure.figure_height(0)
    axes_height = height + _UP - 0.1 - 0.2 * (len(replays) // 2 + 1)  # a line of the legend: 0.2
    axes = _figure.add_panel(figure, 0, -_UP, _figure.PANELS_WIDTH, axes_height)
    peaks = [_peak(REQUESTED, trace.requested)]
    peaks += [_peak(name, each.held) for name, each in replays.items()]
    size, unit = _figure.unit_of(max(peak.nbytes for peak in peaks))
    axes.fill_between(
        *_downsampled(trace.requested, size), color=_SHADE, linewidth=0,
        label=f"requested: peak {bytes_text(trace.peak_requested_bytes)}",
    )  # fmt: skip
    _lines(axes, replays, size)
    axes.set_xlim(0, len(trace.events))
    axes.set_ylim(0, 1.12 * max(peak.nbytes for peak in peaks) / size)
    _mark(axes, peaks, size)
    axes.set_xlabel("event: an allocation or a free")
    axes.set_ylabel(f"memory, {unit}")
    axes.xaxis.set_major_formatter(lambda event, _: f"{event:,.0f}")
    axes.grid(axis="y")
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.55 / axes_height), ncols=2,
        borderaxespad=0, handlelength=2.6,
    )  # fmt: skip
    _figure.add_heading(
        figure,
        f"{trace.name}: memory requested by the program, and held by "
        + (f"the resource {names[0]}" if len(names) == 1 else f"{len(names)} resources"),
        f"Replay of {len(trace.events):,} recorded allocations and frees. Held memory above the "
        "shaded area is what a resource keeps beyond the request. Peaks are marked.",
    )
    _figure.add_footer(figure, f"{device.filter}, {device.name.strip()}", f"memory of kind {kind}")
    return figure


def _lines(axes: Any, replays: dict[str, Replay], size: int) -> None:
    """Draws a line for each resource.

    Each is thinner than the one below it, so that lines that lie on one another remain visible.
    """
    looks = zip(itertools.cycle(_COLOURS), itertools.cycle(_DASHES), strict=False)
    step = (_WIDEST / _THINNEST) ** (1 / max(len(replays) - 1, 3))
    for index, ((name, each), (colour, dashes)) in enumerate(
        zip(replays.items(), looks, strict=False)
    ):
        width = _THINNEST * step ** (len(replays) - 1 - index)
        peak = bytes_text(each.peak_held_bytes)
        label = f"held by {name}: peak {peak}, {each.ratio:.3f} x requested"
        events, held = _downsampled(each.held, size)
        axes.plot(events, held, dashes, color=colour, linewidth=width, label=label)


def _peak(name: str, nbytes: np.ndarray[Any, Any]) -> Peak:
    event = int(np.argmax(nbytes))
    return Peak(name, event, int(nbytes[event]))


def clusters_of(peaks: Iterable[Peak], distance: float) -> list[list[Peak]]:
    """Groups peaks of similar height, so that their labels do not overlap: lowest first.

    Each is less than ``distance`` bytes above the lowest of its group.
    """
    groups: list[list[Peak]] = []
    for peak in sorted(peaks, key=lambda each: each.nbytes):
        if groups and peak.nbytes - groups[-1][0].nbytes < distance:
            groups[-1].append(peak)
        else:
            groups.append([peak])
    return groups


def _mark(axes: Any, peaks: Sequence[Peak], size: int) -> None:
    """Marks the peak of each line; peaks of similar height share a label.

    The limits of the axes must be set before.
    """
    lines = np.concatenate([axes.transData.transform(line.get_xydata()) for line in axes.lines])
    for peak in peaks:
        axes.plot(
            peak.event, peak.nbytes / size, "o", color=_figure.TEXT, markersize=5, zorder=4,
            markerfacecolor="white", clip_on=False,
        )  # fmt: skip
    placed: list[Any] = []
    for group in clusters_of(peaks, _LABEL_HEIGHT * max(peak.nbytes for peak in peaks)):
        sizes = dict.fromkeys(bytes_text(each.nbytes) for each in (group[0], group[-1]))
        text = f"{', '.join(peak.name for peak in group)}: {' to '.join(sizes)}"
        position = group[0].event, group[0].nbytes / size
        placed.append(_label(axes, text, position, lines, placed))


def _label(
    axes: Any, text: str, position: tuple[float, float], lines: Any, placed: Sequence[Any]
) -> Any:
    """Adds a label near the position, where it covers the least of lines and other labels.

    Returns its extent.
    """
    label = axes.annotate(
        text, position, xytext=_OFFSETS[0], textcoords="offset points", zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )  # fmt: skip

    def place(candidate: tuple[int, int]) -> Any:
        x, y = candidate
        label.set(position=(x, y), ha="left" if x > 0 else "right")
        label.set_va({-1: "top", 0: "center", 1: "bottom"}[int(np.sign(y))])
        return label.get_window_extent().padded(3)

    def covered(candidate: tuple[int, int]) -> int:
        box = place(candidate)
        if box.x0 < axes.bbox.x0 or box.x1 > axes.bbox.x1 or any(map(box.overlaps, placed)):
            return len(lines) + 1
        inside = ((lines > box.min) & (lines < box.max)).all(axis=1)
        return int(np.count_nonzero(inside))

    return place(min(_OFFSETS, key=covered))


def _downsampled(nbytes: np.ndarray[Any, Any], size: int) -> tuple[Any, Any]:
    """The event numbers and sizes to draw: the maximum of each interval."""
    starts = np.arange(0, len(nbytes), -(-len(nbytes) // _MAX_POINTS))
    return starts, np.maximum.reduceat(nbytes, starts) / size
