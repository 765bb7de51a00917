"""The repaired twin of: Data decide whether a tile in shared memory is stored anew before it is copied; bad: the fence stands before that store.

From: fences and predicates
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(go: i64[Array, 1], x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    t = scratch(f32, 64, space="shared")
    t[:] = x[:]
    barrier()
    if go[0] > 0:
        t[:] = x[:] * 2.0
    fence(proxy="async")
    c = bulk_copy(t, box.peer(nxt)[0:64])
    bulk_wait(c)
    barrier()
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
