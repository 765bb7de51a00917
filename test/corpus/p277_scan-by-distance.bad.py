"""Hillis and Steele: an inclusive scan over ranks in log steps; the bad one reads the rank to the right.

From: scans over ranks
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 3, 64], y: f32[Array, 64]) -> None:
    total = x[:]
    for i in static_range(3):
        d = 1 << i
        box[i] = total
        barrier()
        if rank() + d < size():
            total = total + box.peer(rank() + d)[i]
    y[:] = total
    barrier()


K = k
RANKS = 5
