"""Counted puts from one source; the source is written again before they are known to have left it.

From: NCCL GIN counters
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, 4, n], stage: f32[Window, n], box: f32[Window, 4, n], c: i64[Counter, 1], y: f32[Array, 4, n]) -> None:
    nxt = (rank() + 1) % size()
    for i in range(4):
        stage[:] = x[i]
        put(stage, box[i], nxt, counted=c[0])
    wait_counter(c[0], ge=4 * epoch())
    barrier()
    for r in range(4):
        y[r] = box[r]
    barrier()


K = k.specialize(n=64)
