# SPDX-License-Identifier: Apache-2.0
"""The figure that the demos' pictures are drawn on."""

from __future__ import annotations

from typing import Any

TEXT = "#2b2b2b"
FAINT = "#777777"


def new_figure() -> Any:
    """An empty figure of 1920 x 1152 pixels; needs no display. ImportError without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("the demo needs matplotlib: pip install 'isthmus[demo]'") from None
    figure = Figure(figsize=(16, 9.6), dpi=120, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def without_ticks(axes: Any) -> None:
    """Prepares axes for an image: a thin frame and no tick labels."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("#cccccc")
