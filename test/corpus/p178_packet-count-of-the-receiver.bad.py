"""A sender stores as many packets as its own data say; the receiver waits for as many as its own data say.

From: variable message lengths
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 64], cnt: i64[Window, 1], box: i64[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    c = minimum(maximum(count[0], 0), 64)
    cnt.peer(nxt)[0] = c
    signal(s[0], nxt)
    packet_store(x[:], box.peer(nxt), 0, epoch(), valid=c)
    wait_signal(s[0], ge=epoch())
    y[:] = packet_load(box.local(), 0, 64, f32, epoch(), valid=c)
    barrier()


K = k
