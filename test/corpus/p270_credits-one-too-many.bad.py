"""A pipeline of 10 tiles over 4 slots with credits; the bad sender runs five tiles ahead.

From: NCCL's FIFO with credits
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 10, 64], box: f32[Window, 4, 64], s: i64[Signal, 2], y: f32[Array, 10, 64]) -> None:
    nxt, prv = (rank() + 1) % size(), (rank() + size() - 1) % size()
    base = (epoch() - 1) * 10
    for t in range(10):
        wait_signal(s[1], ge=base + t + 1 - 5)
        box.peer(nxt)[(base + t) % 4] = x[t]
        signal(s[0], nxt)
        wait_signal(s[0], ge=base + t + 1)
        y[t] = box[(base + t) % 4]
        signal(s[1], prv)


K = k
RANKS = 8
