"""A flag of packets cut to 3 bits with two buffers; bad: 1 bit.

From: small flags
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], p: i64[Window, 2, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    flag = epoch() % 2 + 1
    packet_store(x[:], p.peer(nxt), epoch() % 2 * 64, flag)
    y[:] = packet_load(p, epoch() % 2 * 64, 64, f32, flag)


K = k
RANKS = 2
