"""The repaired twin of: Bruck's all-to-all: in step i, blocks whose bit i is set move by 2^i; the bad one takes the wrong bit in the last step.

From: Bruck all-to-all
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 4, 64], t: f32[Array, 4, 64], box: f32[Window, 4, 64], y: f32[Array, 4, 64]) -> None:
    for j in range(4):
        t[j] = x[(rank() + j) % size()]
    for i in static_range(2):
        d = 1 << i
        barrier()
        for j in static_range(4):
            if (j >> i) & 1:
                box.peer((rank() + d) % size())[j] = t[j]
        barrier()
        for j in static_range(4):
            if (j >> i) & 1:
                t[j] = box[j]
    for j in range(4):
        y[(rank() + size() - j) % size()] = t[j]
    barrier()


K = k
RANKS = 4
