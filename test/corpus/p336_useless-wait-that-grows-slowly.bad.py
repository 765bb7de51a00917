"""A wait that grows more slowly than its cell, and orders nothing that is needed; bad: it is needed.

From: redundant waits
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[:] = x[:]
    signal(s[0], nxt, add=4)
    wait_signal(s[0], ge=epoch() + 3)
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
