"""The repaired twin of: A row that data choose is stored, fenced and copied in a loop over data; bad: the fence stands behind the loop's copy.

From: gather by TMA
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(n: i64[Array, 1], x: f32[Array, 8, 64], w: f32[Window, 8, 64], box: f32[Window, 8, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    for i in range(minimum(maximum(n[0], 0), 8)):
        w[i] = x[i]
        fence(proxy="async")
        c = bulk_copy(w.local()[i, 0:64], box.peer(nxt)[i, 0:64])
        bulk_wait(c)
    barrier()
    y[:] = box[0]
    barrier()


K = k
RANKS = 2
