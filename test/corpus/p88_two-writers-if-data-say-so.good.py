"""The repaired twin of: Rank 0 always writes the slot, rank 2 if its data say so.

From: fallback writer
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(go: i64[Array, 1], x: f32[Array, n], box: f32[Window, 2, n], y: f32[Array, 2, n]) -> None:
    barrier()
    if rank() == 0:
        box.peer(1)[0] = x[:]
    if rank() == 2 and go[0] > 0:
        box.peer(1)[1] = x[:]
    barrier()
    y[0] = box[0]
    y[1] = box[1]
    barrier()


K = k.specialize(n=64)
