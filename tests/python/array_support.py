# SPDX-License-Identifier: Apache-2.0
"""Helpers for the tests of arrays: arrays equal to NumPy models, and Hypothesis strategies."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from support import BACKENDS, filled, open_backend

from isthmus import Array, Device, Queue

NAMES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "F", "D", "G"]
SHAPE = (6, 5, 4)
MODEL = np.arange(120, dtype=np.float32).reshape(SHAPE)


def array_of(model: np.ndarray, queue: Queue, kind: str) -> Array:
    """The model's elements in a new buffer, after 32 bytes of padding."""
    buffer = filled(bytes(32) + model.tobytes(), kind=kind, queue=queue)
    return Array(buffer, model.shape, model.dtype, offset=32)


def same(ours: Array, model: Any) -> bool:
    """Whether shape, dtype, elements, and the strides of extents above 1 equal the model's."""
    steps = [s for s, n in zip(ours.strides, ours.shape, strict=True) if n > 1]
    wanted = [s for s, n in zip(model.strides, model.shape, strict=True) if n > 1]
    return (
        (ours.shape, ours.dtype) == (model.shape, model.dtype)
        and (model.size == 0 or steps == wanted)
        and bool(np.array_equal(ours.to_numpy(), model))
    )


def models(draw: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Elements that every dtype can represent, and that no conversion rounds."""
    start = draw(st.integers(0, 3))
    return (np.arange(start, start + int(np.prod(shape))) % 100).astype(name).reshape(shape)


@cache
def _places() -> list[tuple[Device, str]]:
    """The devices are opened once, by the first test that draws one."""
    made = []
    for name in BACKENDS:
        try:
            device = open_backend(name)
        except pytest.skip.Exception:
            continue
        made += [(device, kind) for kind in device.kinds]
    return made


# A queue and a kind for array_of, from any backend found.
WHERE = st.deferred(lambda: st.sampled_from(_places())).map(lambda at: (Queue(at[0]), at[1]))
SHAPES = nps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
PLAIN = st.sampled_from(["?", "i1", "i4", "u2", "u8", "f2", "f4", "f8", "F", "D"])


@st.composite
def views(draw: Any, name: Any = PLAIN) -> tuple[np.ndarray, list[Any]]:
    """A dense model, and the steps that derive a view with strides of any sign from it."""
    model = models(draw, draw(SHAPES), draw(name))
    steps: list[Any] = []
    seen = model
    for _ in range(draw(st.integers(0, 3))):
        way = draw(st.sampled_from(["key", "axes"]))
        if way == "key":
            step = draw(nps.basic_indices(seen.shape, max_dims=5, allow_newaxis=True))
            if not isinstance(seen[step], np.ndarray):
                continue
            seen = seen[step]
        else:
            step = draw(st.permutations(range(seen.ndim)))
            seen = seen.transpose(step)
        steps.append((way, step))
    return model, steps


def follow(array: Any, steps: list[Any]) -> Any:
    """Applies these steps to an Isthmus or NumPy array and returns the view."""
    for way, step in steps:
        array = array[step] if way == "key" else array.transpose(step)
    return array
