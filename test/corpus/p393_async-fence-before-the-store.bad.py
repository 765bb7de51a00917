"""A tile is stored and then copied by TMA; bad: the fence stands before the store.

From: fence.proxy.async in the wrong place
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], w: f32[Window, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    fence(proxy="async")
    w[:] = x[:]
    t = bulk_copy(w.local()[0:64], box.peer(nxt)[0:64])
    bulk_wait(t)
    barrier()
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
