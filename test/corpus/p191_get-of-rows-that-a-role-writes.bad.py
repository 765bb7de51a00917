"""One role writes rows, another reads a peer's by get; the barrier between them joins the wrong blocks.

From: roles that hand over
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=2)
def k(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    with role("write", 0, 1):
        box[:] = x[:]
    barrier(extent="block")
    with role("read", 1, 2):
        get(box, y, (rank() + 1) % size())
    barrier(extent="grid")


K = k
