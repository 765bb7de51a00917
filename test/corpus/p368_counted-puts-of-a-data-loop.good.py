"""The repaired twin of: A loop over data puts rows and counts them; all must be counted before the rows change; bad: only the first is waited for.

From: completion counters and variable batches
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Window, 8, 64], box: f32[Window, 8, 64], done: i64[Counter, 1], s: i64[Signal, 1], y: f32[Array, 8, 64]) -> None:
    nxt = (rank() + 1) % size()
    c = minimum(maximum(count[0], 0), 8)
    reset_counter(done[0])
    barrier()
    for i in range(c):
        put(x[i], box[i], nxt, counted=done[0], gin="")
    wait_counter(done[0], ge=c)
    x[7] = zeros(64)
    signal(s[0], nxt, gin="")
    wait_signal(s[0], ge=epoch())
    flush(gin="")
    for i in range(8):
        y[i] = box[i]
    barrier()


K = k
RANKS = 2
