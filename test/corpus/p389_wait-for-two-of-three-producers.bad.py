"""Three blocks produce tiles, one consumes all; bad: it waits for as many signals as there are ranks.

From: counts of blocks and of ranks confused
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel
def k(x: f32[Array, 3, 64], box: f32[Window, 3, 64], s: i64[Signal, 1], y: f32[Array, 3, 64]) -> None:
    nxt = (rank() + 1) % size()
    with role("make", 0, 3):
        box.peer(nxt)[block_id()] = x[block_id()]
        signal(s[0], nxt)
    with role("take", 3, 4):
        wait_signal(s[0], ge=size() * epoch())
        for i in range(3):
            y[i] = box[i]
    barrier(extent="grid")


K = k
RANKS = 2
