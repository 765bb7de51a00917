"""Tokens are staged and put until data say stop; bad: no flush before the stage is written again.

From: DeepEP dispatch; nvshmem nbi puts without quiet
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(stop: i64[Array, 8], x: f32[Array, 8, n], stage: f32[Window, n], box: f32[Window, 8, n], y: f32[Array, 8, n]) -> None:
    nxt = (rank() + 1) % size()
    i = 0
    while i < 8 and stop[minimum(i, 7)] == 0:
        stage[:] = x[i]
        put(stage, box[i], nxt)
        i += 1
    barrier()
    for r in range(8):
        y[r] = box[r]
    barrier()


K = k.specialize(n=64)
