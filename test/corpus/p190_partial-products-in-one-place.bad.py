"""Two ranks of a pair put partial products into the same rows of the first.

From: matrix product and reduce-scatter
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 16, 16], w: f32[Array, 16, 16], p: f32[Array, 16, 16], box: f32[Window, 4, 16, 16], y: f32[Array, 16, 16]) -> None:
    p[:] = x @ w.T
    barrier()
    put(p, box[rank() // 2], 0)
    barrier()
    for r in range(16):
        y[r] = box[0, r] + box[1, r] + box[2, r] + box[3, r]
    barrier()


K = k
