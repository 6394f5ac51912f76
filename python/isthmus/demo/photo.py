"""A real photograph, out of a package that ships one, enlarged to the size of a large camera's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import shipped

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Looked for in this order.
_PLACES = (
    ("sklearn", "datasets/images/china.jpg"),
    ("sklearn", "datasets/images/flower.jpg"),
    ("skimage", "data/coffee.png"),
    ("skimage", "data/astronaut.png"),
    ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
)


def find() -> str:
    """Path of the photograph."""
    for package, inside in _PLACES:
        path = shipped.find(package, inside)
        if path:
            return path
    raise FileNotFoundError(
        "no photograph found: the demo takes scikit-learn's; pip install 'isthmus[demo]'"
    )


def load(path: str, size: tuple[int, int]) -> NDArray[np.uint8]:
    """The photograph at ``size`` (width, height): height x width x 3 bytes."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("the demo needs Pillow: pip install 'isthmus[demo]'") from None
    with Image.open(path) as opened:
        colours = opened.convert("RGB")
    return np.ascontiguousarray(colours.resize(size, Image.Resampling.BICUBIC), dtype=np.uint8)


def reach_of(path: str, size: tuple[int, int]) -> int:
    """Pixels of the enlarged photograph to one of the original: how far the kernel looks."""
    from PIL import Image

    with Image.open(path) as opened:
        return max(1, size[0] // int(opened.width))
