# SPDX-License-Identifier: Apache-2.0
"""The demo at a small size: every device, every kind, every byte."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from support import has_cuda, has_gpu, noise

import isthmus
from isthmus.cli import main
from isthmus.demo import kernels, photo, workers
from isthmus.demo.run import Outcome, Trips, differing, run

SIZE = (320, 214)


def quiet(what: str, done: float) -> None:
    """A progress callback that prints nothing."""


def test_every_device_computes_numpys_bytes(
    device: isthmus.Device, tmp_path: Path, leak_check: None
) -> None:
    wanted = device.filter if device.backend != "sim" else "sim"
    outcome = run(SIZE, wanted, str(tmp_path), quiet)
    assert outcome.exact
    assert [check.kind for check in outcome.checks] == list(device.kinds)
    assert {check.nbytes for check in outcome.checks} == {SIZE[0] * SIZE[1] * 3}
    assert outcome.notes == [] or device.backend == "cuda"
    assert outcome.numpy_seconds > 0
    picture = Path(outcome.picture).read_bytes()
    assert picture.startswith(b"\x89PNG")
    for step in outcome.steps:
        assert min(step.seconds, step.first_seconds) > 0
        assert step.nbytes == SIZE[0] * SIZE[1] * 3


def test_the_command_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["demo", "--device", "host", "--size", "320x214", "--output", str(tmp_path)]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    for word in (
        "copy in", "kernel", "copy out", "first use", "GB/s", "the same as NumPy's result",
    ):  # fmt: skip
        assert word in told
    assert (tmp_path / "isthmus_demo.png").exists()


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["demo", "--device", "host", "--size", "64x48", "--output", str(tmp_path), "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exact"]
    assert [step["what"] for step in told["steps"]] == ["copy in", "kernel", "copy out"] * 3


def test_without_pyopencl_the_host_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    if not isthmus.devices("opencl"):
        pytest.skip("no OpenCL device")
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    device, worker, notes = workers.choose("opencl")
    assert device.backend == "host"
    assert isinstance(worker, workers.FunctionWorker)
    assert "pip install pyopencl" in notes[0]


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_on_a_gpu_by(library: str, leak_check: None) -> None:
    """Without photograph and picture, whose packages may be missing on a machine with a GPU."""
    if not has_gpu():
        pytest.skip("no CUDA device")
    pytest.importorskip(library)
    made = {"cupy": workers.CuPyWorker, "torch": workers.TorchWorker}[library]
    device = isthmus.Device("cuda:0")
    worker = made(isthmus.Queue(device))
    source = noise(1100 * 321 * 3).reshape(1100, 321, 3)
    outcome = Outcome("", SIZE, device.filter, device.name, worker.name, [])
    for kind in device.kinds:
        result = np.zeros_like(source)
        assert Trips(outcome, worker).run(kind, source, result, 4) == 0
        assert differing(result, kernels.reference(source, 4)) == 0
    assert all(step.seconds > 0 for step in outcome.steps)


def test_on_a_gpu_cupy_comes_first_and_pytorch_next(monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_gpu():
        pytest.skip("no CUDA device")
    pytest.importorskip("cupy")
    assert isinstance(workers.choose("cuda")[1], workers.CuPyWorker)
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "cupy", None)
    device, worker, notes = workers.choose("cuda")
    assert isinstance(worker, workers.TorchWorker)
    assert (device.backend, notes) == ("cuda", [])


def test_without_cupy_and_pytorch_a_function_takes_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not has_cuda():
        pytest.skip("no CUDA device, nor a stand-in")
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    device, worker, notes = workers.choose("cuda")
    assert device.backend == "cuda"
    assert isinstance(worker, workers.FunctionWorker)
    assert "CuPy or PyTorch" in notes[0]


def test_tensors_are_drawn_as_numpy_does() -> None:
    torch = pytest.importorskip("torch")
    random = noise(1100 * 21 * 3, seed=7).reshape(1100, 21, 3)  # more than one band of rows
    for reach in (1, 40):
        result = np.zeros_like(random)
        kernels.draw_with_torch(torch, torch.from_numpy(random), torch.from_numpy(result), reach)
        assert np.array_equal(result, kernels.reference(random, reach))


def test_wrong_bytes_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    true = kernels.reference

    def with_a_flaw(picture: kernels.Picture, reach: int) -> kernels.Picture:
        made = true(picture, reach)
        made[3, 4, 1] ^= 1
        return made

    monkeypatch.setattr(kernels, "reference", with_a_flaw)
    assert main(["demo", "--device", "host", "--size", "64x48", "--output", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert "1 bytes DIFFER from NumPy's result" in told.out
    assert "differs from NumPy's" in told.err


def test_an_impossible_folder_is_reported_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    assert main(["demo", "--output", str(taken)]) == 1
    assert str(taken) in capsys.readouterr().err


def test_no_photograph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install"):
        photo.find()


@pytest.mark.parametrize(("shape", "reach"), [((16, 16, 3), 1), ((21, 33, 3), 40), ((9, 5, 3), 2)])
def test_the_function_is_the_reference_past_edges_too(shape: tuple[int, ...], reach: int) -> None:
    random = np.random.default_rng(7).integers(0, 256, shape, np.uint8)
    result = np.zeros_like(random)
    kernels.function(shape, reach)(random.data.cast("B"), result.data.cast("B"))
    assert np.array_equal(result, kernels.reference(random, reach))
