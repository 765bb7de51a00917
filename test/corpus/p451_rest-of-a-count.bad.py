"""Sender and receiver cut a row in two by a count: the head in one tile, the rest in another; bad: the rest is taken one element longer.

From: split messages
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], cnt: i64[Window, 1], x: f32[Array, 128], box: i64[Window, 128], y: f32[Array, 128]) -> None:
    other = 1 - rank()
    c = minimum(maximum(count[0], 0), 64)
    cnt.peer(other)[0] = c
    barrier()
    flag = i32(epoch())
    packet_store(x[0:64], box.peer(other), 0, flag, valid=c)
    packet_store(x[64:128], box.peer(other), 64, flag, valid=64 - c)
    g = cnt[0]
    y[0:64] = packet_load(box, 0, 64, f32, flag, valid=g)
    y[64:128] = packet_load(box, 64, 64, f32, flag, valid=minimum(65 - g, 64))
    barrier()


K = k
RANKS = 2
