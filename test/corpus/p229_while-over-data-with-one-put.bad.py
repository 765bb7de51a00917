"""A loop that data end puts one tile in each round from one source.

From: work queues
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(work: i64[Array, 16], x: f32[Array, 64], box: f32[Window, 16, 64], y: f32[Array, 16, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    i = 0
    while i < 16 and work[minimum(i, 15)] > 0:
        x[:] = zeros(64)
        put(x, box[minimum(i, 15)], nxt)
        i += 1
    barrier()
    for j in range(16):
        y[j] = box[j]
    barrier()


K = k
