"""The repaired twin of: Ranks with more rows pass one barrier more.

From: uneven rows
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], w: f32[Window, n], y: f32[Array, n]) -> None:
    w[:] = x[:]
    rounds = 1 + size() // 3
    for i in range(rounds):
        barrier()
        y[:] = w.peer((rank() + 1) % size())[:]
    barrier()


K = k.specialize(n=64)
RANKS = 5
