"""A wait grows by 4 in each launch, the cell by 3, but a first signal of 40 hides it; good: both grow by 3.

From: sequence numbers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    if epoch() == 1:
        signal(s[0], nxt, add=40)
    box.peer(nxt)[:] = x[:]
    signal(s[0], nxt, add=3)
    wait_signal(s[0], ge=epoch() * 4)
    barrier()
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
