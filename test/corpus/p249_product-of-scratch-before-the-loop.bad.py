"""A block keeps a product in scratch memory and adds a peer's part, which it reads before the signal.

From: matrix product and reduce-scatter
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 16, 16], w: f32[Array, 16, 16], box: f32[Window, 16, 16], part: f32[Array, 16, 16], s: i64[Signal, 1], y: f32[Array, 16, 16]) -> None:
    nxt = (rank() + 1) % size()
    put_signal(part, box, nxt, s[0])
    p = x @ w.T
    for r in range(16):
        y[r] = p[r] + box[r]
    wait_signal(s[0], ge=epoch())
    barrier()


K = k
