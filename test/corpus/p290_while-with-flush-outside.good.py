"""The repaired twin of: A while over data puts the same tile again and again; bad: it is changed within, and the flush stands behind.

From: retries
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(todo: i64[Array, 1], t: f32[Array, 64], box: f32[Window, 16, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    n = minimum(maximum(todo[0], 0), 15)
    barrier()
    while n > 0:
        put(t, box[n], nxt)
        n = n - 1
        flush()
        t[:] = t[:] * 0.5
    flush()
    barrier()
    y[:] = box[3]
    barrier()


K = k
RANKS = 2
