"""A loop stages rows and copies them by TMA; the async fence stands before the loop.

From: staged copies
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, 4, n], w: f32[Window, 4, n], y: f32[Array, 4, n]) -> None:
    nxt = (rank() + 1) % size()
    stage = scratch(f32, 64, space="shared")
    fence("acq_rel", "block", "async")
    for i in range(4):
        stage[:] = x[i] * 2.0
        t = bulk_copy(stage[0:64], w.peer(nxt)[i])
        bulk_wait(t)
    barrier()
    for i in range(4):
        y[i] = w[i]
    barrier()


K = k.specialize(n=64)
