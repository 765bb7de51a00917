"""The repaired twin of: Blocks send tiles with a signal each; the product waits for the signal of another tile than it reads.

From: all-gather and matrix product, tile by tile
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=3)
def k(x: f32[Array, 32, 16], w: f32[Array, 8, 16], box: f32[Window, 32, 16], s: i64[Signal, 2], y: f32[Array, 32, 8]) -> None:
    nxt = (rank() + 1) % size()
    with role("send", 0, 2):
        t = block_id()
        put_signal(x[t * 16 : t * 16 + 16], box[t * 16 : t * 16 + 16], nxt, s[t])
    with role("multiply", 2, 3):
        for t in range(2):
            wait_signal(s[t], ge=epoch())
            y[t * 16 : t * 16 + 16, 0:8] = box[t * 16 : t * 16 + 16] @ w.T
    barrier(extent="grid")


K = k
