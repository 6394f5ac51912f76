# SPDX-License-Identifier: Apache-2.0
"""Array.T applied repeatedly: reversed layouts are not retained."""

from __future__ import annotations

from support import python

import isthmus


def test_turning_takes_no_memory() -> None:
    """Retaining each layout would take 20 MB and finally overflow the stack."""
    python("""
import resource
import isthmus
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def turn(x, times):
    for _ in range(times):
        x = x.T
    return x
made = isthmus.empty((3, 4), kind="host", device="host")
part = made[1:]
before = peak()
assert turn(made, 100_000).strides == (16, 4)
assert turn(part, 100_001).strides == (4, 16)
assert turn(made[:, 1:], 100_000).shape == (3, 3)
assert peak() - before < 4096, peak() - before  # KiB
del made, part
for n in range(300):
    isthmus.empty((n, 5), kind="host", device="host")
""")


def test_turned_back_it_is_the_same_layout() -> None:
    made = isthmus.empty((2, 3, 4), kind="host", device="host")
    turned = made.T
    assert (turned.shape, turned.strides) == ((4, 3, 2), (4, 16, 48))
    assert (turned.T.shape, turned.T.strides) == (made.shape, made.strides)
    part = made[1:].T
    assert (part.T.T.shape, part.T.T.strides) == (part.shape, part.strides)
