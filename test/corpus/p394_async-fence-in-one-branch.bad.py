"""The fence before a bulk copy stands on one path only.

From: fences under conditions
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(go: i64[Array, 1], x: f32[Array, 64], w: f32[Window, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    w[:] = x[:]
    if go[0] > 0:
        fence(proxy="async")
    t = bulk_copy(w.local()[0:64], box.peer(nxt)[0:64])
    bulk_wait(t)
    barrier()
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
