"""The repaired twin of: Two channels are taken in the order in which they were sent; bad: one is received before its own barrier.

From: two streams of tiles
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 2, 64], y: f32[Array, 2, 64]) -> None:
    nxt = (rank() + 1) % size()
    prv = (rank() + size() - 1) % size()
    a = channel(64, f32, pattern="pairwise", slots=1, protocol="ll")
    b = channel(64, f32, pattern="pairwise", slots=1, protocol="push")
    send(x[0], a[0], nxt)
    channel_barrier(a)
    send(x[1], b[0], nxt)
    channel_barrier(b)
    y[0] = recv(a[0], prv)
    y[1] = recv(b[0], prv)
    barrier()


K = k
RANKS = 3
