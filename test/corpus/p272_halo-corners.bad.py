"""A halo exchange in two dimensions: columns first, rows with corners second; the bad one reads the halo before the second exchange is complete.

From: stencil codes
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 4, 64], up: f32[Window, 4, 64], s: i64[Signal, 4], y: f32[Array, 4, 64]) -> None:
    col, row = rank() % 2, rank() // 2
    side = row * 2 + (1 - col)
    over = (1 - row) * 2 + col
    up.peer(side)[0] = x[0]
    up.peer(side)[1] = x[1]
    signal(s[0], side)
    wait_signal(s[0], ge=epoch())
    up.peer(over)[2] = x[2] + up[0]
    up.peer(over)[3] = x[3] + up[1]
    signal(s[1], over)
    wait_signal(s[1], ge=epoch() - 1)
    for i in range(4):
        y[i] = up[i]
    barrier()


K = k
RANKS = 4
