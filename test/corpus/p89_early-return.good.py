"""The repaired twin of: A rank whose data are empty returns before the barrier.

From: early exit of empty ranks
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, n], box: f32[Window, n], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    if count[0] > 0:
        box.peer(nxt)[:] = x[:]
    barrier()
    y[:] = box[:]
    barrier()


K = k.specialize(n=64)
