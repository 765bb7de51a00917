"""Two loops of the host's length send and take one tile a step over credits; bad: the taker makes one step less.

From: steps and credits
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel
def k(n: index, x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    assert 0 <= n <= 3
    other = 1 - rank()
    base = read_signal(s[0])
    back = read_signal(s[1])
    barrier(extent="grid")
    with role("send", 0, 1):
        for i in range(n):
            box.peer(other)[:] = x[:]
            signal(s[0], other)
            wait_signal(s[1], ge=back + i + 1)
        barrier()
    with role("take", 1, 2):
        for i in range(n - 1):
            wait_signal(s[0], ge=base + i + 1)
            y[:] = box[:]
            signal(s[1], other)
        barrier()


K = k
RANKS = 2
