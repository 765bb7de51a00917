"""A store into a peer's window, then a tile through a channel of packets; the tile's arrival says nothing about the store.

From: flags that are not releases
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64], z: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    prv = (rank() + size() - 1) % size()
    ch = channel(64, f32, pattern="pairwise", slots=1, protocol="ll")
    box.peer(nxt)[:] = x[:]
    send(x[:], ch[0], nxt)
    channel_barrier(ch)
    z[:] = recv(ch[0], prv)
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
