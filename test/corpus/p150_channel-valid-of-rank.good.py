"""The repaired twin of: Ranks send 32 elements plus their rank and expect as many as they sent.

From: uneven rows over channels
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    prv = (rank() + size() - 1) % size()
    ch = channel(64, f32, pattern="pairwise", slots=1, protocol="ll")
    send(x[:], ch[0], nxt, valid=32 + rank())
    channel_barrier(ch)
    y[:] = recv(ch[0], prv, valid=32 + prv)
    barrier()


K = k
