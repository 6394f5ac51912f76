# SPDX-License-Identifier: Apache-2.0
"""The style that all pictures of the command share: fonts, colours, units, heading and footer.

Every picture has a heading that states its message, and a footer with the device, the version and
the date. The colours are a palette of Okabe and Ito that readers with colour blindness can
distinguish; lines and bars also differ in width, dashes or hatching. Sizes are in MiB or GiB.

Needs matplotlib, but no display. ``style`` changes matplotlib's settings while it is entered, so
only one thread may draw at a time.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import isthmus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

TEXT, FAINT, FRAME = "#222222", "#666666", "#cccccc"
BLUE, SKY, ORANGE = "#0072b2", "#56b4e9", "#e69f00"
GREEN, VERMILION, PURPLE = "#009e73", "#d55e00", "#cc79a7"
OURS, BASELINE = BLUE, "#b3b3b3"  # Isthmus, and what it is compared with

WIDTH = 12.0  # inches, of every picture
_DOTS_PER_INCH = 160
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.75, 0.25, 1.0, 0.85  # inches around the panels
PANELS_WIDTH = WIDTH - _LEFT - _RIGHT
_STYLE = {
    "font.family": ["DejaVu Sans"],  # it comes with matplotlib
    "font.size": 9.5,
    "text.color": TEXT,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": TEXT,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e6e6e6",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": TEXT,
    "ytick.labelcolor": TEXT,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "legend.borderaxespad": 0.2,
    "hatch.linewidth": 0.8,
}
_MIB, _GIB = 1 << 20, 1 << 30


@contextmanager
def style() -> Iterator[None]:
    """The settings of matplotlib under which a picture is drawn and saved.

    ImportError without matplotlib.
    """
    check_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def check_matplotlib() -> None:
    """ImportError without matplotlib, with the remedy."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise ImportError(
            "pictures need matplotlib: pip install matplotlib, or 'isthmus[demo]'"
        ) from None


def new_figure(height: float) -> Any:
    """An empty figure of ``WIDTH`` by ``height`` inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), dpi=_DOTS_PER_INCH, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def panels_of(figure: Any) -> dict[str, float]:
    """The part of the figure between heading and footer, as arguments of ``add_gridspec``."""
    height = figure.get_figheight()
    return {
        "left": _LEFT / WIDTH,
        "right": 1 - _RIGHT / WIDTH,
        "top": 1 - _TOP / height,
        "bottom": _BOTTOM / height,
    }


def figure_height(panels: float) -> float:
    """The height of a figure whose panels need that many inches."""
    return panels + _TOP + _BOTTOM


def add_panel(figure: Any, left: float, top: float, width: float, height: float) -> Any:
    """Axes at a position in inches, from the upper left corner of the part for panels."""
    whole = figure.get_figheight()
    bottom = whole - _TOP - top - height
    return figure.add_axes(((_LEFT + left) / WIDTH, bottom / whole, width / WIDTH, height / whole))


def add_heading(figure: Any, title: str, subtitle: str) -> None:
    """Adds the message of the picture, and below it a line of explanation."""
    height = figure.get_figheight()
    for text, offset, size, weight, colour in (
        (title, 0.3, 15, "bold", TEXT),
        (subtitle, 0.57, 10, "normal", FAINT),
    ):
        line = figure.text(
            _LEFT / WIDTH, 1 - offset / height, text, va="center", fontsize=size,
            fontweight=weight, color=colour,
        )  # fmt: skip
        _shrink(line, PANELS_WIDTH)


def add_footer(figure: Any, device: str, worker: str = "") -> None:
    """Adds the device, what runs on it, the version and the date."""
    position = 0.2 / figure.get_figheight()
    right = figure.text(
        1 - _RIGHT / WIDTH, position, f"Isthmus {isthmus.__version__}, {time.strftime('%Y-%m-%d')}",
        ha="right", va="center", fontsize=8.5, color=FAINT,
    )  # fmt: skip
    source = "; ".join(filter(None, (f"Device: {device}", worker)))
    left = figure.text(
        _LEFT / WIDTH, position, source, va="center", fontsize=8.5, color=FAINT
    )  # fmt: skip
    _shrink(left, PANELS_WIDTH - _inches(right) - 0.3)


def _inches(text: Any) -> float:
    return float(text.get_window_extent().width) / _DOTS_PER_INCH


def _shrink(text: Any, inches: float) -> None:
    """Reduces the font of a text that is wider than that."""
    width = _inches(text)
    if width > inches:
        text.set_fontsize(text.get_fontsize() * inches / width)


def frame_only(axes: Any) -> None:
    """Prepares axes for an image: a thin frame, without ticks."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(visible=True, color=FRAME)


def draw_bars(
    axes: Any,
    groups: Sequence[str],
    bars: Sequence[tuple[str, Sequence[float], Any]],
    text: Callable[[float], str],
) -> None:
    """Draws horizontal bars from 0 on a linear axis, with the value beside each.

    ``bars`` holds a name for the legend, a value for each of the ``groups``, and a colour, or one
    for each group.
    """
    thickness = 0.8 / len(bars)
    for index, (name, values, colour) in enumerate(bars):
        positions = [
            group + (index - (len(bars) - 1) / 2) * thickness for group in range(len(groups))
        ]
        drawn = axes.barh(
            positions, values, thickness * 0.86, color=colour, label=name or None, linewidth=0
        )
        axes.bar_label(drawn, [text(value) for value in values], padding=4)
    largest = max(max(values) for _, values, _ in bars)
    axes.set_xlim(0, 1.28 * largest or 1.0)  # leaves space for the labels
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_yticks(range(len(groups)), groups)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")


def mib(nbytes: float) -> float:
    """Bytes as a number of MiB."""
    return nbytes / _MIB


def mib_text(mebibytes: float) -> str:
    """``6328.9`` as ``6,329 MiB``, ``0.3359`` as ``0.336 MiB``."""
    digits = max(0, 2 - math.floor(math.log10(mebibytes))) if mebibytes > 0 else 0
    return f"{mebibytes:,.{digits}f} MiB"


def unit_of(nbytes: float) -> tuple[int, str]:
    """The unit for an axis up to ``nbytes``: its bytes and its name."""
    return (_GIB, "GiB") if nbytes >= _GIB else (_MIB, "MiB")


def label_seconds(axes: Any, text: str) -> None:
    """Labels a horizontal axis of seconds, in s, ms or us, whichever its length suggests."""
    length = axes.get_xlim()[1] / 2
    unit, name = next(
        (each for each in ((1.0, "s"), (1e-3, "ms")) if length >= each[0]), (1e-6, "us")
    )
    axes.xaxis.set_major_formatter(lambda seconds, _: f"{seconds / unit:,.6g}")
    axes.set_xlabel(f"{text}, {name}")


def ratio_text(baseline: float, ours: float, less: str, more: str) -> str:
    """How ``ours`` compares with the baseline: ``316 times less``, ``1.2 times more``.

    ``about equal`` if they differ by less than 5 %; nothing if one of them is 0.
    """
    if ours <= 0 or baseline <= 0:
        return ""
    ratio, word = (baseline / ours, less) if baseline >= ours else (ours / baseline, more)
    if ratio < 1.05:
        return "about equal"
    digits = 0 if ratio >= 20 else 1
    number = f"{ratio:,.{digits}f}".removesuffix(".0")
    return f"{number} times {word}"


def save(figure: Any, path: str | PathLike[str]) -> None:
    """Writes the figure, in the format of the extension."""
    figure.savefig(path)
