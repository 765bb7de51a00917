"""Two roles wait for signals of one cell; it is met when only the first has come.

From: one counter for two stages
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel
def k(x: f32[Array, n], box: f32[Window, 2, n], s: i64[Signal, 2], y: f32[Array, 2, n]) -> None:
    nxt = (rank() + 1) % size()
    with role("first", 0, 1):
        box.peer(nxt)[0] = x[:]
        signal(s[0], nxt)
        wait_signal(s[0], ge=epoch())
        y[0] = box[0]
        barrier()
    with role("second", 1, 2):
        box.peer(nxt)[1] = x[:] * 2.0
        signal(s[0], nxt)
        wait_signal(s[0], ge=epoch() * 2 - 1)
        y[1] = box[1]
        barrier()


K = k.specialize(n=64)
