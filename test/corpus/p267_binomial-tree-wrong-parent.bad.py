"""A broadcast down a binomial tree by signals; the bad child waits for any signal but reads the parent of another.

From: tree broadcast
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    r = rank()
    if r == 0:
        box[:] = x[:]
    for i in static_range(3):
        d = 1 << i
        if r < d:
            box.peer(r + d)[:] = box[:]
            signal(s[0], (r + d) ^ 1)
        elif r < 2 * d:
            wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    barrier()


K = k
RANKS = 8
