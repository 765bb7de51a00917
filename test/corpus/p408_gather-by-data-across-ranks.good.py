"""The repaired twin of: Each rank takes the row of a peer that data name; bad: that row of its own window.

From: embedding look-ups
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(idx: i64[Array, 1], x: f32[Array, 4, 64], box: f32[Window, 4, 64], y: f32[Array, 64]) -> None:
    for i in range(4):
        box[i] = x[i]
    barrier()
    at = minimum(maximum(idx[0], 0), 3)
    y[:] = box.peer((rank() + 1) % size())[at]
    barrier()


K = k
RANKS = 2
