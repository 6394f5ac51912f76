# SPDX-License-Identifier: Apache-2.0
"""The demo of the unified buffer at a small size: every device, every count, every byte."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import has_gpu, noise

import isthmus
from isthmus.cli import main
from isthmus.demo.unified import edits, kernels, mask, truth, workers
from isthmus.demo.unified.dirty_map import DirtyMap
from isthmus.demo.unified.outcome import Options, Outcome
from isthmus.demo.unified.run import Rounds, run

OPTIONS = Options(rows=96, rounds=3)


def quiet(what: str, done: float) -> None:
    """A progress callback that prints nothing."""


def coast(rows: int = 96, width: int = 1024, seed: int = 3) -> np.ndarray:
    """Land and sea in stripes with an irregular shore."""
    ragged = np.random.default_rng(seed).integers(0, 40, (rows, 1))
    return ((np.arange(width) + ragged) % 128 < 64).astype(np.uint8)


@pytest.fixture(scope="module")
def real() -> mask.Mask:
    return mask.load(mask.find(), OPTIONS.rows)


def test_every_device_counts_as_numpy_does(
    device: isthmus.Device, tmp_path: Path, leak_check: None
) -> None:
    wanted = device.filter if device.backend != "sim" else "sim"
    outcome = run(replace(OPTIONS, device=wanted), str(tmp_path), quiet)
    assert outcome.exact
    assert outcome.nbytes == 96 * 43200
    assert [each.number for each in outcome.rounds] == [0, 1, 2, 3]
    assert Path(outcome.picture).read_bytes().startswith(b"\x89PNG")
    for each in outcome.rounds:
        assert (each.state, each.stamped_state) == ("HOST_DIRTY", "DEVICE_DIRTY")
        assert each.dirty_bytes <= each.bytes_to_device <= outcome.nbytes
        assert 32 * 43200 <= each.bytes_to_host <= outcome.nbytes
        assert 1e5 < each.land_km2 < 1e7
        assert min(each.sync_seconds, each.whole_seconds, each.count_seconds) > 0
    assert outcome.rounds[0].dirty_bytes == outcome.nbytes
    assert outcome.rounds[0].bytes_to_device == outcome.nbytes
    assert 0 < max(map(max, outcome.dirty)) <= 1


@pytest.mark.parametrize("granularity", ["auto", "page"])
def test_pages_are_all_that_moves(granularity: str, tmp_path: Path) -> None:
    """Of 40 MiB, 2 MiB chunks or single pages are copied, and never the whole buffer again."""
    options = Options(rows=1000, rounds=3, device="host", granularity=granularity)
    outcome = run(options, str(tmp_path), quiet)
    assert outcome.exact
    assert outcome.whole_bytes == 2 * 4 * outcome.nbytes
    first = outcome.rounds[0].bytes_moved
    assert outcome.later_bytes == (outcome.bytes_moved - first, 2 * 3 * outcome.nbytes)
    for each in outcome.rounds[1:]:
        assert 0 < each.dirty_bytes < outcome.nbytes
        assert each.bytes_to_device < outcome.nbytes
        assert each.bytes_to_host < outcome.nbytes // 4


def test_one_copy_moves_nothing(tmp_path: Path) -> None:
    options = replace(OPTIONS, device="host", one_copy=True)
    outcome = run(options, str(tmp_path), quiet)
    assert outcome.exact
    assert outcome.bytes_moved == 0


def test_the_command_prints_the_rounds_and_the_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--device", "host", "--output", str(tmp_path)]
    assert main(["demo", "unified", "--rows", "64", "--rounds", "2", *arguments]) == 0
    told = capsys.readouterr().out
    for word in (
        "HOST_DIRTY", "the dirty map of round 2", "+", "with whole copies", "every count, band",
    ):  # fmt: skip
        assert word in told
    assert "NO" not in told.split()
    assert (tmp_path / "isthmus_demo_unified.png").exists()


def test_json_has_the_rounds_and_the_totals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before_the_name = ["demo", "--json", "--device", "host", "--output", str(tmp_path)]
    assert main([*before_the_name, "unified", "--rows", "64", "--rounds", "1", "--seed", "5"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exact"]
    assert told["options"]["seed"] == 5
    assert told["whole_bytes"] == 2 * 2 * 64 * 43200
    moved = sum(each["bytes_to_device"] + each["bytes_to_host"] for each in told["rounds"])
    assert told["bytes_moved"] == moved > 0
    assert (tmp_path / "isthmus_demo_unified.png").exists()


@pytest.mark.parametrize("flaw", ["count", "stamp"])
def test_a_wrong_result_is_reported(
    flaw: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if flaw == "count":
        true = kernels.count_rows

        def count_rows(cells: np.ndarray, counts: np.ndarray) -> None:
            true(cells, counts)
            counts[7, 1] += 1

        monkeypatch.setattr(kernels, "count_rows", count_rows)
    else:
        monkeypatch.setattr(workers.FunctionWorker, "stamp", lambda self, cells, number: (0, 0))
    arguments = ["--rows", "64", "--rounds", "1", "--device", "host", "--output", str(tmp_path)]
    assert main(["demo", "unified", *arguments]) == 1
    told = capsys.readouterr()
    assert "DIFFERS from NumPy's" in told.out
    assert "NO" in told.out.split()
    assert "differs from NumPy's" in told.err


def test_a_lost_write_is_detected(real: mask.Mask, leak_check: None) -> None:
    """If synchronization lost a write, the counts would show it."""
    queue = isthmus.Queue(isthmus.Device("host"))
    worker = workers.FunctionWorker(queue)
    outcome = Outcome("", WISH_SHAPE, real.cells.nbytes, "", "", "", OPTIONS, [])
    rounds = Rounds(outcome, mask.Mask("", real.cells.copy(), real.latitudes), worker)
    rounds.run_round(0)
    rounds.truth.edit(edits.Coast(rounds.truth.cells, 9).edit(0))  # without a change in the buffer
    rounds.run_round(1)
    rounds.close()
    assert outcome.rounds[0].wrong_rows == 0
    assert outcome.rounds[1].wrong_rows > 0
    assert not outcome.exact


WISH_SHAPE = (OPTIONS.rows, mask.COLUMNS)


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_on_a_gpu_by(library: str, real: mask.Mask, leak_check: None) -> None:
    """Without the picture, whose package may be missing on a machine with a GPU."""
    if not has_gpu():
        pytest.skip("no CUDA device")
    pytest.importorskip(library)
    made = {"cupy": workers.CuPyWorker, "torch": workers.TorchWorker}[library]
    device = isthmus.Device("cuda:0")
    outcome = Outcome("", WISH_SHAPE, real.cells.nbytes, "", "", "", OPTIONS, [])
    source = mask.Mask("", real.cells.copy(), real.latitudes)
    rounds = Rounds(outcome, source, made(isthmus.Queue(device)))
    for number in range(4):
        rounds.run_round(number)
    rounds.finish()
    rounds.close()
    assert outcome.exact


def test_the_map_is_the_earths(real: mask.Mask) -> None:
    assert real.cells.shape == WISH_SHAPE
    assert set(np.unique(real.cells).tolist()) == {0, 1}
    assert abs(float(real.latitudes.mean()) - 45) < 0.1

    def at(east: float) -> int:
        return int(real.cells[48, int((east + 180) * 120)])

    assert [at(7.7), at(85.0), at(-110.0)] == [1, 1, 1]  # Turin, Dzungaria, Yellowstone
    assert [at(-40.0), at(-150.0), at(175.0)] == [0, 0, 0]  # the Atlantic and the Pacific


def test_all_land_covers_the_earth() -> None:
    latitudes = 90 - (np.arange(mask.ROWS) + 0.5) / 120
    everywhere = mask.Mask("", np.zeros((1, 1), np.uint8), latitudes)
    land = np.full(mask.ROWS, mask.COLUMNS, np.uint32)
    assert everywhere.area(land) == pytest.approx(4 * np.pi * 6371.0**2, rel=1e-6)


def test_no_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install"):
        mask.find()


def test_another_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    np.savez(other, mask=np.zeros((3, 4), np.bool_), lat=np.zeros(3))
    with pytest.raises(ValueError, match="not the expected map"):
        mask.load(str(other), 2)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    short = tmp_path / "short.npz"
    header = {"shape": (mask.ROWS, mask.COLUMNS), "fortran_order": False, "descr": "|b1"}
    with zipfile.ZipFile(short, "w") as archive:
        with archive.open("lat.npy", "w") as stream:
            np.lib.format.write_array(stream, np.zeros(mask.ROWS))
        with archive.open("mask.npy", "w") as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            stream.write(bytes(1000))
    with pytest.raises(ValueError, match="truncated"):
        mask.load(str(short), mask.ROWS)


def test_an_edit_writes_where_it_says_and_only_land_or_sea() -> None:
    cells = coast()
    walk = edits.Coast(cells, seed=1)
    for number in range(20):
        before = cells.copy()
        edit = walk.edit(number)
        edit.apply(cells)
        changed = np.flatnonzero((cells != before).any(axis=1))
        assert changed.size > 0
        assert np.isin(changed, edit.touched()).all()
        assert cells.max() == 1


def test_the_same_seed_edits_the_same() -> None:
    made = []
    for seed in (4, 4, 5):
        cells = coast()
        walk = edits.Coast(cells, seed)
        for number in range(3):
            walk.edit(number).apply(cells)
        made.append(cells.tobytes())
    assert made[0] == made[1] != made[2]


def test_the_coast_is_the_cells_next_to_the_other_kind() -> None:
    land = np.zeros((5, 6), np.uint8)
    land[1:4, 1:5] = 1
    still = (slice(0, 5), slice(0, 6)), np.empty(0, np.int64), np.empty(0, np.int64)
    flooded, grown = land.copy(), land.copy()
    edits.Edit(still[0], True, *still[1:]).apply(flooded)
    edits.Edit(still[0], False, *still[1:]).apply(grown)
    assert np.argwhere(flooded).tolist() == [[2, 2], [2, 3]]
    assert np.argwhere(grown == 0).tolist() == [[0, 0], [0, 5], [4, 0], [4, 5]]


def test_rows_without_a_coast_are_refused() -> None:
    with pytest.raises(ValueError, match="no coast"):
        edits.Coast(np.zeros((100, 256), np.uint8), seed=1)


def test_the_counts_are_the_truths_with_stamps_and_without() -> None:
    cells = np.random.default_rng(2).integers(0, 2, (130, 1000), np.uint8)
    expected = truth.Truth(cells)
    counts = np.zeros((130, 2), np.uint32)
    kernels.count_rows(cells, counts)
    assert expected.wrong_rows(counts) == 0
    assert counts[:, 0].tolist() == cells.sum(axis=1).tolist()
    expected.stamp(slice(3, 20), kernels.STAMPS)
    assert cells.max() == 255
    counting = kernels.counting(1000)
    counting(cells.data.cast("B"), counts.data.cast("B"))
    assert expected.wrong_rows(counts) == 0
    counts[5, 1] += 1
    assert expected.wrong_rows(counts) == 1


def test_tensors_count_and_stamp_as_numpy_does() -> None:
    torch = pytest.importorskip("torch")
    cells = noise(130 * 1000, seed=7).reshape(130, 1000)
    expected = np.zeros((130, 2), np.uint32)
    kernels.count_rows(cells, expected)
    tensor, counts = torch.from_numpy(cells.copy()), torch.zeros((130, 2), dtype=torch.int32)
    kernels.count_with_torch(torch, tensor, counts)
    assert np.array_equal(counts.numpy().view(np.uint32), expected)
    kernels.stamp_with_torch(tensor, 5)
    kernels.stamp_cells(cells, 5)
    assert np.array_equal(tensor.numpy(), cells)


@pytest.mark.parametrize("shape", [(10, 100), (7, 33), (3, 5)])
def test_the_dirty_map_has_every_dirty_cell_in_its_block(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(11)
    size = shape[0] * shape[1]
    cuts = np.sort(random.choice(size + 1, 8, replace=False)).tolist()
    ranges = list(zip(cuts[::2], cuts[1::2], strict=True))
    dirty = np.zeros(size)
    for start, stop in ranges:
        dirty[start:stop] = 1
    made = DirtyMap(shape, (4, 8))
    made.add(ranges)
    high, wide = (-(-length // most) for length, most in zip(shape, (4, 8), strict=True))
    cells = dirty.reshape(shape)
    expected = [
        [cells[y : y + high, x : x + wide].mean() for x in range(0, shape[1], wide)]
        for y in range(0, shape[0], high)
    ]
    assert np.allclose(made.shares(), expected)
    land = made.land(np.ones(shape, np.uint8))
    assert (land == 1).all()
    assert land.shape == made.shares().shape


def test_the_dirty_map_counts_rounds_not_cells() -> None:
    made = DirtyMap((4, 8), (2, 2))
    made.add([(0, 3), (2, 4)])  # both in the first block
    made.add([(0, 1), (31, 32)])
    made.add([])
    assert made.rounds().tolist() == [[2, 0], [0, 1]]


def test_the_window_begins_far_from_the_edges() -> None:
    """So that the picture does not cut its path."""
    cells = coast()
    for seed in range(20):
        window = edits.Coast(cells, seed).edit(0).window[1]
        assert 256 <= (window.start + window.stop) // 2 < 512
