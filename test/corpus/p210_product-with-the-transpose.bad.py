"""A product of gathered rows with a weight, which is taken transposed.

From: all-gather and matrix product
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 8, 16], w: f32[Array, 16, 16], box: f32[Window, 8, 16], y: f32[Array, 8, 16]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    put(x, box, nxt)
    barrier()
    y[:] = box.local() @ w
    barrier()


K = k
