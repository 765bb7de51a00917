"""The repaired twin of: Ranks meet as often as a count can be halved; good: the count is the host's; bad: each rank has its own.

From: log-step loops over lengths
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(n: index, x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    assert 1 <= n <= 8
    nxt = (rank() + 1) % size()
    left = n
    while left > 1:
        box.peer(nxt)[:] = x[:]
        barrier()
        y[:] = box[:]
        barrier()
        left = left // 2


K = k
RANKS = 2
