"""The repaired twin of: Sender and receiver of a channel cut the tile by counts of their own.

From: uneven token counts of sender and receiver
"""

from __future__ import annotations

import commsir
from commsir import *

@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    prv = (rank() + size() - 1) % size()
    c = minimum(maximum(count[0], 0), 64)
    ch = channel(64, f32, pattern="pairwise", slots=1, protocol="ll")
    send(x[:], ch[0], nxt)
    channel_barrier(ch)
    y[:] = recv(ch[0], prv)
    barrier()


K = k
