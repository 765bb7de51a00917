"""The repaired twin of: The sender uses two slots, the receiver takes one.

From: channels of unequal length
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], y: f32[Array, 128]) -> None:
    nxt = (rank() + 1) % size()
    prv = (rank() + size() - 1) % size()
    ch = channel(64, f32, pattern="pairwise", slots=2, protocol="ll")
    send(x[:], ch[0], nxt)
    send(x[:] * 2.0, ch[1], nxt)
    channel_barrier(ch)
    y.store(recv(ch[0], prv), 0)
    y.store(recv(ch[1], prv), 64)
    barrier()


K = k
