"""Bulk copies out of one staging buffer in a loop of data; bad: the wait for them stands behind the loop's store.

From: CUTLASS: TMA store without tma_store_wait
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 8, n], w: f32[Window, 8, n], y: f32[Array, 8, n]) -> None:
    nxt = (rank() + 1) % size()
    stage = scratch(f32, 64, space="shared")
    barrier()
    for i in range(4):
        stage[:] = x[i]
        fence("acq_rel", "block", "async")
        t = bulk_copy(stage[0:64], w.peer(nxt)[i, 0:64])
        if count[0] > i:
            stage[:] = x[i + 4]
        bulk_wait(t)
    fence("acq_rel", "block", "async")
    barrier()
    for r in range(8):
        y[r] = w[r]
    barrier()


K = k.specialize(n=64)
