# SPDX-License-Identifier: Apache-2.0
"""The pictures of the demos and of replay: legend, axes, footer, and texts that can be read."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import noise

import isthmus
from isthmus import _figure
from isthmus.cli import replay_picture
from isthmus.cli.replay_picture import Peak, clusters_of
from isthmus.demo import picture as photo_picture
from isthmus.demo.arrays import outcome as arrays_outcome
from isthmus.demo.arrays import picture as arrays_picture
from isthmus.demo.run import Check, Outcome, Step
from isthmus.demo.unified import close_up
from isthmus.demo.unified import outcome as unified_outcome
from isthmus.demo.unified import picture as unified_picture
from isthmus.trace import ALLOCATE, FREE, Replay
from isthmus.trace._trace import from_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest.importorskip("matplotlib")

LONG_NAME = "pthread-skylake-avx512-Intel(R) Xeon(R) Platinum 8580 Processor with a long name"
WORKER = "OpenCL C, run by pyopencl on Isthmus' context and queue"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with _figure.style():
        yield


class DrawnTexts:
    """The texts of a figure that matplotlib draws, and their extents in pixels."""

    def __init__(self, figure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        from matplotlib.text import Text

        drawn: list[Any] = []
        renderer = figure.canvas.get_renderer()
        for name in ("draw_path", "draw_markers", "draw_path_collection", "draw_image"):
            monkeypatch.setattr(renderer, name, lambda *args, **options: None)  # saves time
        original = Text.draw

        def draw(text: Any, *args: Any) -> None:
            if text.get_visible() and text.get_text().strip():
                drawn.append(text)
            original(text, *args)

        with monkeypatch.context() as patched:
            patched.setattr(Text, "draw", draw)
            figure.draw(renderer)
        self.all = [(text.get_text(), text.get_window_extent(renderer)) for text in drawn]
        self.size = figure.bbox

    def outside(self) -> list[str]:
        return [
            text for text, box in self.all
            if box.x0 < 0 or box.y0 < 0 or box.x1 > self.size.x1 or box.y1 > self.size.y1
        ]  # fmt: skip

    def overlapping(self) -> list[tuple[str, str]]:
        boxes = [(text, box.padded(-1)) for text, box in self.all]
        return [
            (one, other)
            for (one, first), (other, second) in itertools.combinations(boxes, 2)
            if first.overlaps(second)
        ]

    def joined(self) -> str:
        return "\n".join(text for text, _ in self.all)


def check(figure: Any, monkeypatch: pytest.MonkeyPatch, device: str) -> str:
    """What holds for each picture; returns its texts."""
    from matplotlib.legend import Legend

    texts = DrawnTexts(figure, monkeypatch)
    assert texts.outside() == []
    assert texts.overlapping() == []
    assert figure.findobj(Legend)
    for part in (device, time.strftime("%Y-%m-%d"), isthmus.__version__):
        assert part in texts.joined()
    assert all(axes.get_xscale() == axes.get_yscale() == "linear" for axes in figure.axes)
    return texts.joined()


def photo_outcome(seconds: float, first: float, numpy: float, name: str) -> Outcome:
    outcome = Outcome("", (64, 48), "opencl:cpu:1", name, WORKER, [], numpy)
    for kind in ("device", "shared", "host"):
        for what in ("copy in", "kernel", "copy out"):
            outcome.steps.append(Step(kind, what, "", "", 128 * MIB, first, seconds))
        outcome.checks.append(Check(kind, 128 * MIB, 0))
    return outcome


@pytest.mark.parametrize(
    ("seconds", "first", "numpy", "name"),
    [(0.02, 0.06, 1.7, LONG_NAME), (1.7, 1.6, 1.7, "a"), (2e-6, 1.0, 3e-6, "a")],
)
def test_photograph(
    seconds: float, first: float, numpy: float, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = noise(48 * 64 * 3).reshape(48, 64, 3)
    outcome = photo_outcome(seconds, first, numpy, name)
    figure = photo_picture.compose(outcome, pixels, pixels)
    texts = check(figure, monkeypatch, f"opencl:cpu:1, {name}")
    for part in ("128 MiB", "copy in", "more on first use", "NumPy,"):
        assert part in texts
    units = [axes.get_xlabel() for axes in figure.axes[2:]]
    assert set(units) <= {"time, s", "time, ms", "time, us"}
    if first > seconds:
        assert any(bar.get_hatch() and bar.get_width() > 0 for bar in figure.axes[2].patches)


def unified_parts(
    rows: int, rounds: int, granule: int, moved: int = MIB
) -> tuple[Any, unified_picture.Overview, close_up.CloseUp]:
    width, nbytes = 43200, rows * 43200
    options = unified_outcome.Options(rows=rows, rounds=rounds)
    outcome = unified_outcome.Outcome(
        "", (rows, width), nbytes, "opencl:cpu:1", LONG_NAME, WORKER, options, []
    )
    for number in range(rounds + 1):
        to_device = moved if number else nbytes
        outcome.rounds.append(
            unified_outcome.Round(
                number, "HOST_DIRTY", 1, to_device, to_device, 0, 0.002 if number else 0.3, 0.3
            )
        )
    dirty = np.zeros((40, 108), np.int64)
    dirty[20, 30:40] = np.linspace(1, rounds, 10).astype(np.int64)
    middle = 45 if rows < 10800 else 0
    latitudes = middle + np.linspace(rows / 240, -rows / 240, rows)
    overview = unified_picture.Overview(np.ones((40, 108)), dirty, latitudes)
    return outcome, overview, close_up_of(rows, rounds, granule)


def close_up_of(rows: int, number: int, granule: int) -> close_up.CloseUp:
    width, row = 43200, rows // 2
    cells = np.zeros((rows, width), np.uint8)
    window = slice(row - 24, row + 24), slice(15000, 15512)
    region = close_up.region_around(window, cells.shape)
    before = cells[region].copy()
    cells[row, 15200] = 1
    start = (row * width + 15200) // granule * granule
    return close_up.close_up(number, window, region, before, cells, [(start, start + granule)])


@pytest.mark.parametrize(
    ("rows", "rounds", "granule"), [(6400, 12, 4096), (640, 3, 2 * MIB), (21600, 1000, 4096)]
)
def test_unified(rows: int, rounds: int, granule: int, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = unified_picture.compose(*unified_parts(rows, rounds, granule))
    texts = check(figure, monkeypatch, f"opencl:cpu:1, {LONG_NAME}")
    for part in (
        f"dirty in how many of {rounds} rounds", "MiB", "time to update the device, ", "land",
        "copied in both directions, MiB", "times less", "round 0", "° W",
    ):  # fmt: skip
        assert part in texts
    area = figure.axes[0]
    pixels = area.bbox.width / 360, area.bbox.height / (rows / 120)
    middle = 45 if rows < 10800 else 0
    assert pixels[0] / pixels[1] == pytest.approx(np.cos(np.radians(middle)), rel=0.05)


def test_unified_with_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, overview, _ = unified_parts(96, 1, 4096, moved=0)
    outcome.rounds[0].bytes_to_device = 0
    cells = np.zeros((96, 43200), np.uint8)
    window = slice(0, 48), slice(0, 512)
    region = close_up.region_around(window, cells.shape)
    seen = close_up.close_up(1, window, region, cells[region], cells, [])
    figure = unified_picture.compose(outcome, overview, seen)
    texts = check(figure, monkeypatch, "opencl:cpu:1")
    assert "nothing is copied" in texts


def test_a_close_up_has_written_and_dirty_cells() -> None:
    seen = close_up_of(640, 3, 4096)
    assert seen.range_bytes == 4096
    assert seen.cells.shape == (64, 6144)
    assert np.count_nonzero(seen.cells == close_up.WRITTEN) == 1
    assert np.count_nonzero(seen.cells) == 4096  # the region is wide enough to show all of them
    rows, columns = seen.region
    assert rows.start <= seen.window[0].start < seen.window[0].stop <= rows.stop
    assert columns.start <= seen.window[1].start < seen.window[1].stop <= columns.stop


@pytest.mark.parametrize(
    ("seconds", "batches"), [((90e-6, 170e-6), 1000), ((0.2, 0.1), 5), ((1e-6, 0.5), 1)]
)
def test_arrays(
    seconds: tuple[float, float], batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = arrays_outcome.Options(batches=batches, beside="held.csv")
    outcome = arrays_outcome.Outcome(
        [], 0, "opencl:cpu:1", LONG_NAME, WORKER, options, [], nbytes=300_000 * batches
    )
    outcome.memory = arrays_outcome.Memory(
        [32 * MIB] * batches, [300_000] * batches, [230 * MIB] * batches, [1] * batches
    )
    outcome.beside = [33 * MIB] * batches
    outcome.comparison = arrays_outcome.Comparison(batches, 300_000, *seconds, 1, batches)
    count = 192 if batches > 1 else arrays_picture.ROWS
    patches = noise(count * 300).reshape(count, 3, 10, 10)
    shown = arrays_picture.Shown(patches, np.linspace(0, 40_000, count, dtype=np.float32))
    figure = arrays_picture.compose(outcome, shown)
    texts = check(figure, monkeypatch, f"opencl:cpu:1, {LONG_NAME}")
    for part in (
        "of that, in use: 293 KiB", "reserved by held.csv: 33 MiB", "memory, MiB", "us",
        "allocations by the driver", "The pool reserved 32 MiB once",
    ):  # fmt: skip
        assert part in texts
    assert ("faster" if seconds[0] < seconds[1] else "slower") in texts


def replays(names: tuple[str, ...], nbytes: int, held: Callable[[int], float]) -> dict[str, Replay]:
    events = [(i, ALLOCATE, i, nbytes, 0) for i in range(50)]
    events += [(50 + i, FREE, i, 0, 0) for i in range(50)]
    trace = from_events("a_trace", events)
    made = {}
    for number, name in enumerate(names):
        level = np.maximum.accumulate(trace.requested * held(number)).astype(np.uint64)
        made[name] = Replay(trace, 1.0, level, np.zeros(100, np.uint64), 1, 1)
    return made


@pytest.mark.parametrize("held", [lambda number: 1, lambda number: 1 + 0.02 * number])
@pytest.mark.parametrize("names", [("pool",), ("pool", "unchecked", "unmoved", "provider", "m:f")])
@pytest.mark.parametrize(("nbytes", "unit"), [(MIB, "MiB"), (1 << 28, "GiB")])
def test_replay(
    names: tuple[str, ...], nbytes: int, unit: str, held: Callable[[int], float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    device = isthmus.Device("host")
    figure = replay_picture.compose(replays(names, nbytes, held), device, "device")
    texts = check(figure, monkeypatch, f"host:cpu:0, {device.name.strip()}")
    assert f"memory, {unit}" in texts
    for name in names:
        assert f"held by {name}: peak" in texts
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 1]
    looks = {(line.get_color(), line.get_linewidth(), line.get_linestyle()) for line in lines}
    assert len(looks) == len(names)
    assert sum(line.get_marker() == "o" for line in figure.axes[0].lines) == len(names) + 1


def test_peaks_of_similar_height_share_a_label() -> None:
    peaks = [Peak("a", 1, 100), Peak("b", 2, 90), Peak("c", 3, 104), Peak("d", 4, 89)]
    names = [[each.name for each in group] for group in clusters_of(peaks, 10)]
    assert names == [["d", "b"], ["a", "c"]]


def test_a_label_covers_neither_line_nor_label() -> None:
    from matplotlib.text import Annotation

    names = ("pool", "unchecked")
    figure = replay_picture.compose(
        replays(names, MIB, lambda number: 1 + 0.1 * number), isthmus.Device("host"), "device"
    )
    axes = figure.axes[0]
    boxes = [label.get_window_extent() for label in axes.findobj(Annotation)]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])
    points = np.concatenate([axes.transData.transform(line.get_xydata()) for line in axes.lines])
    for box in boxes:
        assert not ((points > box.min) & (points < box.max)).all(axis=1).any()


@pytest.mark.parametrize(
    ("mebibytes", "text"),
    [(0, "0 MiB"), (0.3359, "0.336 MiB"), (19.93, "19.9 MiB"), (6328.9, "6,329 MiB")],
)
def test_sizes_have_three_digits(mebibytes: float, text: str) -> None:
    assert _figure.mib_text(mebibytes) == text


@pytest.mark.parametrize(
    ("baseline", "ours", "text"),
    [(640, 2, "320 times less"), (3, 2, "1.5 times less"), (2, 3, "1.5 times more"), (1, 0, "")],
)
def test_ratio(baseline: float, ours: float, text: str) -> None:
    assert _figure.ratio_text(baseline, ours, "less", "more") == text
