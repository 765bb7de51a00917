"""A float that the host gives to all ranks decides whether they meet; bad: an element of an array does.

From: thresholds
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(limit: f32, x: f32[Array, 64], w: f32[Window, 64], y: f32[Array, 64]) -> None:
    w[:] = x[:]
    barrier()
    if x[0] > 0.5:
        y[:] = w.peer((rank() + 1) % size())[:]
        barrier()
    barrier()


K = k
RANKS = 2
