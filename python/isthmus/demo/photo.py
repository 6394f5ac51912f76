# SPDX-License-Identifier: Apache-2.0
"""A real photograph from an installed package, enlarged to the size of a picture of a large
camera.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import shipped

if TYPE_CHECKING:
    from numpy.typing import NDArray

# In order of preference.
_LOCATIONS = (
    ("sklearn", "datasets/images/china.jpg"),
    ("sklearn", "datasets/images/flower.jpg"),
    ("skimage", "data/coffee.png"),
    ("skimage", "data/astronaut.png"),
    ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
)


def find() -> str:
    """The path of the photograph."""
    return find_all()[0]


def find_all() -> list[str]:
    """The paths of all photographs found. FileNotFoundError if there are none."""
    found = [shipped.find(package, path) for package, path in _LOCATIONS]
    paths = [path for path in found if path is not None]
    if not paths:
        raise FileNotFoundError(
            "no photograph found: the demo uses scikit-learn's: pip install 'isthmus[demo]'"
        )
    return paths


def load(path: str, size: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    """The photograph at ``size`` (width, height; None: the original size), as height x width x 3
    bytes.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("the demo needs Pillow: pip install 'isthmus[demo]'") from None
    with Image.open(path) as opened:
        colours = opened.convert("RGB")
    image = colours if size is None else colours.resize(size, Image.Resampling.BICUBIC)
    return np.ascontiguousarray(image, dtype=np.uint8)


def reach_of(path: str, size: tuple[int, int]) -> int:
    """The scale of the enlargement in pixels, which is the kernel's distance to neighbours."""
    from PIL import Image

    with Image.open(path) as opened:
        return max(1, size[0] // int(opened.width))
