"""A rank reads a cell of which it has heard by a relaxed signal: it may still find the old value.

From: read_signal behind another flag
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 8, 16], box: f32[Window, 8, 16], s: i64[Signal, 2], y: f32[Array, 8, 16]) -> None:
    nxt, prv = (rank() + 1) % size(), (rank() + size() - 1) % size()
    signal(s[0], nxt, set=epoch() * 8 + 3, order="relaxed")
    signal(s[1], nxt, order="relaxed")
    wait_signal(s[1], ge=epoch(), order="relaxed")
    few = read_signal(s[0]) - epoch() * 8
    for i in range(minimum(maximum(few, 0), 8)):
        y[i] = x[i]
    if few == 3:
        barrier()
    barrier()


K = k
