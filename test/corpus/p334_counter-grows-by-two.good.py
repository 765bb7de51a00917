"""The repaired twin of: Two counted puts in each launch, waited for by launches; bad: the wait grows by one.

From: completion counters
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 2, 64], box: f32[Window, 2, 64], c: i64[Counter, 1], y: f32[Array, 2, 64]) -> None:
    nxt = (rank() + 1) % size()
    put(x[0], box[0], nxt, counted=c[0])
    put(x[1], box[1], nxt, counted=c[0])
    wait_counter(c[0], ge=epoch() * 2)
    x[0] = zeros(64)
    x[1] = zeros(64)
    barrier()
    y[0] = box[0]
    y[1] = box[1]
    barrier()


K = k
RANKS = 2
