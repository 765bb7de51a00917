"""Work items go to whoever asks: the owner answers with an index; bad: two ranks are given one item.

From: work queues
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 4, 64], give: i64[Window, 1], s: i64[Signal, 2], y: f32[Array, 4, 64]) -> None:
    if rank() == 0:
        for p in range(1, size()):
            give.peer(p)[0] = 1
            signal(s[0], p)
    else:
        wait_signal(s[0], ge=epoch())
        item = give[0]
        box.peer(0)[item] = x[:]
    barrier()
    for i in range(4):
        y[i] = box[i]
    barrier()


K = k
RANKS = 3
