# SPDX-License-Identifier: Apache-2.0
"""The demo of arrays at a small size: every device, every number, constant memory use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import has_gpu, noise

import isthmus
from isthmus.cli import main
from isthmus.demo import photo
from isthmus.demo.arrays import kernels, patches, workers
from isthmus.demo.arrays.outcome import RESIDENT_SLACK, WARM_UP, Memory, Options, Outcome
from isthmus.demo.arrays.run import Pipeline, run

OPTIONS = Options(batches=40, patches=50)


def quiet(what: str, done: float) -> None:
    """A progress callback that prints nothing."""


def small(seed: int = 1) -> patches.Patches:
    """Patches of two random images of different sizes."""
    shapes = ((30, 41, 3), (25, 22, 3))
    return patches.Patches([noise(int(np.prod(s)), 5).reshape(s) for s in shapes], seed)


def test_every_device_measures_as_numpy_does(
    device: isthmus.Device, tmp_path: Path, leak_check: None
) -> None:
    wanted = device.filter if device.backend != "sim" else "sim"
    outcome = run(replace(OPTIONS, device=wanted), str(tmp_path), quiet)
    assert outcome.exact
    assert outcome.flat
    assert outcome.nbytes == 40 * 50 * 300
    assert outcome.different_patches > 1_000_000
    assert Path(outcome.picture).read_bytes().startswith(b"\x89PNG")
    assert len(outcome.memory.held) == 40
    assert set(outcome.memory.driver_allocations) == {outcome.memory.driver_allocations[0]}
    assert 0 <= outcome.least < outcome.mean < outcome.most <= 540 * 255
    assert set(outcome.memory.live) == {50 * 300 + 50 * 4}
    compared = outcome.comparison
    assert compared is not None
    assert min(compared.pool_seconds, compared.driver_seconds) > 0
    assert compared.pool_driver_allocations < compared.driver_allocations == compared.batches == 40
    seconds = outcome.seconds
    assert min(seconds.cut, seconds.upload, seconds.kernel, seconds.download, seconds.check) > 0


def test_the_command_prints_times_and_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--device", "host", "--output", str(tmp_path)]
    assert main(["demo", "arrays", "--batches", "30", "--patches", "20", *arguments]) == 0
    told = capsys.readouterr().out
    for word in (
        "30 of 20 patches", "held by the pool", "driver's allocations", "from the driver",
        "every number equals NumPy's", "memory      flat", "█",
    ):  # fmt: skip
        assert word in told
    assert (tmp_path / "isthmus_demo_arrays.png").exists()


def test_json_has_every_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before_the_name = ["demo", "--json", "--device", "host", "--output", str(tmp_path)]
    assert main([*before_the_name, "arrays", "--batches", "5", "--seed", "3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exact"]
    assert told["flat"] is None
    assert (told["options"]["batches"], told["options"]["patches"]) == (5, 1000)
    assert (told["options"]["device"], told["options"]["seed"]) == ("host", 3)
    assert told["nbytes"] == 5 * 1000 * 300
    assert {len(each) for each in told["memory"].values()} == {5}


def test_memory_of_another_program_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = tmp_path / "held.csv"
    arguments = ["--batches", "2", "--patches", "20", "--device", "host", "--beside", str(held)]
    arguments += ["--output", str(tmp_path)]
    held.write_text("batch,held_bytes\n0,1048576\n1,1048576\n2,1048576\n")
    assert main(["demo", "--json", "arrays", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["beside"] == [1 << 20] * 3
    assert main(["demo", "arrays", *arguments]) == 0
    assert "too few batches to tell" in capsys.readouterr().out
    held.write_text("batch,held_bytes\n0,much\n")
    assert main(["demo", "arrays", *arguments]) == 1
    assert str(held) in capsys.readouterr().err


@pytest.mark.parametrize("flaw", ["kernel", "memory"])
def test_wrong_results_are_reported(
    flaw: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    true, kept = kernels.function, []
    if flaw == "kernel":

        def wrong(given: memoryview, result: memoryview) -> None:
            true(given, result)
            np.frombuffer(result, np.float32)[7] += 1

        monkeypatch.setattr(kernels, "function", wrong)
    else:
        contrast = workers.FunctionWorker.contrast

        def keeps(
            self: workers.FunctionWorker, given: isthmus.Array, result: isthmus.Array
        ) -> tuple[float, float]:
            kept.append(given)
            return contrast(self, given, result)

        monkeypatch.setattr(workers.FunctionWorker, "contrast", keeps)
    arguments = ["--batches", "40", "--device", "host", "--output", str(tmp_path)]
    assert main(["demo", "arrays", *arguments]) == 1
    told = capsys.readouterr()
    if flaw == "kernel":
        assert "40 numbers DIFFER from NumPy's, first in batch 0" in told.out
        assert "differs from NumPy's" in told.err
    else:
        assert "NOT flat" in told.out
    kept.clear()


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "1000001"])
@pytest.mark.parametrize("option", ["--batches", "--patches"])
def test_numbers_that_cannot_be(option: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "arrays", option, text]) == 2
    assert "not a number from 1" in capsys.readouterr().err


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_on_a_gpu_by(library: str, leak_check: None) -> None:
    """Without the picture, whose package may be missing on a machine with a GPU."""
    if not has_gpu():
        pytest.skip("no CUDA device")
    pytest.importorskip(library)
    made = {"cupy": workers.CuPyWorker, "torch": workers.TorchWorker}[library]
    outcome = Outcome([], 0, "", "", "", replace(OPTIONS, batches=300), [])
    Pipeline(outcome, small(), made(isthmus.Queue(isthmus.Device("cuda:0")))).process_all(quiet)
    assert outcome.exact
    assert outcome.flat


def test_flat_means_no_growth() -> None:
    def told(**memory: list[int]) -> bool | None:
        level = [1] * (WARM_UP + 5)
        all_flat = Memory(level, level, level, level)
        return Outcome([], 0, "", "", "", OPTIONS, [], memory=replace(all_flat, **memory)).flat

    grows = [*[1] * WARM_UP, 2]
    assert told()
    assert told(held=grows[:WARM_UP]) is None
    assert told(held=[]) is None
    assert told(held=[1, 5, *[3] * 100])
    assert told(live=grows)
    assert not told(held=grows)
    assert not told(driver_allocations=grows)
    assert told(resident=[*[1] * WARM_UP, RESIDENT_SLACK])
    assert not told(resident=[*[1] * WARM_UP, RESIDENT_SLACK + 2])


def test_each_patch_comes_once() -> None:
    made = small()
    assert made.count == 2 * (21 * 32 + 16 * 13)
    size = 22
    batches = [made.batch(number, size) for number in range(made.count // size)]
    assert len(np.unique(np.concatenate(batches).reshape(-1, patches.BYTES), axis=0)) == made.count
    assert np.array_equal(made.batch(made.count // size, size), batches[0])


def test_patches_are_cut_from_the_photographs() -> None:
    photograph = noise(30 * 41 * 3, 5).reshape(30, 41, 3)
    made = patches.Patches([photograph], 1)
    for place in (0, 31, 32, 21 * 32 - 1):
        y, x = divmod(place, 32)
        expected = photograph[y : y + 10, x : x + 10].transpose(2, 0, 1)
        assert np.array_equal(made.select(np.array([place]))[0], expected)
    mirrored = made.select(np.array([21 * 32]))[0]
    assert np.array_equal(mirrored, photograph[:10, :-11:-1].transpose(2, 0, 1))


def test_the_same_seed_has_the_same_order() -> None:
    first, again, other = (small(seed).batch(3, 20) for seed in (4, 4, 5))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_function_and_tensors_measure_as_numpy_does() -> None:
    batch = small().batch(0, 300)
    expected = kernels.reference(batch)
    result = np.zeros(300, np.float32)
    kernels.function(batch.data.cast("B"), result.data.cast("B"))
    assert np.array_equal(result, expected)
    extreme = np.indices((1, 3, 10, 10)).sum(axis=0).astype(np.uint8) % 2 * 255
    assert kernels.reference(extreme)[0] == 540 * 255
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(300 * 4, dtype=torch.uint8)
    kernels.measure_with_torch(torch, torch.from_numpy(batch.reshape(-1)), tensor)
    assert np.array_equal(tensor.numpy().view(np.float32), expected)


def test_no_photograph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install"):
        photo.find_all()
