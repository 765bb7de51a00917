"""A weighted combine of two experts' rows; bad: the weight of the other rank is used.

From: MoE combine
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(w: f32[Window, 2], x: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    total = zeros(64)
    for p in range(2):
        total += w.peer(p)[p] * x.peer(p)[:]
    y[:] = total
    barrier()


K = k
RANKS = 2
