"""The repaired twin of: Each rank adds its number + 1 to rank 0's cell, which waits for the sum; bad: it waits for two less.

From: weighted counts
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 4, 64], s: i64[Signal, 2], y: f32[Array, 4, 64]) -> None:
    box.peer(0)[rank()] = x[:]
    signal(s[0], 0, add=rank() + 1)
    if rank() == 0:
        wait_signal(s[0], ge=10 * epoch())
        for p in range(4):
            y[p] = box[p]
        for p in range(4):
            signal(s[1], p)
    wait_signal(s[1], ge=epoch())


K = k
RANKS = 4
