"""Bruck's all-gather: blocks double in each step; the bad one does not rotate them back at the end.

From: Bruck all-gather
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 4, 64], y: f32[Array, 4, 64]) -> None:
    box[0] = x[:]
    for i in static_range(2):
        d = 1 << i
        barrier()
        for j in static_range(d):
            box.local()[d + j] = box.peer((rank() + d) % size())[j]
    barrier()
    for j in range(4):
        y[j] = box[j]


K = k
RANKS = 4
