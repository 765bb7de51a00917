"""The repaired twin of: Ranks count in a cell and read it when half of them have counted.

From: tickets
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], box: f32[Window, 4, n], s: i64[Signal, 1], y: f32[Array, 4, n]) -> None:
    box.peer(0)[rank()] = x[:]
    signal(s[0], 0, add=2)
    if rank() == 0:
        wait_signal(s[0], ge=epoch() * size() * 2)
        for i in range(4):
            y[i] = box[i]
    barrier()


K = k.specialize(n=64)
