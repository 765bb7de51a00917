"""The repaired twin of: Recursive doubling by rank ^ step: right for powers of two; 6 ranks have no rank 6.

From: recursive doubling on 6 ranks
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], box: f32[Window, 3, n], s: i64[Signal, 3], y: f32[Array, n]) -> None:
    total = x[:]
    for i in range(3):
        other = rank() ^ (1 << i)
        if other < size():
            box.peer(other)[i] = total
            signal(s[i], other)
            wait_signal(s[i], ge=epoch())
            total += box[i]
    y[:] = total
    barrier()


K = k.specialize(n=64)
RANKS = 6
