"""Two ranks use one slot of packets in turn; the second hears of the first by a packet of the owner, with no fence.

From: slots shared by two senders
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 16], box: i64[Window, 16], go: i64[Window, 16], y: f32[Array, 2, 16]) -> None:
    e = epoch()
    if rank() == 1:
        packet_store(x[:], box.peer(0), 0, 2 * e - 1)
    if rank() == 0:
        y[0] = packet_load(box, 0, 16, f32, 2 * e - 1)
        packet_store(x[:], go.peer(2), 0, e)
        y[1] = packet_load(box, 0, 16, f32, 2 * e)
    if rank() == 2:
        y[0] = packet_load(go, 0, 16, f32, e)
        packet_store(x[:], box.peer(0), 0, 2 * e)
    barrier()


K = k
RANKS = 3
