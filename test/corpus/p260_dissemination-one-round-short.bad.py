"""A barrier by dissemination over signals, log2 rounds; the bad one leaves out the last round.

From: dissemination barriers (Hensgen, Finkel, Manber)
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 3], y: f32[Array, 8, 64]) -> None:
    box[:] = x[:]
    for i in static_range(2):
        signal(s[i], (rank() + (1 << i)) % size())
        wait_signal(s[i], ge=epoch())
    for p in range(size()):
        y[p] = box.peer(p)[:]
    barrier()


K = k
RANKS = 8
