"""Two counted puts from two tiles; after one of them is over, both tiles are written again.

From: completion counters
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 2, 64], box: f32[Window, 2, 64], done: i64[Counter, 1], y: f32[Array, 2, 64]) -> None:
    nxt = (rank() + 1) % size()
    reset_counter(done[0])
    barrier()
    put(x[0], box[0], nxt, counted=done[0])
    put(x[1], box[1], nxt, counted=done[0])
    wait_counter(done[0], ge=1)
    x[0] = zeros(64)
    x[1] = zeros(64)
    barrier()
    y[0] = box[0]
    y[1] = box[1]
    barrier()


K = k
