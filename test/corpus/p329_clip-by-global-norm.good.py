"""The repaired twin of: Gradients are clipped by the norm over all ranks; bad: by the own norm.

From: gradient clipping
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], q: f32[Window, 1], y: f32[Array, 64]) -> None:
    q[0] = (x[:] * x[:]).sum()[0]
    barrier()
    total = 0.0
    for p in range(size()):
        total += q.peer(p)[0]
    y[:] = x[:] * rsqrt(total)
    barrier()


K = k
RANKS = 2
