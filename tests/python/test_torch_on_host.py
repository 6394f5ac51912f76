# SPDX-License-Identifier: Apache-2.0
"""PyTorch's CPU build and arrays in one process, which exchange memory by DLPack.

PyPI has no such build for Linux on x86-64. Debian packages one for its own Python, from before
NumPy 2. NumPy is hidden from it, so these tests use DLPack only.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from support import SANITIZED, python

DEBIANS = Path("/usr/lib/python3/dist-packages")
PARTS = ("torch", "torchgen", "functorch")

PREPARE = """
import sys, warnings
warnings.simplefilter("ignore")
if HIDES_NUMPY:
    sys.modules["numpy"] = None
import torch
if HIDES_NUMPY:
    torch.zeros(1).tolist()  # looks for NumPy, once
    del sys.modules["numpy"]
import gc, weakref
import isthmus
from isthmus.memory import live

HOST = dict(kind="host", device="host")
"""

PROGRAMS = {
    "each_type": """
names = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
         "complex64", "complex128"]
if int(torch.__version__.partition(".")[0]) > 1:  # the first to know DLPack's type of bools
    names.append("bool")
for name in names:
    ours = isthmus.asarray([[0, 1, 1], [1, 0, 1]], **HOST).astype(name)
    theirs = torch.from_dlpack(ours)
    assert theirs.dtype == getattr(torch, name), theirs.dtype
    assert theirs.data_ptr() == ours.ptr and theirs.tolist() == [[0, 1, 1], [1, 0, 1]]
    theirs[0, 0] = 1
    assert ours[0, 0] == 1
    back = isthmus.asarray(theirs, **HOST, copy=False)
    assert (back.dtype, back.ptr, back.shape) == (ours.dtype, ours.ptr, (2, 3))
    back[1, 1] = 1
    assert theirs.all()
""",
    "views": """
ours = isthmus.asarray(list(range(24)), "int32", **HOST).reshape(4, 6)
for cut in (ours.T, ours[1:, ::2], ours[2], ours[:, 4:5], ours[..., None], ours[0:0]):
    theirs = torch.from_dlpack(cut)
    assert theirs.tolist() == cut.tolist() and tuple(theirs.shape) == cut.shape
    back = isthmus.asarray(theirs, **HOST, copy=False)
    assert back.tolist() == cut.tolist() and (back.ptr == cut.ptr or cut.size == 0)
theirs = torch.arange(24, dtype=torch.int32).reshape(4, 6)
for cut in (theirs.t(), theirs[1:, ::2], theirs[2], theirs.expand(2, 4, 6)[:, 1:]):
    seen = isthmus.asarray(cut, **HOST, copy=False)
    assert seen.tolist() == cut.tolist() and seen.ptr == cut.data_ptr()
""",
    "lifetime": """
before = live()[0]
ours = isthmus.full(1000, 7, "float32", **HOST)
theirs = torch.from_dlpack(ours)
ours.free()
assert (theirs == 7).all()
gone = weakref.ref(ours)
del ours
assert gone() is None and live()[0] > before
held = isthmus.asarray(theirs, **HOST, copy=False)
del theirs
gc.collect()
assert held[999] == 7
del held
gc.collect()
assert live()[0] == before, live()
tensor = torch.arange(1000)
ours = isthmus.asarray(tensor, **HOST, copy=False)
del tensor
noise = [torch.zeros(1000, dtype=torch.int64) for _ in range(100)]
assert ours.tolist() == list(range(1000))
""",
    "copies": """
for device in isthmus.devices():
    for kind in device.kinds:
        tensor = torch.arange(24, dtype=torch.float32).reshape(4, 6)
        made = isthmus.array(tensor, kind=kind, device=device)
        assert (made.device, made.kind, made.shape) == (device, kind, (4, 6))
        assert made.tolist() == tensor.tolist() and made.ptr != tensor.data_ptr()
        made[:, ::2] = tensor[:, 1::2]
        out = torch.empty(4, 6)
        made.copy_to(out)
        assert out[:, ::2].tolist() == tensor[:, 1::2].tolist()
        assert made.astype("int64").tolist() == out.to(torch.int64).tolist()
""",
    "refusals": """
def refused(work, *kinds):
    try:
        work()
    except kinds as error:
        return str(error)
    raise AssertionError("was taken")

tensor = torch.ones(3, requires_grad=True)
assert "gradient" in refused(lambda: isthmus.asarray(tensor, **HOST), BufferError, RuntimeError)
assert isthmus.asarray(tensor.detach(), **HOST, copy=False).ptr == tensor.data_ptr()
if HIDES_NUMPY:  # of a PyTorch from before DLPack 1.0
    wide = isthmus.broadcast_to(isthmus.ones(1, **HOST), 3)
    refused(lambda: torch.from_dlpack(wide), BufferError)
gone = isthmus.ones(3, **HOST)
gone.free()
refused(lambda: torch.from_dlpack(gone), isthmus.ClosedError)
ours = isthmus.ones(3, kind="device", device="host")
with isthmus.strict():
    refused(lambda: torch.from_dlpack(ours), BufferError)
with warnings.catch_warnings(record=True) as issued:
    warnings.simplefilter("always")
    theirs = torch.from_dlpack(ours)
assert [(each.category, each.filename) for each in issued] == [
    (isthmus.PortabilityWarning, "<string>")  # the caller's file, not PyTorch's
]
theirs += 1
assert ours.tolist() == [2, 2, 2]
for combine in (lambda: ours + theirs, lambda: theirs + ours, lambda: ours == theirs):
    assert "torch.from_dlpack(x)" in refused(combine, TypeError)
""",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with only Debian's PyTorch; empty if the user has installed one."""
    if SANITIZED:
        pytest.skip("PyTorch's own libraries are not for sanitizers")
    if importlib.util.find_spec("torch"):
        return ""
    if not (DEBIANS / "torch").exists():
        pytest.skip("no PyTorch")
    folder = tmp_path_factory.mktemp("torch")
    for part in PARTS:
        (folder / part).symlink_to(DEBIANS / part)
    tried = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", prepared(str(folder))],
        capture_output=True,
        text=True,
        check=False,
    )
    if "cpython" in tried.stderr or "No module named 'torch._C'" in tried.stderr:
        pytest.skip("Debian's PyTorch is of another Python")
    return str(folder)


def prepared(site: str) -> str:
    return f"HIDES_NUMPY = {bool(site)}\nimport sys\nsys.path.insert(0, {site!r})\n{PREPARE}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_pytorch(site: str, name: str) -> None:
    python(prepared(site) + PROGRAMS[name], timeout=120)
