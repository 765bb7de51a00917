"""The source of puts in a loop over data is reused behind the loop, and only the loop's last put is flushed if there is one.

From: token loops
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 8, n], box: f32[Window, 8, n], s: i64[Signal, 1], y: f32[Array, 8, n]) -> None:
    nxt = (rank() + 1) % size()
    c = minimum(maximum(count[0], 0), 8)
    for i in range(c):
        put(x[i], box[i], nxt)
    if c > 4:
        flush()
    x[0] = zeros(n)
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    for i in range(8):
        y[i] = box[i]
    barrier()


K = k.specialize(n=64)
