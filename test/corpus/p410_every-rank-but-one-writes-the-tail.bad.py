"""96 elements in two tiles; bad: the last rank leaves its second one out.

From: tails by rank
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 128], box: f32[Window, 128], y: f32[Array, 128]) -> None:
    box[0:64] = x[0:64]
    if rank() != size() - 1:
        box.store(x[64:128], 64, valid=32)
    barrier()
    nxt = (rank() + 1) % size()
    y[0:64] = box.peer(nxt)[0:64]
    y.store(box.peer(nxt).load(64, 64, valid=32), 64, valid=32)
    barrier()


K = k
RANKS = 3
