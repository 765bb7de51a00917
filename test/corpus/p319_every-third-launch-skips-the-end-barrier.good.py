"""The repaired twin of: The barrier at the end is left out in every third launch; bad: so is the one at the beginning.

From: amortized barriers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    box.peer(nxt)[:] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    if epoch() % 3 != 0:
        barrier()


K = k
RANKS = 2
