"""A sender role sends tiles as fast as the taker answers; it waits for one answer too few.

From: credits between roles
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=2)
def k(x: f32[Array, 4, 64], box: f32[Window, 2, 64], s: i64[Signal, 2], y: f32[Array, 4, 64]) -> None:
    nxt, prev = (rank() + 1) % size(), (rank() + size() - 1) % size()
    with role("send", 0, 1):
        for t in range(4):
            wait_signal(s[1], ge=(epoch() - 1) * 4 + t - 2)
            put_signal(x[t], box[t % 2], nxt, s[0])
    with role("take", 1, 2):
        for t in range(4):
            wait_signal(s[0], ge=(epoch() - 1) * 4 + t + 1)
            y[t] = box[t % 2]
            signal(s[1], prev)
    barrier(extent="grid")


K = k
