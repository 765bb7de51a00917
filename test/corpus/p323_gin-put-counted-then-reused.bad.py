"""Two counted GIN puts in two contexts; bad: waits for one.

From: GIN counters
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 2, 64], box: f32[Window, 2, 64], c: i64[Counter, 1], s: i64[Signal, 2], y: f32[Array, 2, 64]) -> None:
    nxt = (rank() + 1) % size()
    for i in static_range(2):
        put(x.local()[i], box[i], nxt, counted=c[0], gin="context_id = 0" if i == 0 else "context_id = 1")
        signal(s[i], nxt, gin="context_id = 0" if i == 0 else "context_id = 1")
    wait_counter(c[0], ge=2 * epoch() - 1)
    x[0] = zeros(64)
    x[1] = zeros(64)
    for i in static_range(2):
        wait_signal(s[i], ge=epoch())
        y[i] = box[i]
    barrier()


K = k
RANKS = 2
