"""A weighted average over ranks; the bad one divides by the number of ranks, not by the sum of weights.

From: FedAvg
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], w: f32[Window, 1], y: f32[Array, 64]) -> None:
    barrier()
    total = zeros(64)
    weight = 0.0
    for p in range(size()):
        total += x.peer(p)[:] * w.peer(p)[0]
        weight += w.peer(p)[0]
    y[:] = total / size()
    barrier()


K = k
