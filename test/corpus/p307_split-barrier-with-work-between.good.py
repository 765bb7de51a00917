"""The repaired twin of: A split barrier: arrive, work, wait; bad: the work writes what peers read before the barrier.

From: split-phase barriers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], w: f32[Window, 2, 64], y: f32[Array, 2, 64]) -> None:
    nxt = (rank() + 1) % size()
    w[0] = x[:]
    barrier()
    y[0] = w.peer(nxt)[0]
    t = barrier_arrive()
    w[1] = x[:] * 2.0
    barrier_wait(t)
    y[1] = w.peer(nxt)[0]
    barrier()


K = k
RANKS = 3
