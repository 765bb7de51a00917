"""A length goes on through a ring of two hops; the bad rank uses the length before it was handed on.

From: pipelined variable-size ring
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(len_: i64[Array, 1], x: f32[Array, 64], c: i64[Window, 2], box: i64[Window, 2, 64], y: f32[Array, 2, 64]) -> None:
    nxt = (rank() + 1) % size()
    mine = minimum(maximum(len_[0], 0), 64)
    c.peer(nxt)[0] = mine
    barrier()
    c.peer(nxt)[1] = c[0]
    barrier()
    packet_store(x[:], box.peer(nxt), 0, epoch(), valid=mine)
    y[0] = packet_load(box, 0, 64, f32, epoch(), valid=c[0])
    packet_store(y[0], box.peer(nxt), 64, epoch(), valid=c[0])
    y[1] = packet_load(box, 64, 64, f32, epoch(), valid=c[0])
    barrier()


K = k
RANKS = 3
