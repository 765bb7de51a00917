"""The switch's sum is cleared for the next launch; bad: no barrier stands between its read and the clearing of peers' next sums.

From: multimem accumulators
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], w: f32[Window, 64], y: f32[Array, 64]) -> None:
    w[:] = zeros(64)
    fence(proxy="alias")
    barrier()
    multimem_reduce("sum", x[:], w.multimem(), 0)
    fence(proxy="alias")
    barrier()
    y[:] = w[:]
    w[:] = zeros(64)
    multimem_reduce("sum", x[:], w.multimem(), 0)


K = k
RANKS = 2
