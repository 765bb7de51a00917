"""The repaired twin of: A lock goes around the ranks by signals, twice; bad: the second round waits for the first one's signal.

From: token rings
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], acc: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    for round in range(2):
        if rank() > 0 or round > 0:
            wait_signal(s[0], ge=(epoch() - 1) * 2 + round + 1 if rank() > 0 else epoch())
        acc.peer(0)[:] = acc.peer(0)[:] + x[:]
        if rank() + 1 < size() or round == 0:
            signal(s[0], (rank() + 1) % size())
    barrier()
    y[:] = acc.peer(0)[:]
    barrier()


K = k
RANKS = 4
