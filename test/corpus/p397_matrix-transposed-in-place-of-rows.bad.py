"""An all-to-all of columns: each rank keeps column `rank` of every peer; bad: row and column are exchanged in the store.

From: tensor-parallel re-sharding
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 16, 4], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    for p in range(4):
        for i in range(16):
            box.peer(p)[rank() * 16 + i] = x[i, p]
    barrier()
    for i in range(16):
        for p in range(4):
            y[p * 16 + i] = box[p * 16 + i]
    barrier()


K = k
RANKS = 4
