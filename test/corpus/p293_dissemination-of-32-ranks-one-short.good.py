"""The repaired twin of: A dissemination barrier of 32 ranks and 8 blocks, each block for itself; bad: 4 rounds.

From: dissemination barriers at scale
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=8)
def k(x: f32[Array, 8, 64], box: f32[Window, 8, 64], s: i64[Signal, 40], y: f32[Array, 8, 64]) -> None:
    b = block_id()
    box[b] = x[b]
    for i in static_range(5):
        signal(s[b * 5 + i], (rank() + (1 << i)) % size())
        wait_signal(s[b * 5 + i], ge=2 * epoch() - 1)
    y[b] = box.peer((rank() + 31) % size())[b]
    for i in static_range(5):
        signal(s[b * 5 + i], (rank() + (1 << i)) % size())
        wait_signal(s[b * 5 + i], ge=2 * epoch())


K = k
RANKS = 32
