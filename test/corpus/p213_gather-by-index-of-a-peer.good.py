"""The repaired twin of: Rows are picked by indices; those of the rank that holds the rows are taken instead of the reader's.

From: embedding lookups
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(idx: i64[Window, 4], x: f32[Window, 8, 64], y: f32[Array, 4, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    for i in range(4):
        row = minimum(maximum(idx[i], 0), 7)
        y[i] = x.peer(nxt)[row]
    barrier()


K = k
