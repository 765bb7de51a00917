"""The repaired twin of: A rank tells by a signal's value how many rows it wrote; the reader trusts its own number.

From: counts as values of signals
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 8, 64], box: f32[Window, 8, 64], s: i64[Signal, 1], y: f32[Array, 8, 64]) -> None:
    nxt = (rank() + 1) % size()
    c = minimum(maximum(count[0], 0), 8)
    for i in range(c):
        box.peer(nxt)[i] = x[i]
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    for i in range(8):
        y[i] = box[i]
    barrier()


K = k
