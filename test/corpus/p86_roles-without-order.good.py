"""The repaired twin of: A role fills a buffer of its rank, another sends it on; nothing orders the two.

From: warp-specialized producer and consumer
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel
def k(x: f32[Array, n], stage: f32[Window, n], box: f32[Window, n], s: i64[Signal, 3], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    prv = (rank() + size() - 1) % size()
    with role("fill", 0, 1):
        stage[:] = x[:] * 2.0
        signal(s[0], rank())
        wait_signal(s[1], ge=epoch())
    with role("send", 1, 2):
        wait_signal(s[0], ge=epoch())
        box.peer(nxt)[:] = stage[:]
        signal(s[1], rank())
        signal(s[2], nxt)
        wait_signal(s[2], ge=epoch())
        y[:] = box[:]
        barrier()


K = k.specialize(n=64)
