"""The repaired twin of: Flags of packets are the launch modulo 4, in one buffer.

From: flags of few bits
"""

from __future__ import annotations

import commsir
from commsir import *

@commsir.kernel(blocks=1)
def k(x: f32[Array, 32], box: i64[Window, 32], y: f32[Array, 32]) -> None:
    nxt = (rank() + 1) % size()
    packet_store(x[:], box.peer(nxt), 0, i32(epoch()))
    y[:] = packet_load(box, 0, 32, f32, i32(epoch()))
    barrier()


K = k
