# SPDX-License-Identifier: Apache-2.0
"""Arrays with non-contiguous elements: to a CUDA device, back, and inside it.

A crop of an image has rows that are not adjacent. A transposed array and every second column have
single elements that are not adjacent. The peers are CuPy and PyTorch, with the same views of NumPy
arrays, and with the same views of device memory. Contestants run one after the other instead of
alternately: PyTorch's threads spin for a while after their work, on processors that other threads
need.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from _timing import by_itself

import isthmus
from isthmus.cli.output import time_text

if TYPE_CHECKING:
    from collections.abc import Callable

Contestants = dict[str, "Callable[[], object]"]

IMAGE = np.random.default_rng(1).integers(0, 255, (4096, 4096, 4), np.uint8)
MATRIX = np.random.default_rng(2).random((2048, 2048), np.float32)
VIEWS: dict[str, tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]] = {
    "crop of 1,024 x 1,024 pixels, 4 MiB": (IMAGE, lambda whole: whole[512:1536, 512:1536]),
    "transposed, 16 MiB": (MATRIX, lambda whole: whole.T),
    "every second column, 8 MiB": (MATRIX, lambda whole: whole[:, ::2]),
}


def there(queue: isthmus.Queue, view: np.ndarray) -> Contestants:
    """Copies a view of an array into contiguous device memory."""
    import cupy
    import torch

    buffer = isthmus.Buffer(view.nbytes, queue=queue)
    array = cupy.empty(view.shape, view.dtype)
    tensor = torch.empty(view.shape, dtype=torch.from_numpy(view).dtype, device="cuda")
    return {
        "Isthmus": lambda: isthmus.copy_nd(buffer, view),
        "CuPy": lambda: (array.set(view), cupy.cuda.get_current_stream().synchronize()),
        "PyTorch": lambda: tensor.copy_(torch.from_numpy(view)),
    }


def back(queue: isthmus.Queue, view: np.ndarray) -> Contestants:
    """Copies contiguous device memory into a view of an array."""
    import cupy
    import torch

    buffer = isthmus.Buffer(view.nbytes, queue=queue)
    array = cupy.empty(view.shape, view.dtype)
    tensor = torch.empty(view.shape, dtype=torch.from_numpy(view).dtype, device="cuda")
    into = torch.from_numpy(view)
    return {
        "Isthmus": lambda: isthmus.copy_nd(view, buffer),
        "CuPy": lambda: np.copyto(view, array.get()),
        "PyTorch": lambda: into.copy_(tensor),
    }


def inside(
    queue: isthmus.Queue, whole: np.ndarray, cut: Callable[[np.ndarray], np.ndarray]
) -> Contestants:
    """Copies a view of a device array into contiguous device memory."""
    import cupy
    import torch

    view = cut(whole)
    source = isthmus.Buffer(whole.nbytes, queue=queue)
    target = isthmus.Buffer(view.nbytes, queue=queue)
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    arrays = cut(cupy.empty(whole.shape, whole.dtype)), cupy.empty(view.shape, view.dtype)
    dtype = torch.from_numpy(view).dtype
    tensors = (
        cut(torch.empty(whole.shape, dtype=dtype, device="cuda")),
        torch.empty(view.shape, dtype=dtype, device="cuda"),
    )
    return {
        "Isthmus": lambda: isthmus.copy_nd(
            target,
            source,
            shape=view.shape,
            itemsize=view.itemsize,
            src_strides=view.strides,
            src_offset=offset,
        ),
        "CuPy": lambda: (
            cupy.copyto(arrays[1], arrays[0]),
            cupy.cuda.get_current_stream().synchronize(),
        ),
        "PyTorch": lambda: (tensors[1].copy_(tensors[0]), torch.cuda.synchronize()),
    }


def tell(title: str, contestants: Contestants) -> None:
    """Prints the times of all, and that of Isthmus over the best peer's."""
    taken = {name: by_itself(work) for name, work in contestants.items()}
    best = min(seconds for name, seconds in taken.items() if name != "Isthmus")
    times = "   ".join(f"{name} {time_text(seconds):>8}" for name, seconds in taken.items())
    print(f"{title:<50} {times}   x {taken['Isthmus'] / best:5.2f}", flush=True)


def main() -> None:
    """Prints a line for each view and direction."""
    queue = isthmus.Queue("cuda")
    for name, (whole, cut) in VIEWS.items():
        own = whole.copy()
        tell(f"to it, {name}", there(queue, cut(own)))
        tell(f"back, {name}", back(queue, cut(own)))
        with isthmus.pin(own, device=queue.device):
            tell(f"to it, pinned, {name}", there(queue, cut(own)))
            tell(f"back, pinned, {name}", back(queue, cut(own)))
        tell(f"inside it, {name}", inside(queue, own, cut))


if __name__ == "__main__":
    if isthmus.devices("cuda") and find_spec("cupy") and find_spec("torch"):
        main()
    else:
        print("a CUDA device, CuPy and PyTorch are needed: nothing is measured")
