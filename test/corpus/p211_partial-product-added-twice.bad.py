"""Partial products of all ranks are summed; the own one is there before, and added again.

From: matrix product and reduce-scatter
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 8, 16], w: f32[Array, 8, 16], part: f32[Window, 8, 8], y: f32[Array, 8, 8]) -> None:
    part[:] = x @ w.T
    barrier()
    for r in range(8):
        total = part[r] * 1.0
        for p in range(size()):
            total += part.peer(p)[r]
        y[r] = total
    barrier()


K = k
