"""The repaired twin of: A get starts before its owner has written, and is flushed behind the barrier.

From: one-sided reads
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], w: f32[Window, n], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    w[:] = x[:]
    barrier()
    get(w, y, nxt)
    flush()
    barrier()


K = k.specialize(n=64)
RANKS = 3
