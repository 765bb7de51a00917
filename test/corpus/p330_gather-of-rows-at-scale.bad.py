"""128 ranks gather in rings of 8 blocks; bad: the block of the last stripe signals the first one's cell.

From: large rings
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=4)
def k(x: f32[Array, 4, 64], box: f32[Window, 4, 64], s: i64[Signal, 4], y: f32[Array, 4, 64]) -> None:
    b, nxt = block_id(), (rank() + 1) % size()
    box.peer(nxt)[b] = x[b]
    signal(s[b if b < 3 else 0], nxt)
    wait_signal(s[b], ge=epoch())
    y[b] = box[b]
    barrier()


K = k
RANKS = 128
