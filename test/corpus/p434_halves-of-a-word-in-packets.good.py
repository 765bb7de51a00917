"""The repaired twin of: 64 half floats are 32 packets; bad: the receiver waits for 64 floats.

From: types of LL packets
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f16[Array, 64], box: i64[Window, 64], y: f16[Array, 64], z: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    packet_store(x[:], box.peer(nxt), 0, i32(epoch()))
    y[:] = packet_load(box, 0, 64, f16, i32(epoch()))
    barrier()


K = k
RANKS = 2
