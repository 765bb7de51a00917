"""Ranks store packets that unpack into a window, which the switch then reduces; bad: no alias fence after unpacking.

From: LL into multimem
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], mail: i64[Window, 64], w: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    packet_store(x[:], mail.peer(nxt), 0, i32(epoch()))
    w[:] = packet_load(mail, 0, 64, f32, i32(epoch()))
    barrier()
    y[:] = multimem_load_reduce("sum", w.multimem(), 0, 64)
    barrier()


K = k
RANKS = 3
