"""The repaired twin of: Two roles: one sends with credits, one takes; the bad taker gives the credit before it has read.

From: producer and consumer warps
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel
def k(x: f32[Array, 6, 64], box: f32[Window, 2, 64], s: i64[Signal, 2], y: f32[Array, 6, 64]) -> None:
    nxt, prv = (rank() + 1) % size(), (rank() + size() - 1) % size()
    base = (epoch() - 1) * 6
    with role("send", 0, 1):
        for t in range(6):
            wait_signal(s[1], ge=base + t - 1)
            box.peer(nxt)[t % 2] = x[t]
            signal(s[0], nxt)
    with role("take", 1, 2):
        for t in range(6):
            wait_signal(s[0], ge=base + t + 1)
            y[t] = box[t % 2]
            signal(s[1], prv)


K = k
RANKS = 2
